// The kinds of errors of a template, in the words and with the lines that its writer knows.
#pragma once

#include <string>

#include <fmt/format.h>
#include <kvasir/result.h>

namespace kvasir::jinja {

/// Jinja could not read the template either.
inline tl::unexpected<Error> syntax_error(std::string what, int line) {
  return fail(Error::damaged, std::move(what), fmt::format("line {}", line));
}

/// Jinja can, and Kvasir does not.
inline tl::unexpected<Error> unsupported(const std::string& what, int line) {
  return fail(Error::unsupported, what + " is not supported in a chat template", fmt::format("line {}", line));
}

/// More steps, characters, levels or digits than a template may have.
inline tl::unexpected<Error> limit_error(std::string what, int line = 0) {
  return fail(Error::too_long, std::move(what), line > 0 ? fmt::format("line {}", line) : std::string());
}

/// What Python would have raised.
inline tl::unexpected<Error> failed(std::string what) { return fail(Error::bad_argument, std::move(what)); }

}  // namespace kvasir::jinja
