// The one table of a request's fields: it reads them, refuses what is wrong with them, and is the table of
// docs/api-http.md.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "serve/api/call.h"

namespace kvasir::serve {

struct Field {
  std::string name;
  unsigned kinds;      ///< whose it is
  std::string type;    ///< with its range, for people
  std::string preset;  ///< the value where it is absent
  std::string summary;
  /// Null: it is known and changes nothing.
  std::function<Result<void>(const Json& value, Call* call)> read = {};
};

/// In the order in which they are read: a later one wins.
const std::vector<Field>& fields();

/// Reads an object's fields into a call of `kind`; null is absent. Fields that change nothing, and with `strict` off
/// those that are not known, are named in Call::ignored. Errors: a body that is no object, a field that is missing or
/// wrong, or one that would change the answer and that this server does not do.
Result<Call> read_call(Kind kind, const Json& body, const SamplingParams& defaults, bool strict);

/// The table in Markdown.
std::string fields_table();

}  // namespace kvasir::serve
