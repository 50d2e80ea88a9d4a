// Errors as values: what went wrong, where, and what to try. The library never prints, exits or aborts on input.
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace kvasir {

/// One refused request. Every part is a clause without a final period; `where` and `hint` may be empty.
struct Error {
  std::string what;   ///< what is wrong, with the numbers
  std::string where;  ///< the file, tensor, key or flag
  std::string hint;   ///< what to try

  /// One line: "where: what (try: hint)".
  std::string message() const {
    std::string text = where.empty() ? what : where + ": " + what;
    if (!hint.empty()) text += " (try: " + hint + ")";
    return text;
  }
};

template <class T>
using Result = tl::expected<T, Error>;

/// Usage: `return fail("header of 9 bytes is past the end", path, "download the file again");`
inline tl::unexpected<Error> fail(std::string what, std::string where = {}, std::string hint = {}) {
  return tl::unexpected<Error>(Error{std::move(what), std::move(where), std::move(hint)});
}

}  // namespace kvasir

// Evaluates a Result; on error returns it from the enclosing function, else binds the value.
#define KVASIR_CONCAT_INNER(a, b) a##b
#define KVASIR_CONCAT(a, b) KVASIR_CONCAT_INNER(a, b)
#define KVASIR_TRY(decl, expr) KVASIR_TRY_IMPL(KVASIR_CONCAT(kvasir_try_, __LINE__), decl, expr)
#define KVASIR_TRY_IMPL(tmp, decl, expr)                                    \
  auto tmp = (expr);                                                        \
  if (!tmp) return tl::unexpected<::kvasir::Error>(std::move(tmp).error()); \
  decl = std::move(*tmp)
// The same for Result<void>.
#define KVASIR_CHECK(expr)                                                      \
  do {                                                                          \
    if (auto kvasir_check_ = (expr); !kvasir_check_)                            \
      return tl::unexpected<::kvasir::Error>(std::move(kvasir_check_).error()); \
  } while (0)
