// kvasir pull: downloads a model from a hub into the cache that other programs use too.
#include <fmt/format.h>

#include "base/hub_cache.h"
#include "cli/cli.h"
#include "cli/printable.h"
#include "cli/progress.h"
#include "hub/pull.h"

namespace kvasir::cli {
namespace {

struct Args {
  hub::PullOptions pull;
  bool json = false;
};

Result<int> run(const Args& a) {
  hub::PullOptions options = a.pull;
  options.cache = hub::cache_folder();
  if (const auto bar = byte_bar()) options.progress = [bar](const hub::PullProgress& p) { bar(p.done, p.all, p.file); };
  options.note = [](const std::string& text) { fmt::print(stderr, "note: {}\n", printable(text)); };
  const auto pulled = hub::pull(options);
  clear_bar();
  if (!pulled) return tl::unexpected(pulled.error());
  if (a.json)
    print_json({{"name", pulled->name},
                {"commit", pulled->commit},
                {"path", pulled->path},
                {"files", pulled->files},
                {"bytes", pulled->bytes},
                {"fetched_bytes", pulled->fetched}});
  else
    fmt::print("{}: {} {}, {} bytes, {} of them downloaded now\n{}\n", pulled->name, pulled->files,
               pulled->files == 1 ? "file" : "files", with_commas(pulled->bytes), with_commas(pulled->fetched),
               pulled->path);
  return kOk;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  flags.bind(flag::kPullModel, &a->pull.model);
  flags.bind(flag::kEndpoint, &a->pull.endpoint);
  flags.bind(flag::kConnections, &a->pull.connections);
  flags.bind(flag::kTimeout, &a->pull.timeout_s);
  flags.bind(with_help(flag::kJson, "one JSON object on stdout: name, commit, path, files, bytes, fetched_bytes"),
             &a->json);
  flags.footer(
      "HF_TOKEN: the access token, for models that need one. Models are stored in HF_HUB_CACHE, HF_HOME/hub,\n"
      "XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub. An interrupted pull resumes where it stopped.\n"
      "Examples:\n  kvasir pull HuggingFaceTB/SmolLM2-135M\n"
      "  kvasir pull bartowski/SmolLM2-135M-Instruct-GGUF:Q4_K_M\n"
      "  kvasir run HuggingFaceTB/SmolLM2-135M -p \"Once upon a time\"");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_pull;
const Command cmd_pull{"pull", "download a model from a hub", add};

}  // namespace kvasir::cli
