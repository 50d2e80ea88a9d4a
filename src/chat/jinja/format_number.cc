// Formats a value by a format specification, and parses numbers.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "chat/jinja/format.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/repr.h"

namespace kvasir::jinja {
namespace {

// [[fill]align][sign][z][#][0][width][grouping][.precision][type]
struct Specification {
  char32_t fill = ' ', align = 0, sign = 0, grouping = 0, type = 0;
  bool alternate = false, zero = false;  // zero: the alignment comes from a leading 0 only
  int64_t width = 0, precision = -1;
};

bool is_align(char32_t c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

Result<Specification> parse(TextView text) {
  Specification s;
  size_t at = 0;
  const auto peek = [&] { return at < text.size() ? code(text[at]) : 0; };
  const auto number = [&](int64_t* into) -> bool {
    const size_t begin = at;
    for (*into = 0; peek() >= '0' && peek() <= '9' && *into < 1'000'000'000; ++at) *into = *into * 10 + (peek() - '0');
    return at > begin;
  };
  const bool has_fill = text.size() > 1 && is_align(code(text[1]));
  if (has_fill) {
    s.fill = text[0];
    s.align = code(text[1]);
    at = 2;
  } else if (is_align(peek())) {
    s.align = code(text[at++]);
  }
  if (peek() == '+' || peek() == '-' || peek() == ' ') s.sign = code(text[at++]);
  if (peek() == '#') s.alternate = (++at, true);
  if (peek() == '0') {
    ++at;
    if (!has_fill) s.fill = '0';
    s.zero = s.align == 0;
    if (s.zero) s.align = '=';
  }
  number(&s.width);
  if (peek() == ',' || peek() == '_') s.grouping = code(text[at++]);
  if (peek() == '.') {
    ++at;
    if (!number(&s.precision)) return failed("Format specifier missing precision");
  }
  if (at < text.size()) s.type = code(text[at++]);
  if (at < text.size()) return failed("Invalid format specifier");
  return s;
}

// Puts a separator between groups of `each` digits before the point.
std::string grouped(const std::string& digits, char32_t separator, size_t each) {
  const char* of_base = each == 4 ? "0123456789abcdefABCDEF" : "0123456789";
  const size_t whole = std::min(digits.find_first_not_of(of_base), digits.size());
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % each == 0) out += static_cast<char>(separator);
    out += digits[i];
  }
  return out + digits.substr(whole);
}

Text laid_out(const Specification& s, Text sign, Text body, char32_t align) {
  const size_t size = sign.size() + body.size();
  const auto width = static_cast<size_t>(s.width);
  const size_t missing = width > size ? width - size : 0;
  if (align == '=') return sign + Text(missing, s.fill) + body;
  const size_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  return Text(left, s.fill) + sign + body + Text(missing - left, s.fill);
}

Text sign_text(const Specification& s, bool is_negative) {
  return is_negative ? U"-" : s.sign == '+' ? U"+" : s.sign == ' ' ? U" " : U"";
}

// Groups the digits. Zeros that fill the width are grouped too.
std::string fill_grouped(const Specification& s, std::string digits, size_t sign_size) {
  if (s.grouping == 0) return digits;
  const size_t each = s.type == 'x' || s.type == 'X' || s.type == 'o' || s.type == 'b' ? 4 : 3;
  std::string out = grouped(digits, s.grouping, each);
  if (s.align != '=' || s.fill != '0' || digits.find_first_of("iInN") == 0) return out;  // inf, nan
  while (out.size() + sign_size < static_cast<size_t>(s.width)) {
    digits.insert(digits.begin(), '0');
    out = grouped(digits, s.grouping, each);
  }
  return out;
}

Result<Text> integer_by(const Specification& s, int64_t value) {
  if (s.precision >= 0) return failed("Precision not allowed in integer format specifier");
  const bool has_thousands = s.type == 0 || s.type == 'd' || (s.grouping == '_' && s.type != 'c' && s.type != 'n');
  if (s.grouping != 0 && !has_thousands) return failed("Cannot specify a separator with that format code");
  const uint64_t size = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  std::string digits;
  Text prefix;
  switch (s.type) {
    case 'b':
      digits = fmt::format("{:b}", size);
      prefix = U"0b";
      break;
    case 'o':
      digits = fmt::format("{:o}", size);
      prefix = U"0o";
      break;
    case 'x':
    case 'X':
      digits = s.type == 'x' ? fmt::format("{:x}", size) : fmt::format("{:X}", size);
      prefix = s.type == 'x' ? U"0x" : U"0X";
      break;
    case 'c':
      if (value < 0 || value > 0x10FFFF) return failed("%c arg not in range(0x110000)");
      return laid_out(s, {}, Text(1, static_cast<char32_t>(value)), s.align == 0 ? '<' : s.align);
    default:
      digits = std::to_string(size);
  }
  Text sign = sign_text(s, value < 0);
  if (s.alternate) sign += prefix;
  digits = fill_grouped(s, digits, sign.size());
  return laid_out(s, std::move(sign), to_text(digits), s.align == 0 ? '>' : s.align);
}

// Formats a finite real without a type as 'g' with at least one digit after the point. A whole number that leaves no
// room for that digit gets an exponent: 100.0 with 3 digits is "1e+02", or "1.00e+02" with '#'.
std::string general_real(double value, int digits, bool alternate) {
  const std::string text = real_by(value, 'g', digits, alternate);
  const size_t point = text.find_first_of(".e");
  if (point < text.size() - 1) return text;
  if (point == std::string::npos && text.size() < static_cast<size_t>(digits)) return text + ".0";
  const int last = static_cast<int>(text.find_last_not_of('0'));  // -1: the number is 0
  return real_by(value, 'e', alternate ? digits - 1 : std::max(last, 0), alternate);
}

Result<Text> real_by_specification(const Specification& s, double value) {
  const bool is_negative = std::signbit(value) && !std::isnan(value);
  const double size = std::abs(value);
  const int precision = static_cast<int>(s.precision < 0 ? 6 : s.precision);
  std::string digits;
  switch (s.type) {
    case 0:
      digits = s.precision < 0 || !std::isfinite(size) ? real_text(size)
                                                       : general_real(size, std::max(precision, 1), s.alternate);
      if (s.alternate && digits.find('.') == std::string::npos && std::isfinite(size))
        digits.insert(std::min(digits.find('e'), digits.size()), ".");
      break;
    case 'n':
      digits = real_by(size, 'g', precision, s.alternate);
      break;
    case '%':
      digits = real_by(size * 100, 'f', precision, s.alternate) + "%";
      break;
    default:
      digits = real_by(size, static_cast<char>(s.type), precision, s.alternate);
  }
  Text sign = sign_text(s, is_negative);
  digits = fill_grouped(s, digits, sign.size());
  return laid_out(s, std::move(sign), to_text(digits), s.align == 0 ? '>' : s.align);
}

bool is_one_of(char32_t c, std::string_view letters) {
  return c < 0x80 && letters.find(static_cast<char>(c)) != std::string_view::npos;
}

}  // namespace

Result<Text> format_by(Render& render, const Value& value, TextView specification) {
  if (specification.empty()) return str_of(render, value);
  if (value.kind != Kind::text && !value.is_number())
    return failed("unsupported format string passed to " + type_name(value) + ".__format__");
  KVASIR_TRY(const Specification s, parse(specification));
  KVASIR_CHECK(render.room(static_cast<size_t>(s.width) + static_cast<size_t>(std::max<int64_t>(s.precision, 0))));
  const auto unknown = [&] {
    return failed(
        fmt::format("Unknown format code '{}' for object of type '{}'", to_utf8(Text(1, s.type)), type_name(value)));
  };
  if (value.is_text()) {
    if (s.type != 0 && s.type != 's') return unknown();
    if (s.sign != 0 || s.alternate || s.grouping != 0 || s.align == '=')
      if (!(s.zero && s.align == '=' && s.sign == 0 && !s.alternate && s.grouping == 0))
        return failed("not allowed in string format specifier");
    if (s.align == '=' && !s.zero) return failed("'=' alignment not allowed in string format specifier");
    Text text(value.text());
    if (s.precision >= 0 && static_cast<size_t>(s.precision) < text.size())
      text.resize(static_cast<size_t>(s.precision));
    return laid_out(s, {}, std::move(text), s.align == 0 || s.align == '=' ? '<' : s.align);
  }
  if (value.kind == Kind::boolean && s.type == 0) return integer_by(s, value.to_int());
  if (value.is_int() && (s.type == 0 || is_one_of(s.type, "bcdoxXn"))) return integer_by(s, value.to_int());
  if (s.type != 0 && !is_one_of(s.type, "eEfFgGn%")) return unknown();
  return real_by_specification(s, value.to_real());
}

std::string real_by(double value, char type, int precision, bool alternate) {
  const char lower_type = static_cast<char>(type | 0x20);
  const bool is_capital = lower_type != type;
  std::string text;
  if (!std::isfinite(value)) {
    text = std::isnan(value) ? "nan" : value < 0 ? std::string("-") + "inf" : "inf";
  } else {
    if (lower_type == 'g') precision = std::max(precision, 1);
    const std::string format = std::string(alternate ? "{:#." : "{:.") + std::to_string(precision) + lower_type + "}";
    text = fmt::format(fmt::runtime(format), value);
    // When all digits stand before the point, fmt prints a zero after it, printf does not.
    const size_t point = text.find(".0");
    const bool is_last = point != std::string::npos && (point + 2 == text.size() || text[point + 2] == 'e');
    if (alternate && lower_type == 'g' && is_last && point >= static_cast<size_t>(precision)) text.erase(point + 1, 1);
  }
  if (is_capital)
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

Result<int64_t> integer_of(double value) {
  if (std::isnan(value)) return failed("cannot convert float NaN to integer");
  if (std::isinf(value)) return failed("cannot convert float infinity to integer");
  if (value <= -0x1p63 || value >= 0x1p63) return limit_error("an integer of more than 64 bits");
  return static_cast<int64_t>(value);
}

namespace {

// Returns a number's characters as ASCII without its single underscores; null if the text has other characters.
std::optional<std::string> ascii_number(TextView text) {
  text = strip(text, nullptr);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char32_t c = code(text[i]);
    if (c == '_') {
      const bool between =
          i > 0 && i + 1 < text.size() && code(text[i - 1]) != '_' && is_alnum(text[i - 1]) && is_alnum(text[i + 1]);
      if (!between) return {};
    } else if (decimal_value(c) >= 0) {
      out += static_cast<char>('0' + decimal_value(c));
    } else if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      return {};
    }
  }
  return out;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower_case = static_cast<char>(c | 0x20);
  return lower_case >= 'a' && lower_case <= 'z' ? lower_case - 'a' + 10 : 99;
}

}  // namespace

