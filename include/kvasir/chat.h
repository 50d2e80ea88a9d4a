// Chat templates: how a model wants a talk written. The Jinja that models' files carry, rendered to a text that knows
// which of its parts a user wrote; and answers taken apart again into reasoning, text and calls of tools.
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

/// A talk as the model is to read it.
struct ChatText {
  std::string text;
  /// The parts that came from messages, tools and other data, ascending: Tokenizer::encode() takes them, so that a
  /// control token that somebody writes in a message stays text.
  std::vector<TextSpan> data = {};
  /// The lines of the template that wrote the text, ascending: each from its byte on. Empty where there is none.
  std::vector<std::pair<std::size_t, int>> lines = {};
};

struct ChatOptions {
  /// Seconds since the epoch, UTC, for templates that write the day; empty: this moment.
  std::optional<double> now = {};
  /// Bring the talk into the form that templates are written for: arguments of tool calls as objects, parts of text as
  /// one text, "developer" as "system" where the template does not know it. False: exactly what is given, as Hugging
  /// Face's transformers would render it.
  bool adapt = true;
  /// False: nothing of the text is data, so that control tokens are read in messages too, as transformers does.
  bool marks_data = true;
};

/// A part of an answer, in the order in which the model wrote it.
struct AnswerPart {
  /// The text of a `call` is the tool's name; of `arguments`, more of them in the model's own bytes.
  enum Kind { content, reasoning, call, arguments };
  Kind kind = content;
  std::string text = {};
  int index = -1;  ///< of the last two kinds: which call, from 0
};

struct AnswerOptions {
  std::vector<std::string> tools = {};  ///< names of the functions that may be called; empty: calls are text
  bool one_call = false;                ///< calls after the first one are dropped
};

/// Takes one answer apart while it is written. Where the text is cut between two calls of push() changes no part, but
/// for parts of one kind that follow each other. Used by one thread at a time.
class KVASIR_API AnswerParser {
 public:
  /// `format`: how the model writes calls, a name of ChatTemplate::answer_format(). `in_reasoning`: the prompt has
  /// begun the model's reasoning. Errors: a name that is not known.
  static Result<AnswerParser> create(std::string_view format, AnswerOptions options = {}, bool in_reasoning = false);
  AnswerParser(AnswerParser&&) noexcept;
  AnswerParser& operator=(AnswerParser&&) noexcept;
  ~AnswerParser();

  /// The parts that became certain with `text`, perhaps none: what may be a mark of the format is held back.
  std::vector<AnswerPart> push(std::string_view text);
  /// What was held. The answer is over; a call that is not complete stays as it is.
  std::vector<AnswerPart> finish();

  bool reasons() const;        ///< the last text was reasoning
  int calls() const;           ///< begun; with one_call, the dropped ones too
  int complete_calls() const;  ///< of these
  /// Letters and digits that ids of calls must have in this format; 0: any number.
  std::size_t id_characters() const;

 private:
  struct Impl;
  explicit AnswerParser(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A model's template. Immutable; every method may be called from many threads at once.
class KVASIR_API ChatTemplate {
 public:
  /// `variables`: what the template knows beside the talk, as the texts of special tokens ("bos_token", "<s>"). Errors:
  /// text that is no Jinja (damaged), constructs that a chat template may not have (unsupported), with the line.
  static Result<std::shared_ptr<const ChatTemplate>> parse(
      std::string_view jinja, std::vector<std::pair<std::string, std::string>> variables = {});

  /// The template of a model, by path or name: chat_template.jinja or tokenizer_config.json of a folder,
  /// tokenizer.chat_template of a GGUF file. `file`: a file of Jinja to take instead; the model still gives the texts
  /// of its special tokens. Errors: not_found where the model has none; those of parse().
  static Result<std::shared_ptr<const ChatTemplate>> of_model(const std::string& name_or_path,
                                                              const std::string& file = {});

  /// `talk`: a JSON object of the template's variables: messages, tools, add_generation_prompt and whatever it knows.
  /// With "continue_final_message": true the text ends with the last message's, so that the model goes on with it.
  /// Errors: what is no such object; what the template itself refuses, in its own words, with "raise_exception" as
  /// Error::where; what Python would raise; the limits of 1M steps and 4M characters.
  Result<ChatText> render(std::string_view talk, const ChatOptions& options = {}) const;

  /// The Jinja that talks without tools are rendered by.
  const std::string& source() const;

  /// How the model writes calls of tools, found by what its template writes: "hermes", "llama3", "mistral",
  /// "deepseek", "gemma", "harmony"; "none" where it is none of these.
  std::string_view answer_format() const;
  /// Whether the Jinja names a variable, so that its value may change the text.
  bool reads(std::string_view variable) const;
  /// Whether the template writes the tools that may be called into the prompt.
  bool writes_tools() const;
  /// For the answer to a talk that was rendered to `prompt`.
  AnswerParser parser(const ChatText& prompt, AnswerOptions options = {}) const;

  ~ChatTemplate();
  struct Impl;  ///< the library's own
  explicit ChatTemplate(std::unique_ptr<const Impl> impl);

 private:
  std::unique_ptr<const Impl> impl_;
};

}  // namespace kvasir
