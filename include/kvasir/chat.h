// Chat templates: how a model wants a talk written. The Jinja that models' files carry, rendered to a text that knows
// which of its parts a user wrote.
// How answers are taken apart again (calls of tools, reasoning) is not here.
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
  std::vector<TextSpan> data;
};

struct ChatOptions {
  /// Seconds since the epoch, UTC, for templates that write the day; empty: this moment.
  std::optional<double> now = {};
  /// Bring the talk into the form that templates are written for: arguments of tool calls as objects, parts of text as
  /// one text, "developer" as "system" where the template does not know it. False: exactly what is given, as Hugging
  /// Face's transformers would render it.
  bool adapt = true;
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

  ~ChatTemplate();
  struct Impl;  ///< the library's own
  explicit ChatTemplate(std::unique_ptr<const Impl> impl);

 private:
  std::unique_ptr<const Impl> impl_;
};

}  // namespace kvasir
