// Shared by the commands: options, output, exit codes. No command lives here.
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

// Exit codes. 1: a check failed. 2: wrong usage or bad input.
inline constexpr int kOk = 0, kCheckFailed = 1, kBadInput = 2;

/// A command, one file cmd_NAME.cc each, found by CMake's glob. `add` binds its flags and sets `*run`, which returns
/// the exit code, or an error that main prints.
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

/// Prints on stderr the unused parts of a model's files that a user should know of (Ignored::noted).
void print_note(std::span<const Ignored> ignored);

/// --threads, --prefill-chunk, --cache, --ctx, --window, --sinks.
struct EngineArgs {
  EngineOptions engine;
  SessionOptions session;
  void add(Flags& flags, const Flag& ctx = flag::kCtx);
};

/// The options with --on-full applied: "slide" sets SessionOptions::slide, and layout windowed unless --cache was
/// given.
SessionOptions session_options(SessionOptions session, const std::string& on_full, bool cache_given);

/// -ctk, -ctv, --kv-type.
void add_kv_types(Flags& flags, SessionOptions& session);
/// --window, --sinks.
void add_window(Flags& flags, SessionOptions& session);

/// Errors: unsupported, if there is any image.
Result<void> refuse_images(const std::vector<std::string>& images);
/// The ids of `text`. Errors: a model without a tokenizer, an empty text.
Result<std::vector<int>> encode(const Model& model, const std::string& text);
/// The contents of a file; "-" is stdin. Errors: a file that cannot be read.
Result<std::string> read_text_file(const std::string& path);
/// Reads one prompt per line, ended by \n or \r\n; empty lines are skipped. `lines`, if given: the line number of each
/// prompt, from 1.
Result<std::vector<std::string>> read_prompts(const std::string& path, std::vector<int>* lines = nullptr);

/// CPU model, number of CPUs and date of a measurement, for plots and CSV.
std::string provenance();
/// "1,234,567"
std::string with_commas(uint64_t n);
Json to_json(const RssByOwner& rss);
Json to_json(const GenStats& stats);
void print_json(const Json& json);

}  // namespace kvasir::cli
