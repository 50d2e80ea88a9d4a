// Options and output that several commands share.
#include "cli/cli.h"

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "base/files.h"
#include "base/system.h"
#include "cli/parameter_names.h"
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

void ModelArgs::add(Flags& flags, const Flag& tokenizer) {
  flags.bind(flag::kModel, &model);
  flags.bind(flag::kWeights, &weights);
  flags.bind(flag::kRam, &options.ram);
  flags.bind(flag::kKvRam, &options.kv_ram);
  flags.bind(tokenizer, &options.tokenizer);
}

Result<std::shared_ptr<const Model>> ModelArgs::open() const {
  ModelOptions all = options;
  KVASIR_TRY(all.weights, parse_weights_mode(weights));
  KVASIR_TRY(auto opened, Model::open(model, all));
  print_note(opened->info().ignored);
  return opened;
}

void print_note(std::span<const Ignored> ignored) {
  if (const std::string note = note_of(ignored); !note.empty())
    fmt::print(stderr, "note: {}\n", printable(with_flags(note)));
}

void add_kv_types(Flags& flags, SessionOptions& session) {
  flags.bind(flag::kKeyType, &session.kv_type_k);
  flags.bind(flag::kValueType, &session.kv_type_v);
  flags.bind(flag::kKvType, [&session](const std::string& type) { session.kv_type_k = session.kv_type_v = type; });
}

void add_window(Flags& flags, SessionOptions& session) {
  flags.bind(flag::kWindow, &session.window);
  flags.bind(flag::kSinks, &session.sinks);
}

void EngineArgs::add(Flags& flags, const Flag& ctx) {
  flags.bind(flag::kThreads, &engine.threads);
  flags.bind(flag::kPrefillChunk, &engine.prefill_chunk);
  flags.bind(flag::kCache, &session.layout);
  flags.bind(ctx, &session.ctx);
  add_window(flags, session);
}

SessionOptions session_options(SessionOptions session, const std::string& on_full, bool cache_given) {
  session.slide = on_full == "slide";
  if (session.slide && !cache_given) session.layout = "windowed";
  return session;
}

Result<void> refuse_images(const std::vector<std::string>& images) {
  if (images.empty()) return {};
  return fail(Error::unsupported, "Kvasir runs text only", shown_name(flag::kImage), "a prompt without images");
}

Result<std::vector<int>> encode(const Model& model, const std::string& text) {
  if (text.empty()) return fail(Error::bad_argument, "the text is empty", "prompt", "a text of at least one character");
  if (model.tokenizer() == nullptr)
    return fail(Error::bad_argument, "this model came without a tokenizer", model.info().path,
                "--tokenizer FILE, or token ids");
  KVASIR_TRY(auto ids, model.tokenizer()->encode(text));
  if (ids.empty()) return fail(Error::bad_argument, "the text has no tokens", "prompt", "another text");
  return ids;
}

namespace {

Result<std::string> read_stdin() {
  std::string text;
  char buffer[1 << 14];
  for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) text.append(buffer, got);
  if (std::ferror(stdin) != 0) return fail(Error::io, "cannot be read", "stdin", "a file or a pipe");
  return text;
}

}  // namespace

Result<std::string> read_text_file(const std::string& path) {
  if (path == "-") return read_stdin();
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  const Error::Kind kind = in ? Error::bad_argument : kind_of_errno(errno);
  if (!in || !(text << in.rdbuf()))
    return fail(kind, "cannot be read", path, "an existing text file that is not empty");
  return text.str();
}

Result<std::vector<std::string>> read_prompts(const std::string& path, std::vector<int>* lines) {
  KVASIR_TRY(const std::string text, read_text_file(path));
  std::vector<std::string> prompts;
  std::stringstream in(text);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    prompts.push_back(line);
    if (lines != nullptr) lines->push_back(number);
  }
  if (prompts.empty()) return fail(Error::bad_argument, "it has no prompts", path, "one prompt per line");
  return prompts;
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

Json to_json(const RssByOwner& rss) {
  return {{"weights", rss.weights},     {"kv", rss.kv},        {"activations", rss.activations},
          {"tokenizer", rss.tokenizer}, {"code", rss.code},    {"other", rss.other},
          {"total", rss.total()},       {"kernel", rss.kernel}};
}

Json to_json(const GenStats& s) {
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
          {"rss_bytes", s.rss ? to_json(*s.rss) : Json()},
          {"weights_bytes", s.weights_bytes},
          {"weights_memory_bytes", s.weight_stats.memory_bytes},
          {"experts", s.weight_stats.experts},
          {"experts_read", s.weight_stats.experts_read},
          {"experts_guessed", s.weight_stats.experts_guessed},
          {"guesses_used", s.weight_stats.guesses_used},
          {"threads", s.threads},
          {"cpu", s.cpu},
          {"layout", s.cache.layout},
          {"kv_type_k", s.cache.kv_type_k},
          {"kv_type_v", s.cache.kv_type_v},
          {"window", s.cache.window},
          {"weights", s.weights}};
}

void print_json(const Json& json) {
  const std::string text = json.text();
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

}  // namespace kvasir::cli
