// Parses and renders a chat template in Jinja. The result records which bytes came from the data.
//
// The environment is the one that Hugging Face's transformers gives chat templates: an immutable sandbox, trim_blocks,
// lstrip_blocks, loop controls, {% generation %}, tojson without HTML escapes, raise_exception, strftime_now. Values
// behave like Python's. Source: Jinja 3.1's documentation and behaviour; tests/golden/compare_templates.py compares.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kvasir/result.h>
#include <kvasir/tokenizer.h>
#include <nlohmann/json.hpp>

namespace kvasir::jinja {

struct Rendered {
  std::string text;
  /// The spans that came from the data, ascending. The tokenizer must not look for special tokens in them.
  std::vector<TextSpan> data;
  /// Pairs (first byte, line of the template that wrote the text from there on).
  std::vector<std::pair<size_t, int>> lines;
};

/// Immutable; render() may be called from many threads at once.
class Template {
 public:
  /// Errors, with the line: invalid Jinja (damaged), a feature that chat templates may not use (unsupported), a limit
  /// (too_long).
  static Result<Template> parse(std::string_view source);

  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  /// `context`: an object of the template's variables. Its texts are data, except variables whose names end in "_token"
  /// and the common roles of messages, which count as the template's own text. `now`: seconds since the epoch, for
  /// strftime_now. Errors: raised by the template (where = "raise_exception"), an error that Python would raise
  /// (bad_argument), or a limit: 1M steps, 4M characters, 64 nested calls (too_long).
  Result<Rendered> render(const nlohmann::ordered_json& context, double now) const;

 private:
  struct Tree;
  explicit Template(std::unique_ptr<const Tree> tree);
  std::unique_ptr<const Tree> tree_;
};

}  // namespace kvasir::jinja
