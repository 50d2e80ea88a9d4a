// kvasir rm: removes a pulled model.
#include <fmt/format.h>

#include "base/hub_cache.h"
#include "cli/cli.h"
#include "hub/store.h"

namespace kvasir::cli {
namespace {

struct Args {
  std::string name;
  bool json = false;
};

Result<int> run(const Args& a) {
  const auto repo = hub::parse_repo(a.name);
  if (!repo)
    return fail(Error::bad_argument, fmt::format("\"{}\" is not a model name", a.name), "NAME",
                "OWNER/NAME, as kvasir list has it");
  KVASIR_TRY(const uint64_t bytes, hub::remove_model(hub::cache_folder(), *repo));
  if (a.json)
    print_json({{"name", repo->text()}, {"bytes", bytes}});
  else
    fmt::print("{}: {} bytes removed\n", repo->text(), with_commas(bytes));
  return kOk;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  flags.bind(with_help(flag::kPullModel, "OWNER/NAME of a pulled model"), &a->name);
  flags.bind(with_help(flag::kJson, "one JSON object on stdout: name, bytes"), &a->json);
  flags.footer("Examples:\n  kvasir rm HuggingFaceTB/SmolLM2-135M");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_rm;
const Command cmd_rm{"rm", "remove a pulled model", add};

}  // namespace kvasir::cli
