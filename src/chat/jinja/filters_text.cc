// Filters on texts and numbers.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "chat/jinja/attributes.h"
#include "chat/jinja/filters.h"
#include "chat/jinja/format.h"
#include "chat/jinja/methods.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/repr.h"

namespace kvasir::jinja {
namespace {

// Calls the method of str named `method`.
Result<Value> by_method(Render& render, const Value& of, TextView method, std::vector<Value> arguments) {
  KVASIR_TRY(const Value text, soft_text(render, of));
  return render.call(find_text_method(render, text, method), {.at = std::move(arguments), .named = {}});
}

}  // namespace

Result<Value> filter_upper(Render& render, const Value& of, const Given&) {
  return by_method(render, of, U"upper", {});
}
Result<Value> filter_lower(Render& render, const Value& of, const Given&) {
  return by_method(render, of, U"lower", {});
}
Result<Value> filter_capitalize(Render& render, const Value& of, const Given&) {
  return by_method(render, of, U"capitalize", {});
}
Result<Value> filter_center(Render& render, const Value& of, const Given& given) {
  return by_method(render, of, U"center", {given[0].is_missing() ? Value::of_int(80) : given[0]});
}
Result<Value> filter_trim(Render& render, const Value& of, const Given& given) {
  return by_method(render, of, U"strip", {given[0].is_missing() ? Value::none() : given[0]});
}
Result<Value> filter_string(Render& render, const Value& of, const Given&) { return soft_text(render, of); }

// Words begin after white space, a hyphen or an opening bracket.
Result<Value> filter_title(Render& render, const Value& of, const Given&) {
  KVASIR_TRY(const Value text, soft_text(render, of));
  const auto parts = [](char32_t c) { return is_space(c) || TextView(U"-({[<").find(code(c)) != TextView::npos; };
  Text out;
  const TextView all = text.text();
  for (size_t i = 0; i < all.size();) {
    if (parts(all[i])) {
      out += all[i++];
      continue;
    }
    const size_t begin = i;
    while (i < all.size() && !parts(all[i])) ++i;
    out += upper(all.substr(begin, 1)) + lower(all.substr(begin + 1, i - begin - 1));
  }
  return render.heap().text(std::move(out));
}

Result<Value> filter_replace(Render& render, const Value& of, const Given& given) {
  KVASIR_TRY(const Text text, str_of(render, of));
  KVASIR_TRY(const Text old, str_of(render, given[0]));
  KVASIR_TRY(const Text by, str_of(render, given[1]));
  KVASIR_TRY(const int64_t most, integer_or_none(given[2], -1));
  KVASIR_TRY(Text out, replaced(render, text, old, by, most));
  return render.heap().text(std::move(out));
}

Result<Value> filter_safe(Render& render, const Value& of, const Given&) {
  KVASIR_TRY(Text text, str_of(render, of));
  return render.heap().text(std::move(text), true);
}
Result<Value> filter_escape(Render& render, const Value& of, const Given&) {
  if (of.is_text() && of.is_safe) return of;
  return filter_forceescape(render, of, {});
}
Result<Value> filter_forceescape(Render& render, const Value& of, const Given&) {
  KVASIR_TRY(const Text text, str_of(render, of));
  return render.heap().text(escaped(text), true);
}

Result<Value> filter_indent(Render& render, const Value& of, const Given& given) {
  if (of.is_undefined()) return undefined_error(of);
  if (!of.is_text()) return failed("can only indent a str, not " + type_name(of));
  Text space;
  if (given[0].is_text()) {
    space = Text(given[0].text());
  } else {
    if (!given[0].is_missing() && !given[0].is_int()) return failed("the width is no integer");
    const int64_t width = given[0].is_missing() ? 4 : given[0].to_int();
    KVASIR_CHECK(render.room(static_cast<size_t>(std::max<int64_t>(width, 0))));
    space = Text(static_cast<size_t>(std::max<int64_t>(width, 0)), U' ');
  }
  KVASIR_TRY(const bool first, flag(render, given[1]));
  KVASIR_TRY(const bool blank, flag(render, given[2]));
  Text all(of.text());
  all += U'\n';
  const std::vector<TextView> lines = split_lines(all, false);
  Text out;
  size_t charged = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += U'\n';
    if (i > 0 && (blank || !lines[i].empty())) out += space;
    out += lines[i];
    KVASIR_CHECK(render.grow(out.size(), &charged));
  }
  return render.heap().text(first ? space + out : std::move(out), of.is_safe);
}

