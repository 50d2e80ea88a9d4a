// kvasir list: the pulled models and the bytes of each.
#include <algorithm>

#include <fmt/format.h>

#include "base/hub_cache.h"
#include "cli/cli.h"
#include "cli/printable.h"
#include "hub/store.h"

namespace kvasir::cli {
namespace {

std::string state_of(const hub::Stored& stored) {
  if (stored.models.empty()) return stored.commit.empty() ? "incomplete" : "no model files";
  return stored.commit.substr(0, 12);
}

void print_table(const std::vector<hub::Stored>& all, const std::string& cache) {
  if (all.empty()) fmt::print("no models in {}\n", printable(cache));
  size_t width = 0;
  for (const hub::Stored& stored : all)
    for (const std::string& name : stored.models) width = std::max(width, name.size());
  for (const hub::Stored& stored : all) {
    const std::vector<std::string> names =
        stored.models.empty() ? std::vector<std::string>{stored.repo.text()} : stored.models;
    for (size_t i = 0; i < names.size(); ++i)
      if (i == 0)
        fmt::print("{:<{}}  {:>15} bytes  {}\n", printable(names[i]), width, with_commas(stored.bytes),
                   state_of(stored));
      else
        fmt::print("{}\n", printable(names[i]));
  }
}

Json to_json(const hub::Stored& stored) {
  return {{"name", stored.repo.text()},   {"models", stored.models}, {"commit", stored.commit},
          {"path", stored.path.string()}, {"bytes", stored.bytes},   {"incomplete_bytes", stored.incomplete_bytes}};
}

Result<int> run(bool json) {
  const std::string cache = hub::cache_folder().string();
  KVASIR_TRY(const auto all, hub::stored_models(cache));
  if (!json) {
    print_table(all, cache);
    return kOk;
  }
  Json models = Json::array();
  for (const hub::Stored& stored : all) models.push_back(to_json(stored));
  print_json({{"cache", cache}, {"models", models}});
  return kOk;
}

void add(Flags& flags, Run* run_command) {
  auto json = std::make_shared<bool>(false);
  flags.bind(with_help(flag::kJson,
                       "one JSON object on stdout: cache, and for each of models its name, models (values for MODEL), "
                       "commit, path, bytes, incomplete_bytes"),
             json.get());
  flags.footer("Each line begins with a name that other commands accept as MODEL.\nExamples:\n  kvasir list");
  *run_command = [json] { return run(*json); };
}

}  // namespace

extern const Command cmd_list;
const Command cmd_list{"list", "list pulled models", add};

}  // namespace kvasir::cli
