// kvasir explain-cache: shows where the prompts of two requests differ, and which template line wrote that part.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <kvasir/chat.h>

#include "cli/prompt_args.h"
#include "cli/template_args.h"
#include "serve/api/fields.h"
#include "serve/api/prompts.h"
#include "serve/api/translate.h"

namespace kvasir::cli {
namespace {

struct Args {
  std::vector<std::string> files;
  TemplateArgs chat_template;
  bool json = false;
};

/// One request as the model reads it.
struct Prompt {
  std::string file;
  ChatText text = {};
  std::vector<int> ids = {};  ///< empty without a tokenizer
};

bool has_blocks(const serve::Json& body) {
  for (const serve::Json& message : body.value("messages", serve::Json::array())) {
    const serve::Json content = message.is_object() ? message.value("content", serve::Json()) : serve::Json();
    if (!content.is_array()) continue;
    for (const serve::Json& block : content) {
      const serve::Json type = block.is_object() ? block.value("type", serve::Json()) : serve::Json();
      if (type == "tool_use" || type == "tool_result" || type == "thinking") return true;
    }
  }
  return false;
}

// Translates a request of any of the server's APIs to chat completions. The API is recognised by members that only it
// has.
Result<serve::Json> as_chat(const serve::Json& body) {
  if (!body.is_object()) return body;  // read_call() returns the error
  if (body.contains("input")) {
    KVASIR_TRY(serve::Translated chat, serve::translate_responses(body));
    return std::move(chat.body);
  }
  if (!body.contains("system") && !has_blocks(body)) return body;
  KVASIR_TRY(serve::Translated chat, serve::translate_messages(body, true));
  return std::move(chat.body);
}

Result<Prompt> read_prompt(const std::string& file, const serve::ChatFormat& format, const Tokenizer* tokenizer) {
  Prompt prompt{.file = file};
  KVASIR_TRY(const std::string bytes, read_text_file(file));
  KVASIR_TRY(const serve::Json body, serve::parse_json(bytes));
  KVASIR_TRY(const serve::Json chat, as_chat(body));
  KVASIR_TRY(const serve::Call call, serve::read_call(serve::kChat, chat, {}, false));
  std::vector<std::string> stops;
  KVASIR_TRY(prompt.text, serve::render_conversation(call, format, &stops));
  if (tokenizer != nullptr) {
    KVASIR_TRY(prompt.ids, serve::conversation_ids(prompt.text, format, *tokenizer));
  }
  return prompt;
}

Result<Prompt> prompt_of(const std::string& file, const serve::ChatFormat& format, const Tokenizer* tokenizer) {
  auto prompt = read_prompt(file, format, tokenizer);
  if (!prompt && !prompt.error().where.starts_with(file)) prompt.error().where = file + ": " + prompt.error().where;
  return prompt;
}

template <typename T>
size_t common(const T& a, const T& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// The start of the UTF-8 character that contains byte `at`.
size_t whole_character(const std::string& text, size_t at) {
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return at;
}

int line_at(const ChatText& text, size_t at) {
  const auto after = std::upper_bound(text.lines.begin(), text.lines.end(), at,
                                      [](size_t place, const auto& line) { return place < line.first; });
  return after == text.lines.begin() ? 0 : (after - 1)->second;
}

bool is_data(const ChatText& text, size_t at) {
  return std::any_of(text.data.begin(), text.data.end(),
                     [&](const TextSpan& span) { return span.begin <= at && at < span.end; });
}

// A piece of a prompt as a JSON string, on one line.
std::string shown(const std::string& text, size_t begin, size_t end) {
  begin = whole_character(text, std::min(begin, text.size()));
  end = whole_character(text, std::min(end, text.size()));
  return serve::to_text(serve::Json(text.substr(begin, end - begin)));
}

constexpr size_t kBefore = 60, kAfter = 100;  // bytes of a prompt to show before and after the difference

serve::Json side_json(const Prompt& p, size_t at) {
  serve::Json json = {{"file", p.file}, {"characters", p.text.text.size()}};
  if (!p.ids.empty()) json["tokens"] = p.ids.size();
  const bool ends = at >= p.text.text.size();
  json["template_line"] = ends ? serve::Json() : serve::Json(line_at(p.text, at));
  json["from"] = ends ? "the end" : is_data(p.text, at) ? "the request" : "the template";
  json["text"] = p.text.text.substr(at, whole_character(p.text.text, std::min(at + kAfter, p.text.text.size())) - at);
  return json;
}

void print_side(const char* name, const Prompt& p, size_t at) {
  if (at >= p.text.text.size()) {
    fmt::print("{}  ends\n", name);
    return;
  }
  fmt::print("{}  {}\n   line {} of the template wrote it, from {}\n", name, shown(p.text.text, at, at + kAfter),
             line_at(p.text, at), is_data(p.text, at) ? "the request" : "its own text");
}

void print_all(const Prompt& a, const Prompt& b, size_t at, size_t kept) {
  const auto size = [](const Prompt& p) {
    return fmt::format("{} bytes", p.text.text.size()) +
           (p.ids.empty() ? "" : fmt::format(", {} tokens", p.ids.size()));
  };
  fmt::print("A  {}: {}\nB  {}: {}\n", a.file, size(a), b.file, size(b));
  if (!a.ids.empty()) fmt::print("B uses the first {} of A's {} tokens again\n", kept, a.ids.size());
  if (at == a.text.text.size()) {
    fmt::print("B continues where A ends\n");
    return;
  }
  fmt::print("they differ from byte {} on, after {}\n", at, shown(a.text.text, at - std::min(at, kBefore), at));
  print_side("A", a, at);
  print_side("B", b, at);
}

Result<int> run(const Args& args) {
  const size_t files = args.files.size();
  if (files != 2 && files != 3)
    return fail(Error::bad_argument, fmt::format("{} files", files), "CHATS", "[MODEL] A.json B.json");
  serve::ChatFormat format;
  KVASIR_TRY(format.options, args.chat_template.options());
  std::shared_ptr<const Tokenizer> tokenizer;
  if (files == 3) {
    KVASIR_TRY(format.chat_template, ChatTemplate::of_model(args.files[0], args.chat_template.file));
    KVASIR_TRY(tokenizer, open_tokenizer(args.files[0]));
  } else if (args.chat_template.file.empty()) {
    return fail(Error::bad_argument, "no template is given", "CHATS", "MODEL A.json B.json, or --chat-template FILE");
  } else {
    KVASIR_TRY(const std::string jinja, read_text_file(args.chat_template.file));
    KVASIR_TRY(format.chat_template, ChatTemplate::parse(jinja));
  }
  KVASIR_TRY(const Prompt a, prompt_of(args.files[files - 2], format, tokenizer.get()));
  KVASIR_TRY(const Prompt b, prompt_of(args.files[files - 1], format, tokenizer.get()));
  const size_t at = whole_character(a.text.text, common(a.text.text, b.text.text)), kept = common(a.ids, b.ids);
  if (args.json) {
    serve::Json json = {{"differs_at", at}, {"a", side_json(a, at)}, {"b", side_json(b, at)}};
    if (!a.ids.empty()) json["reused_tokens"] = kept;
    fmt::print("{}\n", serve::to_text(json));
  } else {
    print_all(a, b, at, kept);
  }
  return at == a.text.text.size() ? kOk : kCheckFailed;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  flags.bind(flag::kTwoChatFiles, &a->files);
  a->chat_template.add(flags);
  flags.bind(with_help(flag::kJson, "one JSON object on stdout: differs_at, reused_tokens, a, b"), &a->json);
  flags.footer(
      "A.json and B.json are bodies of requests as the server takes them: chat completions, messages or responses.\n"
      "Exit code 0: B continues where A ends, 1: they differ before that.\n"
      "Examples:\n  kvasir explain-cache path/to/folder turn1.json turn2.json\n"
      "  kvasir explain-cache --chat-template chat.jinja turn1.json turn2.json");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_explain_cache;
const Command cmd_explain_cache{"explain-cache", "show where the prompts of two requests differ, and why", add};

}  // namespace kvasir::cli
