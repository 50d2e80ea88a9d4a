// Chat templates: the Jinja in a model's files turns a conversation into a prompt, which marks the parts that come from
// data. Answers are parsed into reasoning, text and tool calls. Tokenizing is in tokenizer.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kvasir/result.h>
#include <kvasir/tokenizer.h>
#include <kvasir/version.h>

namespace kvasir {

/// A conversation rendered as the text of a prompt.
struct ChatText {
  std::string text;
  /// The parts that come from messages, tools and other data, ascending. Pass them to Tokenizer::encode(), so that a
  /// control token written in a message stays text.
  std::vector<TextSpan> data = {};
  /// Which template line wrote which part: (byte offset, line), ascending; a line's part ends where the next one
  /// begins. Empty if the lines are unknown.
  std::vector<std::pair<std::size_t, int>> lines = {};
};

struct ChatOptions {
  /// Time for templates that write the date, in seconds since the epoch, UTC; empty: now.
  std::optional<double> now = {};
  /// True: adapt the conversation to the form that templates expect: arguments of tool calls as objects, text parts
  /// joined into one text, "developer" as "system" if the template does not know it. False: render exactly what is
  /// given, as Hugging Face's transformers would.
  bool adapt = true;
  /// False: ChatText::data stays empty, so that control tokens are recognised in messages too, as transformers does.
  bool marks_data = true;
};

/// A part of an answer. Parts come in the order in which the model wrote them.
struct AnswerPart {
  /// The text of a `call` is the tool's name; that of `arguments` is a piece of them, in the model's own bytes.
  enum Kind { content, reasoning, call, arguments };
  Kind kind = content;
  std::string text = {};
  int index = -1;  ///< for `call` and `arguments`: number of the call, from 0
};

struct AnswerOptions {
  std::vector<std::string> tools = {};  ///< names of functions that may be called; empty: calls are reported as text
  bool one_call = false;                ///< drop calls after the first one
};

/// Parses one answer while it is written. The result does not depend on how the text is split over calls of push(),
/// except that a part may arrive in several pieces of its kind. Used by one thread at a time.
class KVASIR_API AnswerParser {
 public:
  /// `format`: how the model writes calls, as ChatTemplate::answer_format() returns it. `in_reasoning`: the prompt
  /// already opened the model's reasoning. Errors: bad_argument, an unknown format.
  static Result<AnswerParser> create(std::string_view format, AnswerOptions options = {}, bool in_reasoning = false);
  AnswerParser(AnswerParser&&) noexcept;
  AnswerParser& operator=(AnswerParser&&) noexcept;
  ~AnswerParser();

  /// Returns the parts that became final with `text`, perhaps none: bytes that may begin a marker of the format are
  /// held back.
  std::vector<AnswerPart> push(std::string_view text);
  /// Ends the answer and returns what was held back. An incomplete call stays incomplete.
  std::vector<AnswerPart> finish();

  bool reasons() const;        ///< whether the answer is inside reasoning now
  int calls() const;           ///< number of calls begun, including those that one_call drops
  int complete_calls() const;  ///< number of these that are complete
  /// Number of letters and digits that ids of calls must have in this format; 0: any.
  std::size_t id_characters() const;

 private:
  struct Impl;
  explicit AnswerParser(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A model's chat template. Immutable; every method may be called from many threads at once.
class KVASIR_API ChatTemplate {
 public:
  /// `variables`: (name, value) pairs that the template may read besides the conversation: texts of special tokens
  /// ("bos_token", "<s>"). Errors, with the line: damaged, not valid Jinja; unsupported, constructs that a chat
  /// template may not use.
  static Result<std::shared_ptr<const ChatTemplate>> parse(
      std::string_view jinja, std::vector<std::pair<std::string, std::string>> variables = {});

  /// The template of a model, by path or name: chat_template.jinja or tokenizer_config.json of a folder,
  /// tokenizer.chat_template of a GGUF file. `file`: a Jinja file to use instead; the model then provides only the
  /// texts of its special tokens. Errors: not_found, the model has no template; those of parse().
  static Result<std::shared_ptr<const ChatTemplate>> of_model(const std::string& name_or_path,
                                                              const std::string& file = {});

  /// `conversation`: a JSON object with the template's variables: messages, tools, add_generation_prompt and any other
  /// that it reads. With "continue_final_message": true the text ends where the last message's text ends, so that the
  /// model continues it. Errors: bad_argument, not a JSON object, a refusal by the template itself, in its own words,
  /// with "raise_exception" as Error::where, or an error that Python would raise; unsupported, a last message that the
  /// template does not let the model continue; too_long, more than 1M steps or 4M characters.
  Result<ChatText> render(std::string_view conversation, const ChatOptions& options = {}) const;

  /// The Jinja source that renders conversations without tools.
  const std::string& source() const;

  /// How the model writes tool calls, detected from what its template writes: "hermes", "llama3", "mistral",
  /// "deepseek", "gemma", "harmony"; otherwise "none".
  std::string_view answer_format() const;
  /// Whether the Jinja source names a variable, so that its value may change the text.
  bool reads(std::string_view variable) const;
  /// Whether the template writes the available tools into the prompt.
  bool writes_tools() const;
  /// Returns a parser for the answer to `prompt`, a result of render().
  AnswerParser parser(const ChatText& prompt, AnswerOptions options = {}) const;

  ~ChatTemplate();
  struct Impl;  ///< internal to the library
  explicit ChatTemplate(std::unique_ptr<const Impl> impl);

 private:
  std::unique_ptr<const Impl> impl_;
};

}  // namespace kvasir
