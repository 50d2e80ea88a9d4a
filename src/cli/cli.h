// What the commands share: options, output, exit codes. No command lives here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <kvasir/engine.h>
#include <kvasir/generate.h>

namespace kvasir::cli {

// 0 done, 1 a check failed, 2 usage or bad input.
inline constexpr int kOk = 0, kCheckFailed = 1, kBadInput = 2;

/// A command: adds its options to `app` and leaves in `*run` what to do. One file cmd_NAME.cc each, found by CMake's
/// glob; `run` returns the exit code, or an error that main prints.
using Run = std::function<Result<int>()>;
struct Command {
  const char* name;
  const char* summary;
  void (*add)(CLI::App& app, Run* run);
};
std::vector<const Command*> commands();

/// MODEL, --weights, --tokenizer, --ram.
struct ModelArgs {
  std::string model = "tales", ram, kv_ram;
  ModelOptions options;
  void add(CLI::App& app);
  Result<std::shared_ptr<const Model>> open() const;
};

/// On stderr: what the model's files hold and Kvasir does not use, where a user should hear of it.
void print_note(std::span<const Ignored> ignored);

/// --threads, --prefill-chunk, --cache, --ctx, --kv-type, -ctk, -ctv, --window, --sinks.
struct EngineArgs {
  EngineOptions engine;
  SessionOptions session;
  void add(CLI::App& app);
};

/// -ctk, -ctv, --kv-type.
void add_kv_types(CLI::App& app, SessionOptions& session);
/// --window, --sinks.
void add_window(CLI::App& app, SessionOptions& session);

/// Ids of `text`; errors: a model without a tokenizer, an empty text.
Result<std::vector<int>> encode(const Model& model, const std::string& text);
/// "1,2,3" to ids. Errors: what is not a number.
Result<std::vector<int>> parse_ids(const std::string& text);
Result<std::string> read_text_file(const std::string& path);
/// One line per prompt, empty lines left out; `lines`: the number of each line, from 1.
Result<std::vector<std::string>> read_prompts(const std::string& path, std::vector<int>* lines = nullptr);

/// A CLI11 check for options of unsigned type, in which a minus sign would wrap around.
std::string not_negative(const std::string& text);

/// "512M" to bytes: a number with K, M or G of 1,024. Errors: anything else.
Result<size_t> parse_bytes(const std::string& text, const std::string& flag);

/// The same, or "auto": three quarters of the memory that this machine, or the container, has available now. "" is 0.
Result<size_t> parse_ram(const std::string& text, const std::string& flag);

/// CPU model, date and command of a measurement, for plots and CSV.
std::string provenance();
/// "1,234,567"
std::string with_commas(uint64_t n);
nlohmann::json to_json(const RssByOwner& rss);
nlohmann::json to_json(const GenStats& stats);
void print_json(const nlohmann::json& json);

}  // namespace kvasir::cli
