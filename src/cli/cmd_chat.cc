// kvasir chat: a conversation by the model's chat template, or in plain turns. Here are the commands and the output;
// conversation.h has the turns and their tokens.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/conversation.h"
#include "cli/message_reader.h"
#include "cli/parameter_names.h"
#include "cli/sampling_args.h"
#include "cli/template_args.h"

namespace kvasir::cli {
namespace {

struct Args {
  ModelArgs model;
  EngineArgs engine;
  SamplingArgs sampling;
  ConversationOptions conversation;
  TemplateArgs chat_template;
  int n = -1;
  std::string on_full = "stop", chat_format = "auto", user = "User: ", assistant = "Assistant:";
  std::vector<std::string> images;
};

/// Which flags were given, where that changes the meaning of others.
struct Given {
  bool cache = false, plain = false;
};

constexpr const char* kHelp =
    "/edit TEXT    asks TEXT in place of your last turn; without TEXT, lets you edit the old text\n"
    "/regen        another answer to your last turn, or the first one if it has none\n"
    "/undo         removes your last turn and its answer\n"
    "/system TEXT  sets the system message; without TEXT, removes it\n"
    "/save FILE    saves the conversation with its KV cache; FILE.json has the messages\n"
    "/load FILE    continues a saved conversation\n"
    "/stats        shows what the cache holds, and how many prompt tokens were reused\n"
    "/clear        removes all turns\n"
    "/quit         ends the chat; so does the end of the input\n"
    "A line that ends with \\ continues in the next. Lines between two lines of \"\"\" are one message.\n"
    "Ctrl-C stops an answer, or discards what is typed.\n";

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

class Chat {
 public:
  explicit Chat(Conversation conversation) : conversation_(std::move(conversation)) {}

  LineEditor::Event read(Typed* typed) { return reader_.read(typed); }

  /// Returns false after /quit. Errors are printed and the chat continues.
  bool take(const Typed& typed) {
    const std::string& text = typed.text;
    const size_t end = text.find_first_of(" \n");
    const std::string word = text.substr(0, end), rest = end == text.npos ? "" : trimmed(text.substr(end + 1));
    const bool is_command = text.starts_with('/') && !typed.is_block;
    if (is_command && word == "/quit" && rest.empty()) return false;
    const Result<void> done = is_command ? command(word, rest) : text.empty() ? Result<void>() : ask(text);
    if (!done) {
      Error error = done.error();
      if (error.where == "Generator::prompt" || error.where == "Feed::tokens") error.where = "this turn";
      fmt::print(stderr, "{}\n", with_flags(error).message());
    }
    std::fflush(stdout);
    Interrupts::forget();  // Ctrl-C ended the answer, not the chat
    return true;
  }

 private:
  Result<void> command(const std::string& word, const std::string& rest) {
    using Taking = Result<void> (Chat::*)(const std::string&);
    using Alone = Result<void> (Chat::*)();
    constexpr std::pair<const char*, Taking> kTaking[] = {
        {"/edit", &Chat::edit}, {"/system", &Chat::set_system}, {"/save", &Chat::save}, {"/load", &Chat::load}};
    constexpr std::pair<const char*, Alone> kAlone[] = {{"/help", &Chat::help},   {"/regen", &Chat::regenerate},
                                                        {"/undo", &Chat::undo},   {"/stats", &Chat::stats},
                                                        {"/clear", &Chat::clear}, {"/quit", nullptr}};
    for (const auto& [name, run] : kTaking)
      if (word == name) return (this->*run)(rest);
    for (const auto& [name, run] : kAlone) {
      if (word != name) continue;
      if (rest.empty()) return (this->*run)();
      return fail(Error::bad_argument, fmt::format("{} takes nothing after it", word), "chat", word);
    }
    return fail(Error::bad_argument, fmt::format("\"{}\" is not a command", word), "chat", "/help");
  }

  Result<void> ask(const std::string& text) {
    unanswered_ = text;
    KVASIR_TRY(const Answer answer, conversation_.ask(text));
    unanswered_.clear();
    tell(answer);
    return {};
  }

