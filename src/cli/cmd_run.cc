// kvasir run: generate from a prompt.
#include <algorithm>
#include <climits>
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "cli/cli.h"
#include "cli/conversation_format.h"
#include "cli/parameter_names.h"
#include "cli/printable.h"
#include "cli/prompt_args.h"
#include "cli/run_report.h"
#include "cli/sampling_args.h"
#include "cli/template_args.h"

namespace kvasir::cli {
namespace {

struct Args {
  ModelArgs model;
  EngineArgs engine;
  PromptArgs prompt;
  int n = -1, samples = 1, batch = 4, lookup = 0;
  std::string prompts, save_cache, load_cache;
  SamplingArgs sampling;
  bool stats = false, json = false, receipt = false, ignore_eos = false, chat = false;
  std::string on_full = "stop", system;
  TemplateArgs chat_template;
  std::vector<std::string> images;
};

void add_several(Flags& flags, Args& a) {
  flags.bind(flag::kSamples, &a.samples);
  flags.bind(flag::kPromptsFile, &a.prompts);
  flags.bind(flag::kBatch, &a.batch);
  flags.bind(flag::kSaveCache, &a.save_cache);
  flags.bind(flag::kLoadCache, &a.load_cache);
  flags.bind(flag::kPrefixRam, &a.engine.engine.prefix_ram);
  flags.bind(flag::kLookup, &a.lookup);
}

Result<GenerateOptions> generate_options(const Args& a, const Model& model) {
  GenerateOptions options;
  KVASIR_TRY(options.sampling, a.sampling.params(model));
  options.max_tokens = a.n;
  options.stop = a.sampling.stop;
  options.on_full = a.on_full == "recompute" ? OnFull::recompute : OnFull::stop;
  options.ignore_eos = a.ignore_eos;
  options.lookup = a.lookup;
  options.receipt = a.receipt || a.json;
  options.whole_text = true;
  options.rss = a.stats || a.json;
  return options;
}

// Prints one of several results: the prompt and its continuation.
void print_one(const Args& a, const std::string& title, const Generation& g, const GenerateOptions& options) {
  fmt::print("{}{}\n", title, g.text);
  if (a.receipt) fmt::print("receipt {}\n", g.receipt);
  fmt::print("\n");
  std::fflush(stdout);
  if (a.stats) print_stats(g, options.sampling);
}

Json prefix_json(const PrefixStats& p) {
  return {{"queries", p.queries},
          {"hits", p.hits},
          {"asked_tokens", p.asked_tokens},
          {"reused_tokens", p.reused_tokens},
          {"evicted_tokens", p.evicted_tokens},
          {"entries", p.entries},
          {"bytes", p.bytes}};
}

void print_prefix_stats(const PrefixStats& p) {
  fmt::print(stderr,
             "prefixes    {} of {} prompts shared a prefix with earlier ones, {} of {} tokens reused; {} bytes kept, "
             "{} tokens evicted\n",
             p.hits, p.queries, p.reused_tokens, p.asked_tokens, with_commas(p.bytes), p.evicted_tokens);
}

/// Prints several results, each as soon as it and all before it are done; with --json, all at the end. Errors are
/// printed at once.
class Results {
 public:
  Results(const Args& a, const GenerateOptions& options, std::vector<std::string> titles)
      : a_(a), options_(options), titles_(std::move(titles)), all_(titles_.size()), errors_(titles_.size()) {}

  void put(size_t i, Generation&& g) {
    all_[i] = std::move(g);
    tell();
  }
  void put(size_t i, const Error& error) {
    errors_[i] = with_flags(error).message();
    failed_ = true;
    fmt::print(stderr, "kvasir: {}\n", printable(errors_[i]));
    tell();
  }

  int end(const Engine& engine) const {
    if (!a_.json) {
      if (a_.stats && engine.keeps_texts()) print_prefix_stats(engine.prefix_stats());
      return code();
    }
    Json list = Json::array();
    for (size_t i = 0; i < all_.size(); ++i) {
      Json one = all_[i] ? run_json(*all_[i], options_.sampling) : Json{{"error", errors_[i]}};
      one.set("prompt", titles_[i]);
      list.push_back(one);
    }
    print_json({{"generations", list}, {"prefix", prefix_json(engine.prefix_stats())}});
    return code();
  }

