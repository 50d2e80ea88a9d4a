// Options and output that several commands share.
#include "cli/cli.h"

#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "base/system.h"
#include "cli/printable.h"

namespace kvasir::cli {

#define KVASIR_ENTRY(name) extern const Command name;
#include "generated/commands.inc"
#undef KVASIR_ENTRY

std::vector<const Command*> commands() {
#define KVASIR_ENTRY(name) &name,
  return {
#include "generated/commands.inc"
  };
#undef KVASIR_ENTRY
}

void ModelArgs::add(CLI::App& app) {
  app.add_option("MODEL,-m,--model", model, "a Hugging Face folder, a .gguf, a llama2.c .bin, or a name from models/")
      ->capture_default_str();
  app.add_option("--weights", options.weights, "auto, resident, mapped, or streamed: two layers in memory")
      ->capture_default_str();
  app.add_option("--ram", ram, "bytes that the whole run may hold: 512M, 8G, auto; what would not fit is refused");
  app.add_option("--kv-ram", kv_ram, "bytes that the KV of all sequences may hold");
  app.add_option("--tokenizer", options.tokenizer, "tokenizer file, where it is not beside the model");
}

Result<std::shared_ptr<const Model>> ModelArgs::open() const {
  ModelOptions limited = options;
  KVASIR_TRY(limited.ram, parse_ram(ram, "--ram"));
  if (!kv_ram.empty()) {
    KVASIR_TRY(limited.kv_ram, parse_bytes(kv_ram, "--kv-ram"));
  }
  KVASIR_TRY(auto opened, Model::open(model, limited));
  print_note(opened->info().ignored);
  return opened;
}

void print_note(std::span<const Ignored> ignored) {
  if (const std::string note = note_of(ignored); !note.empty()) fmt::print(stderr, "note: {}\n", printable(note));
}

void add_kv_types(CLI::App& app, SessionOptions& session) {
  app.add_option("--ctk,--cache-type-k", session.kv_type_k, "type of K (also -ctk)")->capture_default_str();
  app.add_option("--ctv,--cache-type-v", session.kv_type_v, "type of V (also -ctv)")->capture_default_str();
  const auto both = [&session](const std::string& type) { session.kv_type_k = session.kv_type_v = type; };
  app.add_option_function<std::string>("--kv-type", both, "type of both K and V");
}

void add_window(CLI::App& app, SessionOptions& session) {
  app.add_option("--window", session.window,
                 "see only so many last positions, an approximation of a model that sees all; 0: all");
  app.add_option("--sinks", session.sinks,
                 fmt::format("with --window, the first positions too; {} by default", kDefaultSinks));
}

void EngineArgs::add(CLI::App& app) {
  app.add_option("-t,--threads", engine.threads, "threads; 0: as many as this process may use cores");
  app.add_option("--prefill-chunk", engine.prefill_chunk, "prompt tokens in one pass")->capture_default_str();
  app.add_option("--cache", session.layout, "cache layout")->capture_default_str();
  app.add_option("-c,--ctx", session.ctx, "the most positions; 0: the model's limit, or what --ram has room for");
  add_kv_types(app, session);
  add_window(app, session);
}

Result<std::vector<int>> encode(const Model& model, const std::string& text) {
  if (text.empty()) return fail("the text is empty", "prompt", "a text of at least one character");
  if (model.tokenizer() == nullptr)
    return fail("this model came without a tokenizer", model.info().path, "--tokenizer FILE, or token ids");
  KVASIR_TRY(auto ids, model.tokenizer()->encode(text));
  if (ids.empty()) return fail("the text has no tokens", "prompt", "another text");
  return ids;
}

Result<std::vector<int>> parse_ids(const std::string& text) {
  std::vector<int> ids;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    try {
      size_t used = 0;
      ids.push_back(std::stoi(part, &used));
      if (used != part.size()) throw std::invalid_argument(part);
    } catch (const std::exception&) {
      return fail(fmt::format("\"{}\" is not a token id", part), "--ids", "--ids 1,2,3");
    }
  }
  if (ids.empty()) return fail("no token ids", "--ids", "--ids 1,2,3");
  return ids;
}

Result<std::string> read_text_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  if (!in || !(text << in.rdbuf())) return fail("cannot be read", path, "an existing text file that is not empty");
  return text.str();
}

Result<std::vector<std::string>> read_prompts(const std::string& path, std::vector<int>* lines) {
  KVASIR_TRY(const std::string text, read_text_file(path));
  std::vector<std::string> prompts;
  std::stringstream in(text);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty()) continue;
    prompts.push_back(line);
    if (lines != nullptr) lines->push_back(number);
  }
  if (prompts.empty()) return fail("no prompts in it", path, "one prompt per line");
  return prompts;
}

std::string not_negative(const std::string& text) { return text.starts_with('-') ? text + " is negative" : ""; }

Result<size_t> parse_bytes(const std::string& text, const std::string& flag) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  double scale = 0;
  if (unit.empty() || unit == "B")
    scale = 1;
  else if (unit == "K" || unit == "KiB")
    scale = 1024;
  else if (unit == "M" || unit == "MiB")
    scale = 1024.0 * 1024.0;
  else if (unit == "G" || unit == "GiB")
    scale = 1024.0 * 1024.0 * 1024.0;
  const double bytes = number * scale;
  if (end == text.c_str() || !(bytes >= 1) || bytes > 1e18)
    return fail(fmt::format("\"{}\" is not a size", text), flag, "a number with K, M or G: 512M");
  return static_cast<size_t>(bytes);
}

Result<size_t> parse_ram(const std::string& text, const std::string& flag) {
  if (text.empty()) return size_t{0};
  if (text == "auto") return available_memory_bytes() / 4 * 3;
  return parse_bytes(text, flag);
}

std::string provenance() {
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  return fmt::format("{}, {} CPUs, {}", cpu_model_name(), available_cpus(), date);
}

std::string with_commas(uint64_t n) {
  std::string digits = std::to_string(n);
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3) digits.insert(static_cast<size_t>(i), ",");
  return digits;
}

nlohmann::json to_json(const RssByOwner& rss) {
  return {{"weights", rss.weights},     {"kv", rss.kv},        {"activations", rss.activations},
          {"tokenizer", rss.tokenizer}, {"code", rss.code},    {"other", rss.other},
          {"total", rss.total()},       {"kernel", rss.kernel}};
}

nlohmann::json to_json(const GenStats& s) {
  return {{"ttft_ms", s.ttft_ms},
          {"reuse_ms", s.reuse_ms},
          {"keep_ms", s.keep_ms},
          {"prefill_tok_s", s.prefill_tok_s},
          {"decode_tok_s", s.decode_tok_s},
          {"kv_bytes", s.cache.bytes},
          {"kv_predicted_bytes", s.cache.predicted_bytes},
          {"kv_peak_bytes", s.cache.peak_bytes},
          {"kv_capacity", s.cache.capacity},
          {"kv_growths", s.cache.growths},
          {"kv_saturated", s.cache.saturated},
          {"peak_rss_bytes", s.peak_rss_bytes},
          {"rss_bytes", s.rss ? to_json(*s.rss) : nlohmann::json()},
          {"weights_bytes", s.weights_bytes},
          {"threads", s.threads},
          {"cpu", s.cpu},
          {"layout", s.cache.layout},
          {"kv_type_k", s.cache.kv_type_k},
          {"kv_type_v", s.cache.kv_type_v},
          {"window", s.cache.window},
          {"weights", s.weights}};
}

void print_json(const nlohmann::json& json) {
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

}  // namespace kvasir::cli
