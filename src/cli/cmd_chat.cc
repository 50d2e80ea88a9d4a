// kvasir chat: talk in plain turns. What the talk is made of is talk.h's; here are the commands and what is told.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include <fmt/format.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/line_editor.h"
#include "cli/parameter_names.h"
#include "cli/sampling_args.h"
#include "cli/talk.h"

namespace kvasir::cli {
namespace {

struct Args {
  ModelArgs model;
  EngineArgs engine;
  SamplingArgs sampling;
  TalkOptions talk;
  int n = -1;
  std::string on_full = "stop";
};

constexpr const char* kHelp =
    "/save FILE   what has been said, with its cache\n"
    "/load FILE   goes on from there\n"
    "/again       asks the turn that was not answered once more\n"
    "/stats       what the cache holds\n"
    "/clear       forgets everything\n"
    "/quit        ends; so does the end of the input\n"
    "Ctrl-C ends an answer, or drops what is typed.\n";

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

class Chat {
 public:
  explicit Chat(Talk talk) : talk_(std::move(talk)) {}

  /// False when there is nothing more to say. Errors are told, and the chat goes on.
  bool take(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string word = line.substr(0, space), rest = space == line.npos ? "" : trimmed(line.substr(space));
    if (word == "/quit" && rest.empty()) return false;
    const Result<void> done = line.starts_with('/') ? command(word, rest) : line.empty() ? Result<void>() : ask(line);
    if (!done) {
      Error error = done.error();
      if (error.where == "Generator::prompt" || error.where == "Feed::tokens") error.where = "this turn";
      fmt::print(stderr, "{}\n", with_flags(error).message());
    }
    std::fflush(stdout);
    Interrupts::forget();  // it ended the answer
    return true;
  }

 private:
  Result<void> command(const std::string& word, const std::string& rest) {
    if (word == "/save" || word == "/load") return word == "/save" ? save(rest) : load(rest);
    constexpr std::array kAlone{"/help", "/again", "/stats", "/clear", "/quit"};
    if (std::find(kAlone.begin(), kAlone.end(), word) == kAlone.end())
      return fail(Error::bad_argument, fmt::format("\"{}\" is not a command", word), "chat", "/help");
    if (!rest.empty()) return fail(Error::bad_argument, fmt::format("{} takes nothing after it", word), "chat", word);
    if (word == "/help") fmt::print("{}", kHelp);
    if (word == "/stats") show_stats();
    if (word == "/clear") talk_.clear();
    return word == "/again" ? again() : Result<void>();
  }

  Result<void> ask(const std::string& line) {
    unanswered_ = line;
    KVASIR_TRY(const Answer a, talk_.ask(line));
    unanswered_.clear();
    fmt::print("\n");
    std::fflush(stdout);
    const std::string differs = a.differs < 0 ? "" : fmt::format(", the text differs at token {}", a.differs);
    fmt::print(stderr, "[{} of {} tokens reused{}; first token after {:.1f} ms, {:.1f} tok/s]\n", a.reused,
               a.prompt_tokens, differs, a.ttft_ms, a.decode_tok_s);
    if (a.dropped > 0)
      fmt::print(stderr, "[the context was full: the first {} tokens of the talk are let go]\n", a.dropped);
    if (a.full)
      fmt::print(stderr, "[the context of {} positions is full: /save FILE keeps the talk, /clear starts a new one]\n",
                 talk_.session().ctx());
    return {};
  }

  Result<void> again() {
    if (unanswered_.empty()) return fail(Error::bad_argument, "every turn has been answered", "/again", "a turn");
    return ask(std::string(unanswered_));
  }

  Result<void> save(const std::string& path) {
    if (path.empty()) return fail(Error::bad_argument, "/save needs a file name", "chat", "/save talk.kv");
    KVASIR_CHECK(check_output(path));
    return talk_.save(path);
  }

  Result<void> load(const std::string& path) {
    if (path.empty()) return fail(Error::bad_argument, "/load needs a file name", "chat", "/load talk.kv");
    KVASIR_CHECK(talk_.load(path));
    fmt::print("{}\n", talk_.text());
    return {};
  }

