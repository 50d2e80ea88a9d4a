// kvasir chat: talk in plain turns. The whole text is asked again at each turn; what did not change is not computed.
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

#include "cli/cli.h"
#include "cli/line_editor.h"
#include "cli/sampling_args.h"

namespace kvasir::cli {
namespace {

struct Args {
  ModelArgs model;
  EngineArgs engine;
  SamplingArgs sampling;
  int n = -1;
  std::string user = "User: ", assistant = "Assistant:", system;
};

constexpr const char* kHelp =
    "/save FILE   what has been said, with its cache\n"
    "/load FILE   goes on from there\n"
    "/stats       what the cache holds\n"
    "/clear       forgets everything\n"
    "/quit        ends; so does the end of the input\n"
    "Ctrl-C ends an answer.\n";

volatile std::sig_atomic_t interrupted = 0;

// While an answer comes, Ctrl-C ends it and not the program.
class Interruptible {
 public:
  Interruptible() : before_(std::signal(SIGINT, [](int) { interrupted = 1; })) { interrupted = 0; }
  ~Interruptible() { std::signal(SIGINT, before_); }

 private:
  void (*before_)(int);
};

class Chat {
 public:
  Chat(const Args& a, Engine& engine, Session session)
      : a_(a), engine_(engine), session_(std::move(session)), text_(a.system) {
    options_.sampling = a.sampling.params(engine.model());
    options_.max_tokens = a.n;
    options_.stop = a.sampling.stop;
    if (!a.user.empty()) options_.stop.push_back("\n" + a.user);
    options_.whole_text = true;
    options_.on_text = [](std::string_view piece) {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
      return std::ferror(stdout) == 0 && interrupted == 0;
    };
  }

  /// False when there is nothing more to say. Errors are told, and the chat goes on.
  bool take(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string word = line.substr(0, space), rest = space == std::string::npos ? "" : line.substr(space + 1);
    if (word == "/quit") return false;
    Result<void> done;
    if (word == "/help")
      fmt::print("{}", kHelp);
    else if (word == "/clear")
      clear();
    else if (word == "/stats")
      show_stats();
    else if (word == "/save")
      done = save(rest);
    else if (word == "/load")
      done = load(rest);
    else if (word.starts_with('/'))
      done = fail(fmt::format("\"{}\" is not a command", word), "chat", "/help");
    else if (!line.empty())
      done = answer(line);
    if (!done) fmt::print(stderr, "{}\n", done.error().message());
    return true;
  }

 private:
  void clear() {
    session_.clear();
    text_ = a_.system;
  }

  // What is not answered has not been said.
  Result<void> answer(const std::string& line) {
    const std::string asked = text_ + (text_.empty() ? "" : "\n") + a_.user + line + "\n" + a_.assistant;
    KVASIR_TRY(const auto ids, encode(engine_.model(), asked));
    const Interruptible guard;
    KVASIR_TRY(const Generation g, generate(engine_, session_, ids, options_));
    fmt::print("\n");
    std::fflush(stdout);
    text_ = asked + g.text;
    const std::string differs = g.differs < 0 ? "" : fmt::format(", the text differs at token {}", g.differs);
    fmt::print(stderr, "[{} of {} tokens reused{}; first token after {:.1f} ms, {:.1f} tok/s]\n", g.cached_tokens,
               g.prompt_tokens, differs, g.stats.ttft_ms, g.stats.decode_tok_s);
    return {};
  }

  // All of the text: the last token of an answer was chosen and not fed.
  Result<void> save(const std::string& path) {
    if (!text_.empty()) {
      KVASIR_TRY(const auto ids, encode(engine_.model(), text_));
      KVASIR_CHECK(engine_.reuse(session_, ids));
      StepOutput out;
      KVASIR_CHECK(engine_.prefill(session_, std::span(ids).subspan(static_cast<size_t>(session_.pos())), &out));
    }
    return session_.save(path);
  }

  Result<void> load(const std::string& path) {
    KVASIR_CHECK(session_.load(path));
    KVASIR_TRY(text_, engine_.model().tokenizer()->decode(session_.tokens()));
    fmt::print("{}\n", text_);
    return {};
  }

  void show_stats() const {
    const CacheStats c = session_.cache_stats();
    fmt::print("{} of {} positions, {} bytes of KV ({}, K {}, V {}, peak {})\n", session_.pos(), session_.ctx(),
               with_commas(c.bytes), c.layout, c.kv_type_k, c.kv_type_v, with_commas(c.peak_bytes));
  }

  const Args& a_;
  Engine& engine_;
  Session session_;
  std::string text_;
  GenerateOptions options_;
};

Result<int> run(const Args& a) {
  KVASIR_TRY(const auto model, a.model.open());
  if (model->tokenizer() == nullptr)
    return fail("this model came without a tokenizer", model->info().path, "--tokenizer FILE");
  KVASIR_TRY(const auto engine, Engine::create(model, a.engine.engine));
  KVASIR_TRY(Session session, engine->open_session(a.engine.session));
  Chat chat(a, *engine, std::move(session));
  LineEditor editor;
  if (editor.interactive()) fmt::print("{}: /help for what else there is\n", model->info().name);
  for (auto line = editor.read("> "); line && chat.take(*line); line = editor.read("> ")) std::fflush(stdout);
  return kOk;
}

void add(CLI::App& app, Run* run_command) {
  auto a = std::make_shared<Args>();
  a->model.add(app);
  a->engine.add(app);
  a->sampling.add(app);
  app.add_option("-n,--predict", a->n, "the most tokens of an answer; -1: until its end")->capture_default_str();
  app.add_option("--system", a->system, "what comes before the first turn");
  app.add_option("--user", a->user, "what a line of yours begins with; it ends an answer too")->capture_default_str();
  app.add_option("--assistant", a->assistant, "what an answer begins with")->capture_default_str();
  app.footer(
      fmt::format("In a chat:\n{}\nExamples:\n  kvasir chat smollm2.gguf --system \"A helpful talk.\"\n"
                  "  kvasir chat tales --user \"\" --assistant \"\" -n 60",
                  kHelp));
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_chat;
const Command cmd_chat{"chat", "talk; each turn computes only what is new", add};

}  // namespace kvasir::cli