 private:
  int code() const { return failed_ ? kCheckFailed : kOk; }

  void tell() {
    if (a_.json) return;
    for (; next_ < all_.size() && (all_[next_] || !errors_[next_].empty()); ++next_) {
      if (!all_[next_]) continue;
      print_one(a_, titles_[next_], *all_[next_], options_);
      all_[next_].reset();
    }
  }

  const Args& a_;
  const GenerateOptions& options_;
  std::vector<std::string> titles_;
  std::vector<std::optional<Generation>> all_;
  std::vector<std::string> errors_;
  bool failed_ = false;
  size_t next_ = 0;  // next result to print
};

Result<int> run_samples(const Args& a, Engine& engine, Session& session, std::span<const int> prompt,
                        const std::string& text) {
  KVASIR_TRY(const GenerateOptions options, generate_options(a, engine.model()));
  KVASIR_TRY(auto all, generate_samples(engine, session, prompt, a.samples, options));
  Results results(a, options, std::vector(all.size(), text));
  for (size_t i = 0; i < all.size(); ++i) results.put(i, std::move(all[i]));
  return results.end(engine);
}

// A prompt that fails is reported with its line; the others continue.
Result<int> run_prompts(const Args& a, Engine& engine, const SessionOptions& session) {
  std::vector<int> lines;
  KVASIR_TRY(const std::vector<std::string> texts, read_prompts(a.prompts, &lines));
  KVASIR_TRY(const GenerateOptions options, generate_options(a, engine.model()));
  Results results(a, options, texts);
  const auto put_error = [&](size_t i, Error error) {
    error.where = fmt::format("{}, line {}", a.prompts, lines[i]);
    results.put(i, error);
  };
  std::vector<std::vector<int>> prompts;
  std::vector<size_t> of;  // index in `texts` of each prompt
  for (size_t i = 0; i < texts.size(); ++i) {
    auto ids = encode(engine.model(), texts[i]);
    if (!ids && engine.model().tokenizer() == nullptr) return tl::unexpected(std::move(ids).error());
    if (!ids) {
      put_error(i, std::move(ids).error());
      continue;
    }
    prompts.push_back(std::move(*ids));
    of.push_back(i);
  }
  KVASIR_CHECK(generate_batch(engine, session, prompts, a.batch, options, [&](size_t i, Result<Generation>&& done) {
    if (done)
      results.put(of[i], std::move(*done));
    else
      put_error(of[i], std::move(done).error());
  }));
  return results.end(engine);
}

Result<int> run_one(const Args& a, Engine& engine, Session& session, std::span<const int> prompt,
                    const std::string& text) {
  KVASIR_TRY(GenerateOptions options, generate_options(a, engine.model()));
  bool started = false;
  if (!a.json)
    options.on_event = [&](size_t, const Event& event) {
      if (!started) std::fwrite(text.data(), 1, text.size(), stdout);  // not before the prompt has been accepted
      started = true;
      std::fwrite(event.text.data(), 1, event.text.size(), stdout);
      std::fflush(stdout);
      return std::ferror(stdout) == 0;
    };
  KVASIR_TRY(const Generation g, generate(engine, session, prompt, options));
  if (a.json) {
    print_json(run_json(g, options.sampling));
    return kOk;
  }
  std::fputc('\n', stdout);
  if (a.receipt) fmt::print("receipt {}\n", g.receipt);
  std::fflush(stdout);
  if (a.stats) print_stats(g, options.sampling);
  return kOk;
}

// Loads the snapshot of --load-cache before the run, and writes that of --save-cache after it.
Result<int> run_session(const Args& a, Engine& engine, Session& session, std::span<const int> prompt,
                        const std::string& text) {
  if (!a.load_cache.empty()) KVASIR_CHECK(session.load(a.load_cache));
  const auto done =
      a.samples != 1 ? run_samples(a, engine, session, prompt, text) : run_one(a, engine, session, prompt, text);
  if (done && !a.save_cache.empty()) KVASIR_CHECK(session.save(a.save_cache));
  return done;
}

// The ids of a conversation with the prompt as its only user message, up to where the answer begins. `text`: the prompt
// as the output shows it.
Result<std::vector<int>> chat_ids(const Args& a, const Model& model, std::string* text) {
  KVASIR_TRY(const ChatOptions options, a.chat_template.options());
  auto format = ConversationFormat::of_template(a.model.model, a.chat_template.file, options);
  if (!format) {
    Error error = std::move(format).error();
    if (error.kind == Error::not_found && a.chat_template.file.empty()) error.hint = "--chat-template FILE";
    return tl::unexpected(std::move(error));
  }
  KVASIR_TRY(std::string asked, a.prompt.content());
  if (model.tokenizer() == nullptr)
    return fail(Error::bad_argument, "this model came without a tokenizer", model.info().path, "--tokenizer FILE");
  std::vector<Message> messages;
  if (!a.system.empty()) messages.push_back({.role = "system", .content = a.system});
  messages.push_back({.role = "user", .content = asked});
  KVASIR_TRY(const ChatText conversation, format->prompt(messages));
  KVASIR_TRY(auto ids, format->encode(*model.tokenizer(), {}, conversation, 0));
  if (ids.empty()) return fail(Error::bad_argument, "the conversation has no tokens", "prompt", "another text");
  if (a.json) *text = std::move(asked);  // without --json only the answer is printed
  return ids;
}

// Under a budget, a session with room for no more than the prompt and the answer leaves memory to the weights.
Result<Session> open_session(const Args& a, const Engine& engine, SessionOptions options, size_t prompt) {
  const bool may_be_small = a.model.options.ram > 0 && options.ctx == 0 && a.n > 0 && a.samples == 1 &&
                            a.load_cache.empty() && a.save_cache.empty() && options.window == 0 && !options.slide;
  if (may_be_small) {
    options.max_positions = static_cast<int>(std::min<int64_t>(static_cast<int64_t>(prompt) + a.n, INT_MAX));
    auto small = engine.open_session(options);
    if (small || small.error().kind != Error::no_room) return small;
    options.max_positions = 0;
  }
  return engine.open_session(options);
}

Result<int> run(const Args& a, bool cache_given) {
  KVASIR_CHECK(refuse_images(a.images));
  KVASIR_TRY(const auto model, a.model.open());
  KVASIR_TRY(const auto engine, Engine::create(model, a.engine.engine));
  const SessionOptions options = session_options(a.engine.session, a.on_full, cache_given);
  if (!a.prompts.empty()) return run_prompts(a, *engine, options);
  std::string text;
  KVASIR_TRY(const auto ids, a.chat ? chat_ids(a, *model, &text) : a.prompt.tokens(*model, &text));
  KVASIR_TRY(auto session, open_session(a, *engine, options, ids.size()));
  return run_session(a, *engine, session, ids, text);
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  a->model.add(flags);
  a->engine.add(flags);
  add_kv_types(flags, a->engine.session);
  a->prompt.add(flags);
  flags.bind(flag::kRunChat, &a->chat);
  flags.bind(with_needs(with_help(flag::kSystem, "system message"), "--chat"), &a->system);
  a->chat_template.add(flags, "--chat");
  flags.bind(flag::kImage, &a->images);
  flags.bind(flag::kPredict, &a->n);
  a->sampling.add(flags);
  flags.bind(flag::kIgnoreEos, &a->ignore_eos);
  add_several(flags, *a);
  flags.bind(flag::kOnFull, &a->on_full);
  flags.bind(flag::kStats, &a->stats);
  flags.bind(flag::kReceipt, &a->receipt);
  flags.bind(flag::kJson, &a->json);
  flags.footer(
      "Examples:\n  kvasir run tales -p \"Once upon a time\" -n 64 --stats\n"
      "  kvasir run tales -p Hello -n 16 --greedy --receipt --cache dense --threads 4\n"
      "  kvasir run path/to/model --chat -p \"What is a fjord?\" --system \"You are brief.\"\n"
      "  kvasir run tales -p \"The dog\" --samples 4 --seed 1 --cache paged\n"
      "  kvasir run tales -f story.txt -n 1 --save-cache story.kv\n"
      "  kvasir run tales -f story_and_more.txt --load-cache story.kv --stats\n"
      "  kvasir run tales --prompts questions.txt --batch 8 -n 64 --json");
  *run_command = [a, &flags] { return run(*a, flags.given(flag::kCache)); };
}

}  // namespace

extern const Command cmd_run;
const Command cmd_run{"run", "generate text from a prompt", add};

}  // namespace kvasir::cli
