// The public ChatTemplate: loads a template and its variables, renders a conversation, and truncates the text when the
// last message is to be continued.
#include <kvasir/chat.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>
#include <kvasir/model.h>

#include "base/files.h"
#include "chat/adapt.h"
#include "chat/formats/call_format.h"
#include "chat/jinja/template.h"
#include "chat/sources.h"

namespace kvasir {
namespace {

using Json = nlohmann::ordered_json;
using Variables = std::vector<std::pair<std::string, std::string>>;

constexpr size_t kMostBytes = size_t{4} << 20;

// Whether the template handles contents that are lists of parts. Tested by rendering a message of one part and
// searching for its text.
bool walks_parts(const jinja::Template& jinja, const Json& variables) {
  constexpr const char* kProbe = "a text that no template has";
  Json conversation = variables;
  conversation["messages"] =
      Json::array({{{"role", "user"}, {"content", Json::array({{{"type", "text"}, {"text", kProbe}}})}}});
  const auto rendered = jinja.render(conversation, 0);
  return rendered && rendered->text.find(kProbe) != std::string::npos &&
         rendered->text.find("'type'") == std::string::npos && rendered->text.find("\"type\"") == std::string::npos;
}

// Whether the template writes tools into the prompt. Tested by rendering a tool with a unique name and searching for
// it.
bool puts_in_tools(const jinja::Template& jinja, const Json& variables) {
  constexpr const char* kProbe = "a_name_that_no_template_has";
  Json conversation = variables;
  conversation["messages"] = Json::array({{{"role", "user"}, {"content", "a"}}});
  const Json parameters = {{"type", "object"}, {"properties", Json::object()}};
  const Json function = {{"name", kProbe}, {"description", "b"}, {"parameters", parameters}};
  conversation["tools"] = Json::array({{{"type", "function"}, {"function", function}}});
  const auto rendered = jinja.render(conversation, 0);
  return rendered && rendered->text.find(kProbe) != std::string::npos;
}

constexpr std::string_view kSpace = " \t\n\r\f\v";

std::string_view trimmed(std::string_view text, bool at_end) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  return at_end ? text.substr(0, text.find_last_not_of(kSpace) + 1) : text;
}

// Truncates the text after the last message's content.
Result<void> cut_after_last(const Json& conversation, ChatText* text) {
  const Json& messages = conversation["messages"];
  const Json content = messages.is_array() && !messages.empty() ? messages.back().value("content", Json()) : Json();
  if (!content.is_string())
    return fail(Error::bad_argument, "the last message has no text to continue", "continue_final_message");
  const std::string& last = content.get_ref<const std::string&>();
  const size_t at = text->text.rfind(trimmed(last, true));
  if (at == std::string::npos)
    return fail(Error::unsupported, "the template changes the text of the last message", "continue_final_message");
  const std::string_view whole = trimmed(last, false);
  const bool is_kept = text->text.compare(at, whole.size(), whole) == 0;
  text->text.resize(at + (is_kept ? whole.size() : trimmed(last, true).size()));
  while (!text->data.empty() && text->data.back().begin >= text->text.size()) text->data.pop_back();
  if (!text->data.empty()) text->data.back().end = std::min(text->data.back().end, text->text.size());
  return {};
}

}  // namespace

struct ChatTemplate::Impl {
  struct One {
    std::string source;
    jinja::Template jinja;
    bool walks_parts;
    bool knows_developer;
    bool writes_tools;
    const CallFormat* format;
  };
  One plain;
  std::optional<One> for_tools;
  Json variables = Json::object();

  static Result<One> read(std::string_view source, const Json& variables) {
    KVASIR_TRY(jinja::Template jinja, jinja::Template::parse(source));
    const bool parts = walks_parts(jinja, variables);
    const bool tools = puts_in_tools(jinja, variables);
    const bool developer = source.find("developer") != std::string_view::npos;
    return One{std::string(source), std::move(jinja), parts, developer, tools, &call_format_of(source)};
  }

  const One& tools() const { return for_tools ? *for_tools : plain; }

