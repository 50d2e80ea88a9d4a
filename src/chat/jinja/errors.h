// Constructors for a template's errors, with the wording of Jinja and Python and the template's line.
#pragma once

#include <string>

#include <fmt/format.h>
#include <kvasir/result.h>

namespace kvasir::jinja {

/// The template is not valid Jinja.
inline tl::unexpected<Error> syntax_error(std::string what, int line) {
  return fail(Error::damaged, std::move(what), fmt::format("line {}", line));
}

/// The template is valid Jinja that Kvasir does not support.
inline tl::unexpected<Error> unsupported(const std::string& what, int line) {
  return fail(Error::unsupported, what + " is not supported in a chat template", fmt::format("line {}", line));
}

/// The template exceeds a limit on steps, characters, levels or digits.
inline tl::unexpected<Error> limit_error(std::string what, int line = 0) {
  return fail(Error::too_long, std::move(what), line > 0 ? fmt::format("line {}", line) : std::string());
}

/// An error that Python would raise. Render adds the line.
inline tl::unexpected<Error> failed(std::string what) { return fail(Error::bad_argument, std::move(what)); }

}  // namespace kvasir::jinja
