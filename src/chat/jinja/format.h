// Texts from values: "%s" % x, "{}".format(x), JSON, and numbers from texts.
#pragma once

#include "chat/jinja/objects.h"

namespace kvasir::jinja {

/// `format % value`: a tuple is several arguments, a dict is for %(name)s.
Result<Text> percent_format(Render& render, const Value& format, const Value& value);
/// `format.format(...)`. Both write what they put into a Markup as HTML.
Result<Text> brace_format(Render& render, const Value& format, const Arguments& arguments);
/// A number or text by a format specification: ">10", "+.2f", ",d". In format_number.cc.
Result<Text> format_by(Render& render, const Value& value, TextView specification);

struct JsonOptions {
  bool ensure_ascii = false, sort_keys = false, has_indent = false;
  Text indent;  ///< of one level
  Text between_items = U", ", after_key = U": ";
};
/// json.dumps. Errors: a value that JSON has no place for.
Result<Text> json_text(Render& render, const Value& value, const JsonOptions& options);

/// str.replace; most < 0: all of them.
Result<Text> replaced(Render& render, TextView text, TextView old, TextView by, int64_t most);

/// int(text, base) and float(text); nothing where Python raises ValueError. Errors: more than 64 bits, a bad base.
Result<std::optional<int64_t>> parse_integer(TextView text, int64_t base);
std::optional<double> parse_real(TextView text);
/// int(value): cut towards zero. Errors: infinite, not a number, more than 64 bits.
Result<int64_t> integer_of(double value);

/// A real as printf would: 'e', 'f' or 'g', or their capitals; `alternate` keeps a point and zeros.
std::string real_by(double value, char type, int precision, bool alternate);

}  // namespace kvasir::jinja