  // A turn without an answer counts as the last one.
  Result<void> edit(const std::string& text) {
    if (unanswered_.empty() && conversation_.turns().empty()) return no_turn("/edit");
    if (text.empty()) {
      const std::string& old = unanswered_.empty() ? conversation_.turns().back().user : unanswered_;
      if (reader_.offer("/edit " + old)) return {};
      return fail(Error::bad_argument, "it needs the new text", "/edit", "/edit TEXT");
    }
    if (!unanswered_.empty()) return ask(text);
    KVASIR_TRY(const Answer answer, conversation_.edit(text));
    tell(answer);
    return {};
  }

  Result<void> regenerate() {
    if (!unanswered_.empty()) return ask(std::string(unanswered_));
    if (conversation_.turns().empty()) return no_turn("/regen");
    KVASIR_TRY(const Answer answer, conversation_.regenerate());
    tell(answer);
    return {};
  }

  Result<void> undo() {
    if (unanswered_.empty() && conversation_.turns().empty()) return no_turn("/undo");
    if (unanswered_.empty()) conversation_.undo();
    unanswered_.clear();
    const size_t left = conversation_.turns().size();
    fmt::print(stderr, "[{} turn{} left]\n", left, left == 1 ? "" : "s");
    return {};
  }

  Result<void> set_system(const std::string& text) {
    conversation_.set_system(text);
    return {};
  }

  static Result<void> no_turn(const char* command) {
    return fail(Error::bad_argument, "nothing has been asked", command, "a turn");
  }

  void tell(const Answer& a) const {
    fmt::print("\n");
    std::fflush(stdout);
    const std::string differs = a.differs < 0 ? "" : fmt::format(", the text differs at token {}", a.differs);
    fmt::print(stderr, "[{} of {} tokens reused{}; first token after {:.1f} ms, {:.1f} tok/s]\n", a.reused,
               a.prompt_tokens, differs, a.ttft_ms, a.decode_tok_s);
    if (!a.receipt.empty()) fmt::print(stderr, "[receipt {}]\n", a.receipt);
    if (a.dropped > 0)
      fmt::print(stderr, "[the context was full: the first {} tokens of the conversation were dropped]\n", a.dropped);
    if (a.full)
      fmt::print(stderr,
                 "[the context of {} positions is full: /save FILE saves the conversation, /clear starts a new one]\n",
                 conversation_.session().ctx());
  }

  Result<void> save(const std::string& path) {
    if (path.empty()) return fail(Error::bad_argument, "/save needs a file name", "chat", "/save conversation.kv");
    KVASIR_CHECK(check_output(path));
    return conversation_.save(path);
  }

  Result<void> load(const std::string& path) {
    if (path.empty()) return fail(Error::bad_argument, "/load needs a file name", "chat", "/load conversation.kv");
    KVASIR_CHECK(conversation_.load(path));
    unanswered_.clear();
    fmt::print("{}\n", conversation_.text());
    return {};
  }

  Result<void> help() {
    fmt::print("{}", kHelp);
    return {};
  }

  Result<void> clear() {
    conversation_.clear();
    return {};
  }

  Result<void> stats() {
    const Session& session = conversation_.session();
    const CacheStats c = session.cache_stats();
    const ConversationTotals& all = conversation_.totals();
    fmt::print("{} of {} positions, {} bytes of KV ({}, K {}, V {}, peak {})\n", session.pos(),
               conversation_.endless() ? "endless" : std::to_string(session.ctx()), with_commas(c.bytes), c.layout,
               c.kv_type_k, c.kv_type_v, with_commas(c.peak_bytes));
    fmt::print("{} turns; {} of the {} prompt tokens of all answers were reused\n", conversation_.turns().size(),
               with_commas(static_cast<uint64_t>(all.reused)), with_commas(static_cast<uint64_t>(all.prompt_tokens)));
    return {};
  }

