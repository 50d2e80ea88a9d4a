// What the commands share: options, output, exit codes. No command lives here.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <kvasir/engine.h>
#include <kvasir/generate.h>

#include "cli/flag_list.h"
#include "cli/json.h"

namespace kvasir::cli {

// 0 done, 1 a check failed, 2 usage or bad input.
inline constexpr int kOk = 0, kCheckFailed = 1, kBadInput = 2;

/// A command: binds its flags and leaves in `*run` what to do. One file cmd_NAME.cc each, found by CMake's
/// glob; `run` returns the exit code, or an error that main prints.
using Run = std::function<Result<int>()>;
struct Command {
  const char* name;
  const char* summary;
  void (*add)(Flags& flags, Run* run);
};
std::vector<const Command*> commands();

/// MODEL, --weights, --tokenizer, --ram, --kv-ram.
struct ModelArgs {
  std::string model = "tales";
  std::string weights{weights_mode_name(WeightsMode::automatic)};
  ModelOptions options;  ///< open() sets its weights
  void add(Flags& flags, const Flag& tokenizer = flag::kTokenizer);
  Result<std::shared_ptr<const Model>> open() const;
};

/// On stderr: what the model's files hold and Kvasir does not use, where a user should hear of it.
void print_note(std::span<const Ignored> ignored);

/// --threads, --prefill-chunk, --cache, --ctx, --window, --sinks.
struct EngineArgs {
  EngineOptions engine;
  SessionOptions session;
  void add(Flags& flags, const Flag& ctx = flag::kCtx);
};

/// The options with --on-full applied: "slide" is a matter of the session's window, in a cache that can forget unless
/// another was asked for.
SessionOptions session_options(SessionOptions session, const std::string& on_full, bool cache_given);

/// -ctk, -ctv, --kv-type.
void add_kv_types(Flags& flags, SessionOptions& session);
/// --window, --sinks.
void add_window(Flags& flags, SessionOptions& session);

/// Errors: any image.
Result<void> refuse_images(const std::vector<std::string>& images);
/// Ids of `text`; errors: a model without a tokenizer, an empty text.
Result<std::vector<int>> encode(const Model& model, const std::string& text);
/// Errors: a file that cannot be read. "-" is stdin.
Result<std::string> read_text_file(const std::string& path);
/// One line per prompt, ended by \n or \r\n; empty lines left out. `lines`: the number of each line, from 1.
Result<std::vector<std::string>> read_prompts(const std::string& path, std::vector<int>* lines = nullptr);

/// CPU model, date and command of a measurement, for plots and CSV.
std::string provenance();
/// "1,234,567"
std::string with_commas(uint64_t n);
Json to_json(const RssByOwner& rss);
Json to_json(const GenStats& stats);
void print_json(const Json& json);

}  // namespace kvasir::cli