Result<std::optional<int64_t>> parse_integer(TextView text, int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return failed("int() base must be >= 2 and <= 36, or 0");
  auto ascii = ascii_number(text);
  if (!ascii) return std::nullopt;
  std::string_view digits = *ascii;
  const bool is_negative = digits.starts_with('-');
  if (is_negative || digits.starts_with('+')) digits.remove_prefix(1);
  int64_t prefix = 10;
  if (digits.size() > 1 && digits[0] == '0') {
    const char letter = static_cast<char>(digits[1] | 0x20);
    prefix = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
  }
  if (prefix != 10 && (base == 0 || base == prefix)) {
    digits.remove_prefix(2);
    base = prefix;
  } else if (base == 0) {
    base = 10;
    if (digits.starts_with('0') && digits.find_first_not_of('0') != std::string_view::npos) return std::nullopt;
  }
  if (digits.empty()) return std::nullopt;
  int64_t value = 0;
  for (const char c : digits) {
    if (digit_of(c) >= base) return std::nullopt;
    if (__builtin_mul_overflow(value, base, &value) || __builtin_sub_overflow(value, digit_of(c), &value))
      return limit_error("an integer of more than 64 bits");
  }
  if (is_negative) return value;
  if (__builtin_sub_overflow(int64_t{0}, value, &value)) return limit_error("an integer of more than 64 bits");
  return value;
}

std::optional<double> parse_real(TextView text) {
  const auto ascii = ascii_number(text);
  if (!ascii || ascii->empty()) return {};
  std::string_view digits = *ascii;
  const bool is_negative = digits.starts_with('-');
  if (is_negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty() || digits[0] == '-' || digits[0] == '+') return {};
  std::string lower_case(digits);
  std::transform(lower_case.begin(), lower_case.end(), lower_case.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  double value = 0;
  if (lower_case == "inf" || lower_case == "infinity")
    value = std::numeric_limits<double>::infinity();
  else if (lower_case == "nan")
    value = std::numeric_limits<double>::quiet_NaN();
  else {
    if (lower_case.find_first_of("xpn") != std::string::npos) return {};
    const auto [end, error] = std::from_chars(lower_case.data(), lower_case.data() + lower_case.size(), value);
    if (end != lower_case.data() + lower_case.size()) return {};
    if (error == std::errc::result_out_of_range)
      value = std::strtod(lower_case.c_str(), nullptr);
    else if (error != std::errc())
      return {};
  }
  return is_negative ? -value : value;
}

}  // namespace kvasir::jinja
