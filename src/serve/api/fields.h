// The table of all request fields. It reads and checks the fields, and generates the table in docs/api-http.md.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "serve/api/call.h"

namespace kvasir::serve {

struct Field {
  std::string name;
  unsigned kinds;      ///< the kinds of calls that have the field
  std::string type;    ///< type and range, for the documentation
  std::string preset;  ///< the value if the field is absent
  std::string summary;
  /// Null for a known field that has no effect.
  std::function<Result<void>(const Json& value, Call* call)> read = {};
};

/// In the order in which they are read; a later field overrides an earlier one.
const std::vector<Field>& fields();

/// Reads the fields of an object into a call of `kind`; a null field counts as absent. Fields without effect and,
/// unless `strict`, unknown fields are listed in Call::ignored. Errors: the body is not an object; a field is missing,
/// invalid, or unknown and `strict`; or a field asks for something that this server does not support.
Result<Call> read_call(Kind kind, const Json& body, const SamplingParams& defaults, bool strict);

/// The table in Markdown.
std::string fields_table();

}  // namespace kvasir::serve