  static Result<std::shared_ptr<const ChatTemplate>> make(std::string_view source, const std::string* for_tools,
                                                          const Variables& texts) {
    Json variables = Json::object();
    for (const auto& [name, text] : texts) variables[name] = text;
    KVASIR_TRY(One plain, read(source, variables));
    auto impl = std::make_unique<Impl>(Impl{std::move(plain), std::nullopt, std::move(variables)});
    if (for_tools != nullptr) {
      KVASIR_TRY(impl->for_tools, read(*for_tools, impl->variables));
    }
    return std::make_shared<const ChatTemplate>(std::unique_ptr<const Impl>(std::move(impl)));
  }
};

ChatTemplate::ChatTemplate(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::~ChatTemplate() = default;

const std::string& ChatTemplate::source() const { return impl_->plain.source; }

std::string_view ChatTemplate::answer_format() const { return impl_->tools().format->name; }
bool ChatTemplate::reads(std::string_view variable) const {
  const auto names = [&](const Impl::One& one) { return one.source.find(variable) != std::string::npos; };
  return names(impl_->plain) || (impl_->for_tools && names(*impl_->for_tools));
}

bool ChatTemplate::writes_tools() const { return impl_->tools().writes_tools; }

AnswerParser ChatTemplate::parser(const ChatText& prompt, AnswerOptions options) const {
  const CallFormat& format = *impl_->tools().format;
  const std::string_view text = std::string_view(prompt.text).substr(0, prompt.text.find_last_not_of(kSpace) + 1);
  const bool is_data = !prompt.data.empty() && prompt.data.back().end >= text.size();
  return *AnswerParser::create(format.name, std::move(options), !is_data && text.ends_with(format.think.begin));
}

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::parse(std::string_view jinja, Variables variables) {
  return Impl::make(jinja, nullptr, variables);
}

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::of_model(const std::string& name_or_path,
                                                                   const std::string& file) {
  KVASIR_TRY(const std::string path, find_model(name_or_path));
  KVASIR_TRY(ChatSources sources, read_chat_sources(path));
  std::string where = path;
  if (!file.empty()) {
    KVASIR_TRY(sources.jinja, read_text_file(file, kMostBytes));
    sources.for_tools.reset();
    where = file;
  }
  if (!sources.jinja) sources.jinja = std::exchange(sources.for_tools, std::nullopt);
  if (!sources.jinja) return fail(Error::not_found, "the model's files have no chat template", path, "a file of Jinja");
  auto made = Impl::make(*sources.jinja, sources.for_tools ? &*sources.for_tools : nullptr, sources.variables);
  if (!made) made.error().where = where + ": chat template, " + made.error().where;
  return made;
}

Result<ChatText> ChatTemplate::render(std::string_view conversation, const ChatOptions& options) const {
  Json context = impl_->variables;
  Json given = Json::parse(conversation, nullptr, false);
  if (!given.is_object())
    return fail(Error::bad_argument, "it is not a JSON object", "conversation", R"({"messages": [...]})");
  for (auto& [name, value] : given.items()) context[name] = std::move(value);
  const auto tools = context.find("tools");
  const bool has_tools = tools != context.end() && tools->is_array() && !tools->empty();
  const Impl::One& one = has_tools && impl_->for_tools ? *impl_->for_tools : impl_->plain;
  if (options.adapt) adapt_conversation(&context, one.walks_parts, one.knows_developer);
  const bool goes_on = options.adapt && context.value("continue_final_message", Json()) == true;
  const auto moment = std::chrono::system_clock::now().time_since_epoch();
  const double now = options.now.value_or(std::chrono::duration<double>(moment).count());
  KVASIR_TRY(jinja::Rendered rendered, one.jinja.render(context, now));
  ChatText text{std::move(rendered.text), std::move(rendered.data), std::move(rendered.lines)};
  if (goes_on) KVASIR_CHECK(cut_after_last(context, &text));
  if (!options.marks_data) text.data.clear();
  return text;
}

}  // namespace kvasir