  void show_stats() const {
    const Session& session = talk_.session();
    const CacheStats c = session.cache_stats();
    fmt::print("{} of {} positions, {} bytes of KV ({}, K {}, V {}, peak {})\n", session.pos(),
               talk_.endless() ? "endless" : std::to_string(session.ctx()), with_commas(c.bytes), c.layout, c.kv_type_k,
               c.kv_type_v, with_commas(c.peak_bytes));
  }

  Talk talk_;
  std::string unanswered_;  // a turn that failed: its text is not lost
};

// A line after the other. Ctrl-C drops what is typed; twice at once, it ends the chat.
int talk_with(Chat& chat) {
  constexpr double kAtOnce = 2;  // seconds
  const Interrupts interrupts;
  LineEditor editor;
  double interrupted = -kAtOnce;
  for (std::string line;;) {
    const LineEditor::Event event = editor.read("> ", &line);
    if (event == LineEditor::Event::line) {
      if (!chat.take(line)) return kOk;
      continue;
    }
    const double now = now_seconds();
    if (event == LineEditor::Event::end || now - interrupted < kAtOnce) return kOk;
    interrupted = now;
    fmt::print(stderr, "\n[/quit ends the chat; so does Ctrl-C once more]\n");
  }
}

Result<TalkOptions> talk_options(const Args& a, const Model& model) {
  TalkOptions talk = a.talk;
  GenerateOptions& g = talk.generate;
  KVASIR_TRY(g.sampling, a.sampling.params(model));
  g.max_tokens = a.n;
  g.stop = a.sampling.stop;
  if (!talk.user.empty()) g.stop.push_back("\n" + talk.user);
  g.on_event = [](size_t, const Event& event) {
    std::fwrite(event.text.data(), 1, event.text.size(), stdout);
    std::fflush(stdout);
    return std::ferror(stdout) == 0 && !Interrupts::any();
  };
  talk.piece = std::min(a.engine.engine.prefill_chunk, model.info().max_ctx);
  talk.interrupted = Interrupts::any;
  talk.on_full = a.on_full == "slide"       ? OnFullTalk::slide
                 : a.on_full == "recompute" ? OnFullTalk::recompute
                                            : OnFullTalk::stop;
  return talk;
}

Result<int> run(const Args& a, bool cache_given) {
  KVASIR_TRY(const auto model, a.model.open());
  if (model->tokenizer() == nullptr)
    return fail(Error::bad_argument, "this model came without a tokenizer", model->info().path, "--tokenizer FILE");
  KVASIR_TRY(TalkOptions talk, talk_options(a, *model));
  KVASIR_TRY(const auto engine, Engine::create(model, a.engine.engine));
  KVASIR_TRY(Session session, engine->open_session(session_options(a.engine.session, a.on_full, cache_given)));
  if (isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0)
    fmt::print("{}: /help for what else there is\n", model->info().name);
  Chat chat(Talk(*engine, std::move(session), std::move(talk)));
  return talk_with(chat);
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  a->model.add(flags);
  a->engine.add(flags);
  add_kv_types(flags, a->engine.session);
  a->sampling.add(flags);
  flags.bind(flag::kAnswerTokens, &a->n);
  flags.bind(flag::kOnFull, &a->on_full);
  flags.bind(flag::kSystem, &a->talk.system);
  flags.bind(flag::kUser, &a->talk.user);
  flags.bind(flag::kAssistant, &a->talk.assistant);
  flags.footer(
      fmt::format("In a chat:\n{}\nExamples:\n  kvasir chat smollm2.gguf --system \"A helpful talk.\"\n"
                  "  kvasir chat tales --user \"\" --assistant \"\" -n 60",
                  kHelp));
  *run_command = [a, &flags] { return run(*a, flags.given(flag::kCache)); };
}

}  // namespace

extern const Command cmd_chat;
const Command cmd_chat{"chat", "talk; each turn computes only what is new", add};

}  // namespace kvasir::cli