  Conversation conversation_;
  MessageReader reader_;
  std::string unanswered_;  // text of a turn that failed, for /regen and /edit
};

// Reads messages until the end. Ctrl-C discards what is typed; a second one within two seconds ends the chat.
int talk_with(Chat& chat) {
  constexpr double kAtOnce = 2;  // seconds
  const Interrupts interrupts;
  double interrupted = -kAtOnce;
  for (Typed typed;;) {
    const LineEditor::Event event = chat.read(&typed);
    if (event == LineEditor::Event::line) {
      if (!chat.take(typed)) return kOk;
      continue;
    }
    const double now = now_seconds();
    if (event == LineEditor::Event::end || now - interrupted < kAtOnce) return kOk;
    interrupted = now;
    fmt::print(stderr, "\n[/quit ends the chat; so does Ctrl-C once more]\n");
  }
}

// A model without a template uses plain turns, unless --chat-template was given.
Result<ConversationFormat> conversation_format(const Args& a, bool plain) {
  if (plain || a.chat_format == "plain") return ConversationFormat::plain(a.user, a.assistant);
  KVASIR_TRY(const ChatOptions options, a.chat_template.options());
  auto format = ConversationFormat::of_template(a.model.model, a.chat_template.file, options);
  if (!format && a.chat_template.file.empty() && format.error().kind == Error::not_found)
    return ConversationFormat::plain(a.user, a.assistant);
  return format;
}

Result<ConversationOptions> conversation_options(const Args& a, const Model& model) {
  ConversationOptions conversation = a.conversation;
  GenerateOptions& g = conversation.generate;
  KVASIR_TRY(g.sampling, a.sampling.params(model));
  g.max_tokens = a.n;
  g.stop = a.sampling.stop;
  g.on_event = [](size_t, const Event& event) {
    std::fwrite(event.text.data(), 1, event.text.size(), stdout);
    std::fflush(stdout);
    return std::ferror(stdout) == 0 && !Interrupts::any();
  };
  conversation.piece = std::min(a.engine.engine.prefill_chunk, model.info().max_ctx);
  conversation.interrupted = Interrupts::any;
  conversation.on_full = a.on_full == "slide"       ? OnFullContext::slide
                         : a.on_full == "recompute" ? OnFullContext::recompute
                                                    : OnFullContext::stop;
  return conversation;
}

Result<int> run(const Args& a, const Given& given) {
  KVASIR_CHECK(refuse_images(a.images));
  KVASIR_TRY(const auto model, a.model.open());
  if (model->tokenizer() == nullptr)
    return fail(Error::bad_argument, "this model came without a tokenizer", model->info().path, "--tokenizer FILE");
  KVASIR_TRY(ConversationFormat format, conversation_format(a, given.plain));
  KVASIR_TRY(ConversationOptions conversation, conversation_options(a, *model));
  KVASIR_TRY(const auto engine, Engine::create(model, a.engine.engine));
  KVASIR_TRY(Session session, engine->open_session(session_options(a.engine.session, a.on_full, given.cache)));
  if (isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0)
    fmt::print("{}{}: /help for what else there is\n", model->info().name, format.is_plain() ? ", in plain turns" : "");
  Chat chat(Conversation(*engine, std::move(session), std::move(format), std::move(conversation)));
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
  flags.bind(flag::kSystem, &a->conversation.system);
  flags.bind(
      with_choices(
          with_help(
              flag::kChatFormat,
              "how messages become a prompt; auto: by the model's chat template, or in plain turns if it has none"),
          conversation_format_choices),
      &a->chat_format);
  a->chat_template.add(flags);
  flags.bind(flag::kUser, &a->user);
  flags.bind(flag::kAssistant, &a->assistant);
  flags.bind(flag::kImage, &a->images);
  flags.bind(with_help(flag::kReceipt, "128-bit hash over every logit computed for an answer, shown after it"),
             &a->conversation.generate.receipt);
  flags.footer(
      fmt::format("In a chat:\n{}\nExamples:\n  kvasir chat path/to/model --system \"You are brief.\"\n"
                  "  kvasir chat tales --user \"\" --assistant \"\" -n 60",
                  kHelp));
  *run_command = [a, &flags] {
    return run(
        *a, {.cache = flags.given(flag::kCache), .plain = flags.given(flag::kUser) || flags.given(flag::kAssistant)});
  };
}

}  // namespace

extern const Command cmd_chat;
const Command cmd_chat{"chat", "chat with a model; each turn computes only what is new", add};

}  // namespace kvasir::cli