Result<Value> filter_truncate(Render& render, const Value& of, const Given& given) {
  const Value length = given[0].is_missing() ? Value::of_int(255) : given[0];
  const Value leeway = given[3].is_missing() || given[3].is_none() ? Value::of_int(5) : given[3];
  KVASIR_TRY(const bool kill_words, flag(render, given[1]));
  const Value end = given[2].is_missing() ? render.heap().text(U"...") : given[2];
  const std::optional<int64_t> end_length = length_of(end);
  if (!end_length) return failed("object of type '" + type_name(end) + "' has no len()");
  if (!length.is_number() || !leeway.is_number()) return failed("the length and the leeway are numbers");
  if (length.to_real() < static_cast<double>(*end_length))
    return failed(fmt::format("expected length >= {}, got {}", *end_length, length.to_real()));
  if (leeway.to_real() < 0) return failed(fmt::format("expected leeway >= 0, got {}", leeway.to_real()));
  if (of.is_undefined()) return Value(of);
  const std::optional<int64_t> size = length_of(of);
  if (!size) return failed("object of type '" + type_name(of) + "' has no len()");
  if (static_cast<double>(*size) <= length.to_real() + leeway.to_real()) return Value(of);
  if (!of.is_text() || !end.is_text()) return failed("only a text can be truncated, and end with one");
  if (!length.is_int()) return failed("slice indices must be integers or None or have an __index__ method");
  TextView kept = of.text().substr(0, static_cast<size_t>(length.to_int() - *end_length));
  if (!kill_words)
    if (const size_t space = find_last(kept, U" "); space != TextView::npos) kept = kept.substr(0, space);
  return calculate(render, Op::add, render.heap().text(Text(kept), of.is_safe), end);
}

Result<Value> filter_wordcount(Render& render, const Value& of, const Given&) {
  KVASIR_TRY(const Value text, soft_text(render, of));
  int64_t words = 0;
  bool in_word = false;
  for (const char32_t c : text.text()) {
    const bool is_letter = code(c) == '_' || is_alnum(c);
    words += is_letter && !in_word;
    in_word = is_letter;
  }
  return Value::of_int(words);
}

Result<Value> filter_format(Render& render, const Value& of, Arguments arguments) {
  if (!arguments.at.empty() && !arguments.named.empty())
    return failed("can't handle positional and keyword arguments at the same time");
  KVASIR_TRY(const Value text, soft_text(render, of));
  Value values;
  if (arguments.named.empty()) {
    values = render.heap().tuple(std::move(arguments.at));
  } else {
    std::vector<std::pair<Value, Value>> pairs;
    for (auto& [name, value] : arguments.named) pairs.emplace_back(render.heap().text(name), value);
    values = render.heap().dict(std::move(pairs));
  }
  return calculate(render, Op::mod, text, values);
}

namespace {

Result<Text> url_quoted(Render& render, const Value& of, bool is_query) {
  KVASIR_TRY(const Text text, str_of(render, of));
  Text out;
  for (const char32_t c : text) {
    const char32_t plain = code(c);
    const bool is_kept = plain < 0x80 && (is_alnum(plain) || TextView(U"_.-~").find(plain) != TextView::npos ||
                                          (plain == '/' && !is_query));
    if (is_kept) {
      out += c;
    } else if (plain == ' ' && is_query) {
      out += marked_as(c, U'+');
    } else {
      for (const char byte : to_utf8(Text(1, plain)))
        for (const char digit : fmt::format("%{:02X}", static_cast<unsigned char>(byte)))
          out += marked_as(c, static_cast<unsigned char>(digit));
    }
  }
  return out;
}

}  // namespace

Result<Value> filter_urlencode(Render& render, const Value& of, const Given&) {
  Value items = of;
  if (of.kind == Kind::dict) items = Value::of_object(render.heap().make<DictView>(of, DictView::items));
  auto all = of.is_text() ? Result<std::vector<Value>>(failed("a text")) : collect(render, items);
  if (!all) {
    KVASIR_TRY(Text text, url_quoted(render, of, false));
    return render.heap().text(std::move(text));
  }
  Text out;
  for (size_t i = 0; i < all->size(); ++i) {
    KVASIR_TRY(const std::vector<Value> pair, collect(render, (*all)[i]));
    if (pair.size() != 2) return failed("urlencode wants pairs");
    KVASIR_TRY(const Text key, url_quoted(render, pair[0], true));
    KVASIR_TRY(const Text value, url_quoted(render, pair[1], true));
    if (i > 0) out += U'&';
    out += key + U'=' + value;
  }
  return render.heap().text(std::move(out));
}

Result<Value> filter_tojson(Render& render, const Value& of, const Given& given) {
  JsonOptions options;
  KVASIR_TRY(options.ensure_ascii, flag(render, given[0]));
  KVASIR_TRY(options.sort_keys, flag(render, given[3]));
  const Value& indent = given[1];
  if (!indent.is_missing() && !indent.is_none() && !of.is_text()) {  // the JSON of a text has no lines
    options.has_indent = true;
    options.between_items = U",";
    if (indent.is_text()) {
      options.indent = Text(indent.text());
    } else {
      KVASIR_TRY(const int64_t width, integer_or(indent, 0));
      KVASIR_CHECK(render.room(static_cast<size_t>(std::max<int64_t>(width, 0))));
      options.indent = Text(static_cast<size_t>(std::max<int64_t>(width, 0)), U' ');
    }
  }
  if (!given[2].is_missing() && !given[2].is_none()) {
    KVASIR_TRY(const std::vector<Value> separators, collect(render, given[2]));
    if (separators.size() != 2) return failed("separators are two");
    const bool are_texts = separators[0].is_text() && separators[1].is_text();
    // The JSON of a text has no separators; with an indentation, json's Python code looks at those that it writes only.
    const bool are_unused = of.is_text() || (options.has_indent && length_of(of).value_or(0) == 0);
    if (!are_texts && !are_unused) return failed("a separator is a str");
    if (are_texts) options.between_items = Text(separators[0].text());
    if (are_texts) options.after_key = Text(separators[1].text());
  }
  KVASIR_TRY(Text text, json_text(render, of, options));
  return render.heap().text(std::move(text));
}

