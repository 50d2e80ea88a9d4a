// Errors as values: what went wrong, where, and what to try. The library never prints, exits or aborts on bad input.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

#include <kvasir/version.h>

namespace kvasir {

/// Why a call failed. Every text is a clause without a final period; `where` and `hint` may be empty. Callers decide by
/// the kind, never by the text.
struct Error {
  enum Kind {
    bad_argument,  ///< a parameter out of range, an unknown name, a call that the object's state forbids
    too_long,      ///< a prompt or text that does not fit the context
    no_room,       ///< memory or a memory budget is exhausted: the same call may succeed later
    not_found,     ///< a file or model does not exist
    unsupported,   ///< valid input that Kvasir cannot handle (an architecture, a weight type)
    damaged,       ///< a file that contradicts itself or its format
    io,            ///< the operating system refused or failed
    not_finite,    ///< a logit is NaN or infinite
    busy,          ///< a queue is full: the same call may succeed later
    closing,       ///< a scheduler that drains accepts no new requests and fails those that outlast the drain
    timed_out,     ///< a request exceeded its time limit
    internal,      ///< a bug in Kvasir
  };
  Kind kind = internal;
  std::string what;  ///< what is wrong, with the numbers
  /// The file, tensor or key; or the parameter as the API spells it, "SessionOptions::ctx". Hints name parameters in
  /// the same spelling, so that a front end can substitute its own names.
  std::string where;
  std::string hint;  ///< what to try

  /// One line: "where: what (try: hint)".
  std::string message() const {
    std::string text = where.empty() ? what : where + ": " + what;
    if (!hint.empty()) text += " (try: " + hint + ")";
    return text;
  }
};

template <class T>
using Result = tl::expected<T, Error>;

/// The name of a kind, as the enum spells it: "no_room".
KVASIR_API std::string_view kind_name(Error::Kind kind);

/// Usage: `return fail(Error::damaged, "header of 9 bytes is past the end", path, "download the file again");`
inline tl::unexpected<Error> fail(Error::Kind kind, std::string what, std::string where = {}, std::string hint = {}) {
  return tl::unexpected<Error>(Error{kind, std::move(what), std::move(where), std::move(hint)});
}

}  // namespace kvasir

// Evaluates a Result; on error returns the error from the enclosing function, else binds the value to `decl`.
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
