// A chat template: Jinja as models' files use it, rendered to a text that knows which of its bytes are the template's.
//
// The environment is the one that Hugging Face's transformers gives chat templates: an immutable sandbox, trim_blocks,
// lstrip_blocks, loop controls, {% generation %}, tojson without HTML escapes, raise_exception, strftime_now. Values
// behave as Python's do. Source: Jinja 3.1's documentation and behaviour; tests/golden/compare_templates.py compares.
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
  /// The parts that came from the data, ascending: no special token may be read in them.
  std::vector<TextSpan> data;
  /// The lines of the template that wrote it: each from its byte on.
  std::vector<std::pair<size_t, int>> lines;
};

/// Immutable; render() may be called from many threads at once.
class Template {
 public:
  /// Errors: what is no Jinja (damaged), what a chat template may not have (unsupported), with the line.
  static Result<Template> parse(std::string_view source);

  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  /// `context`: an object of the template's variables. Its texts are data, but for variables whose names end with
  /// "_token" and for the roles that messages commonly have: those are the template's own. `now`: seconds since the
  /// epoch, for strftime_now. Errors: the template's own (where = "raise_exception"), what Python would raise
  /// (bad_argument), the limits of 1M steps, 4M characters and 64 calls (too_long).
  Result<Rendered> render(const nlohmann::ordered_json& context, double now) const;

 private:
  struct Tree;
  explicit Template(std::unique_ptr<const Tree> tree);
  std::unique_ptr<const Tree> tree_;
};

}  // namespace kvasir::jinja