// ---- numbers

Result<Value> filter_abs(Render&, const Value& of, const Given&) {
  if (of.is_undefined()) return failed("bad operand type for abs(): 'Undefined'");
  if (of.kind == Kind::real) return Value::of_real(std::abs(of.real));
  if (!of.is_int()) return failed("bad operand type for abs(): '" + type_name(of) + "'");
  return of.to_int() < 0 ? negative(of) : positive(of);
}

Result<Value> filter_int(Render&, const Value& of, const Given& given) {
  if (of.is_undefined()) return undefined_error(of);
  const Value otherwise = given[0].is_missing() ? Value::of_int(0) : given[0];
  if (of.is_int()) return Value::of_int(of.to_int());
  std::optional<double> real;
  if (of.kind == Kind::real) real = of.real;
  if (of.is_text()) {
    const bool has_base = given[1].is_missing() || given[1].is_int();
    const int64_t base = given[1].is_int() ? given[1].to_int() : 10;
    auto whole = has_base ? parse_integer(of.text(), base) : Result<std::optional<int64_t>>(std::nullopt);
    if (!whole && whole.error().kind == Error::too_long) return tl::unexpected<Error>(whole.error());
    if (whole && *whole) return Value::of_int(**whole);
    real = parse_real(of.text());
  }
  if (!real || std::isnan(*real)) return otherwise;
  KVASIR_TRY(const int64_t cut, integer_of(*real));
  return Value::of_int(cut);
}

Result<Value> filter_float(Render&, const Value& of, const Given& given) {
  if (of.is_undefined()) return undefined_error(of);
  if (of.is_number()) return Value::of_real(of.to_real());
  if (of.is_text())
    if (const auto real = parse_real(of.text())) return Value::of_real(*real);
  return given[0].is_missing() ? Value::of_real(0) : given[0];
}

namespace {

// Rounds to `digits` digits after the point by the exact decimal value of the double; exact halves go to even.
double rounded(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 323) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits >= 0) {
    const std::string text = fmt::format("{:.{}f}", value, digits);
    double result = value;
    std::from_chars(text.data(), text.data() + text.size(), result);
    return result;
  }
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / scale) * scale;
}

Result<Value> rounded_integer(int64_t value, int64_t digits) {
  if (digits >= 0) return Value::of_int(value);
  if (digits < -18) return Value::of_int(0);
  int64_t scale = 1;
  for (int64_t i = 0; i > digits; --i) scale *= 10;
  int64_t rest = value % scale, down = value / scale;
  if (rest < 0) {
    rest += scale;
    --down;
  }
  if (rest > scale - rest || (rest == scale - rest && down % 2 != 0)) ++down;
  int64_t result = 0;
  if (__builtin_mul_overflow(down, scale, &result)) return limit_error("an integer of more than 64 bits");
  return Value::of_int(result);
}

}  // namespace

Result<Value> filter_round(Render& render, const Value& of, const Given& given) {
  const Value method = given[1].is_missing() ? render.heap().text("common") : given[1];
  const bool is_common = method.is_text() && same(method.text(), "common");
  const bool is_up = method.is_text() && same(method.text(), "ceil");
  if (!is_common && !is_up && !(method.is_text() && same(method.text(), "floor")))
    return failed("method must be common, ceil or floor");
  if (of.is_undefined() || !of.is_number()) return failed("type " + type_name(of) + " doesn't define __round__ method");
  if (is_common) {
    if (given[0].is_none() && of.kind == Kind::real) {
      KVASIR_TRY(const int64_t whole, integer_of(std::nearbyint(of.real)));
      return Value::of_int(whole);
    }
    KVASIR_TRY(const int64_t digits, integer_or_none(given[0], 0));
    if (of.is_int()) return rounded_integer(of.to_int(), digits);
    return Value::of_real(rounded(of.real, digits));
  }
  const Value digits = given[0].is_missing() ? Value::of_int(0) : given[0];
  KVASIR_TRY(const Value scale, calculate(render, Op::pow, Value::of_int(10), digits));
  KVASIR_TRY(const Value scaled, calculate(render, Op::mul, of, scale));
  Value whole = scaled;
  if (scaled.kind == Kind::real) {
    KVASIR_TRY(const int64_t cut, integer_of(is_up ? std::ceil(scaled.real) : std::floor(scaled.real)));
    whole = Value::of_int(cut);
  }
  return calculate(render, Op::div, whole, scale);
}

}  // namespace kvasir::jinja
