// Formats values as text: "%s" % x, "{}".format(x), JSON. Also parses numbers.
#pragma once

#include "chat/jinja/objects.h"

namespace kvasir::jinja {

/// `format % value`. A tuple holds several arguments, a dict the values of %(name)s. A Markup format escapes the
/// inserted values as HTML.
Result<Text> percent_format(Render& render, const Value& format, const Value& value);
/// `format.format(...)`. A Markup format escapes the inserted values as HTML.
Result<Text> brace_format(Render& render, const Value& format, const Arguments& arguments);
/// Formats a number or text by a format specification: ">10", "+.2f", ",d". In format_number.cc.
Result<Text> format_by(Render& render, const Value& value, TextView specification);

struct JsonOptions {
  bool ensure_ascii = false, sort_keys = false, has_indent = false;
  Text indent;  ///< indentation of one level
  Text between_items = U", ", after_key = U": ";
};
/// json.dumps. Errors: a value that JSON cannot represent.
Result<Text> json_text(Render& render, const Value& value, const JsonOptions& options);

/// str.replace of the first `most` occurrences; of all if most < 0.
Result<Text> replaced(Render& render, TextView text, TextView old, TextView by, int64_t most);

/// int(text, base) and float(text); null where Python raises ValueError. Errors: more than 64 bits, an invalid base.
Result<std::optional<int64_t>> parse_integer(TextView text, int64_t base);
std::optional<double> parse_real(TextView text);
/// int(value), truncated towards zero. Errors: infinity, NaN, more than 64 bits.
Result<int64_t> integer_of(double value);

/// Formats a real like printf with type 'e', 'f' or 'g' or their capitals. `alternate` is printf's '#': it keeps the
/// point and trailing zeros.
std::string real_by(double value, char type, int precision, bool alternate);

}  // namespace kvasir::jinja
