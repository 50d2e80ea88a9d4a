// The % operator and str.format. format_number.cc formats a single value.
#include "chat/jinja/format.h"

#include <algorithm>

#include "chat/jinja/attributes.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/repr.h"

namespace kvasir::jinja {
namespace {

// ---- %

struct Conversion {
  bool left = false, plus = false, space = false, zero = false, alternate = false;
  int64_t width = 0, precision = -1;
  char32_t type = 0;
};

class PercentFormat {
 public:
  PercentFormat(Render& render, const Value& format, const Value& value)
      : render_(render), is_markup_(format.is_safe), format_(format.text()), value_(value) {
    if (value.kind == Kind::tuple)
      arguments_ = value.items();
    else
      arguments_ = {value};
  }

  Result<Text> run() {
    while (at_ < format_.size()) {
      const char32_t c = format_[at_++];
      if (code(c) != '%') {
        out_ += c;
      } else if (peek() == '%') {
        out_ += format_[at_++];
      } else {
        KVASIR_CHECK(conversion());
      }
      KVASIR_CHECK(render_.grow(out_.size(), &charged_));
    }
    const bool all_used = used_ >= arguments_.size() || by_name_;
    if (!all_used && !(value_.kind == Kind::dict || value_.kind == Kind::list || value_.is_undefined() ||
                       value_.kind == Kind::object))
      return failed("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  char32_t peek() const { return at_ < format_.size() ? code(format_[at_]) : 0; }

  Result<Value> argument() {
    if (named_) return *std::exchange(named_, std::nullopt);
    if (used_ >= arguments_.size()) return failed("not enough arguments for format string");
    return arguments_[used_++];
  }

  Result<void> name() {
    if (peek() != '(') return {};
    int depth = 1;
    const size_t begin = ++at_;
    for (; at_ < format_.size() && depth > 0; ++at_) depth += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
    if (depth > 0) return failed("incomplete format key");
    if (value_.kind != Kind::dict) return failed("format requires a mapping");
    KVASIR_TRY(const Value found,
               find_key(render_, value_.pairs(), render_.heap().text(Text(format_.substr(begin, at_ - 1 - begin)))));
    if (found.is_missing()) return failed("the format names a key that is not there");
    named_ = found;
    by_name_ = true;
    return {};
  }

  Result<int64_t> number() {
    if (peek() == '*') {
      ++at_;
      KVASIR_TRY(const Value value, argument());
      if (!value.is_int()) return failed("* wants int");
      return value.to_int();
    }
    int64_t value = 0;
    for (; decimal_value(peek()) >= 0 && peek() < 0x80 && value < 1'000'000'000; ++at_)
      value = value * 10 + decimal_value(peek());
    return value;
  }

  Result<void> conversion() {
    Conversion c;
    KVASIR_CHECK(name());
    for (; at_ < format_.size(); ++at_) {
      if (peek() == '-')
        c.left = true;
      else if (peek() == '+')
        c.plus = true;
      else if (peek() == ' ')
        c.space = true;
      else if (peek() == '0')
        c.zero = true;
      else if (peek() == '#')
        c.alternate = true;
      else
        break;
    }
    KVASIR_TRY(c.width, number());
    if (c.width < 0) {
      c.left = true;
      c.width = -c.width;
    }
    if (peek() == '.') {
      ++at_;
      KVASIR_TRY(c.precision, number());
      c.precision = std::max<int64_t>(c.precision, 0);
    }
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    if (at_ >= format_.size()) return failed("incomplete format");
    c.type = code(format_[at_++]);
    KVASIR_TRY(const Value value, argument());
    KVASIR_CHECK(render_.room(static_cast<size_t>(std::min<int64_t>(c.width, 1 << 30)) +
                              static_cast<size_t>(std::clamp<int64_t>(c.precision, 0, 1 << 30))));
    return convert(c, value);
  }

  Result<void> convert(const Conversion& c, const Value& value) {
    switch (c.type) {
      case 's':
      case 'r':
      case 'a': {
        KVASIR_TRY(Text text, c.type == 's' ? str_of(render_, value) : repr_of(render_, value));
        if (c.type == 'a') text = ascii_of(text);
        if (is_markup_ && !(value.is_text() && value.is_safe)) text = escaped(text);
        if (c.precision >= 0 && static_cast<size_t>(c.precision) < text.size())
          text.resize(static_cast<size_t>(c.precision));
        put(c, {}, std::move(text), false);
        return {};
      }
      case 'c':
        return character(c, value);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return integer(c, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': {
        KVASIR_TRY(const double real, as_real(value));
        const std::string digits = real_by(std::abs(real), static_cast<char>(c.type),
                                           static_cast<int>(c.precision < 0 ? 6 : c.precision), c.alternate);
        put(c, sign_of(c, std::signbit(real) && real == real), to_text(digits), true);
        return {};
      }
      default:
        return failed(fmt::format("unsupported format character '{}'", to_utf8(Text(1, c.type))));
    }
  }

  Result<double> as_real(const Value& value) {
    if (value.is_undefined()) return undefined_error(value);
    if (!value.is_number()) return failed("must be real number, not " + type_name(value));
    return value.to_real();
  }

  Result<void> character(const Conversion& c, const Value& value) {
    Text text;
    if (value.is_int() && value.to_int() >= 0 && value.to_int() < 0x110000)
      text += static_cast<char32_t>(value.to_int());
    else if (value.is_text() && value.text().size() == 1)
      text += value.text()[0];
    else
      return failed("%c requires int or char");
    put(c, {}, std::move(text), false);
    return {};
  }

  Result<void> integer(const Conversion& c, const Value& value) {
    if (value.is_undefined()) return undefined_error(value);
    const bool is_decimal_type = c.type == 'd' || c.type == 'i' || c.type == 'u';
    int64_t number = 0;
    if (value.is_int()) {
      number = value.to_int();
    } else if (value.kind == Kind::real && is_decimal_type) {
      KVASIR_TRY(number, integer_of(value.real));
    } else {
      return failed(
          fmt::format("%{} format: a number is required, not {}", static_cast<char>(c.type), type_name(value)));
    }
    const uint64_t size = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    std::string digits = c.type == 'x'   ? fmt::format("{:x}", size)
                         : c.type == 'X' ? fmt::format("{:X}", size)
                         : c.type == 'o' ? fmt::format("{:o}", size)
                                         : std::to_string(size);
    if (c.precision > static_cast<int64_t>(digits.size()))
      digits.insert(0, static_cast<size_t>(c.precision) - digits.size(), '0');
    Text sign = sign_of(c, number < 0);
    if (c.alternate && !is_decimal_type) sign += c.type == 'x' ? U"0x" : c.type == 'X' ? U"0X" : U"0o";
    put(c, std::move(sign), to_text(digits), true);
    return {};
  }

  static Text sign_of(const Conversion& c, bool is_negative) {
    return is_negative ? U"-" : c.plus ? U"+" : c.space ? U" " : U"";
  }

  void put(const Conversion& c, Text sign, Text text, bool is_number) {
    const auto width = static_cast<size_t>(c.width);
    const size_t size = sign.size() + text.size();
    const size_t missing = width > size ? width - size : 0;
    if (c.left)
      out_ += sign + text + Text(missing, U' ');
    else if (c.zero && is_number)
      out_ += sign + Text(missing, U'0') + text;
    else
      out_ += Text(missing, U' ') + sign + text;
  }

  Render& render_;
  const bool is_markup_;
  TextView format_;
  const Value& value_;
  std::vector<Value> arguments_;
  size_t at_ = 0, used_ = 0;
  bool by_name_ = false;
  std::optional<Value> named_;
  Text out_;
  size_t charged_ = 0;
};

// ---- {}

class BraceFormat {
 public:
  BraceFormat(Render& render, bool is_markup, const Arguments& arguments)
      : render_(render), is_markup_(is_markup), arguments_(arguments) {}

  Result<Text> run(TextView format, int depth = 2) {
    if (depth == 0) return failed("Max string recursion exceeded");
    Text out;
    size_t charged = 0;
    for (size_t i = 0; i < format.size(); ++i) {
      const char32_t c = code(format[i]);
      if ((c == '{' || c == '}') && i + 1 < format.size() && code(format[i + 1]) == c) {
        out += format[i++];
        continue;
      }
      if (c == '}') return failed("Single '}' encountered in format string");
      if (c != '{') {
        out += format[i];
        continue;
      }
      const size_t begin = i + 1;
      int open = 1;
      for (++i; i < format.size(); ++i) {
        open += code(format[i]) == '{' ? 1 : code(format[i]) == '}' ? -1 : 0;
        if (open == 0) break;
      }
      if (open != 0) return failed("expected '}' before end of string");
      KVASIR_TRY(const Text text, field(format.substr(begin, i - begin), depth));
      out += text;
      KVASIR_CHECK(render_.grow(out.size(), &charged));
    }
    return out;
  }

 private:
  // name!conversion:specification
  Result<Text> field(TextView all, int depth) {
    size_t end = 0;
    int brackets = 0;
    for (; end < all.size(); ++end) {
      const char32_t c = code(all[end]);
      brackets += c == '[' ? 1 : c == ']' ? -1 : 0;
      if (brackets <= 0 && (c == '!' || c == ':')) break;
    }
    TextView rest = all.substr(end);
    char32_t conversion = 0;
    if (!rest.empty() && code(rest[0]) == '!') {
      if (rest.size() < 2) return failed("end of string while looking for conversion specifier");
      conversion = code(rest[1]);
      rest.remove_prefix(2);
      if (!rest.empty() && code(rest[0]) != ':') return failed("expected ':' after conversion specifier");
    }
    KVASIR_TRY(Value value, value_of(all.substr(0, end)));
    if (conversion != 0) {
      if (conversion != 's' && conversion != 'r' && conversion != 'a') return failed("unknown conversion specifier");
      KVASIR_TRY(Text text, conversion == 's' ? str_of(render_, value) : repr_of(render_, value));
      if (conversion == 'a') text = ascii_of(text);
      value = render_.heap().text(std::move(text));
    }
    Text specification;
    if (!rest.empty()) {
      KVASIR_TRY(specification, run(rest.substr(1), depth - 1));
    }
    KVASIR_TRY(Text out, format_by(render_, value, specification));
    return is_markup_ && !(value.is_text() && value.is_safe) ? escaped(out) : std::move(out);
  }

  Result<Value> value_of(TextView name) {
    size_t end = 0;
    while (end < name.size() && code(name[end]) != '.' && code(name[end]) != '[') ++end;
    if (end == 0 && !name.empty()) return failed("KeyError: ''");  // only an empty name is numbered automatically
    KVASIR_TRY(Value value, first(name.substr(0, end)));
    name.remove_prefix(end);
    while (!name.empty()) {
      const bool is_attribute = code(name[0]) == '.';
      name.remove_prefix(1);
      end = 0;
      while (end < name.size() &&
             (is_attribute ? code(name[end]) != '.' && code(name[end]) != '[' : code(name[end]) != ']'))
        ++end;
      if (!is_attribute && end == name.size()) return failed("Missing ']' in format string");
      if (end == 0) return failed("Empty attribute in format string");
      KVASIR_TRY(value, part(value, name.substr(0, end), is_attribute));
      name.remove_prefix(end + (is_attribute ? 0 : 1));
      if (!is_attribute && !name.empty() && code(name[0]) != '.' && code(name[0]) != '[')
        return failed("Only '.' or '[' may follow ']' in format field specifier");
    }
    return value;
  }

  Result<Value> part(const Value& of, TextView name, bool is_attribute) {
    const Value key = render_.heap().text(Text(name));
    if (is_attribute) return get_attribute(render_, of, key);
    if (const auto index = index_of(name)) return get_item(render_, of, Value::of_int(*index));
    return get_item(render_, of, key);
  }

  static std::optional<int64_t> index_of(TextView name) {
    int64_t value = 0;
    for (const char32_t c : name) {
      if (decimal_value(c) < 0 || value > 1'000'000'000) return {};
      value = value * 10 + decimal_value(c);
    }
    return name.empty() ? std::nullopt : std::optional(value);
  }

  Result<Value> first(TextView name) {
    std::optional<int64_t> index = index_of(name);
    if (name.empty()) {
      if (numbered_ == by_hand)
        return failed("cannot switch from manual field specification to automatic field numbering");
      numbered_ = automatic;
      index = next_++;
    } else if (index) {
      if (numbered_ == automatic)
        return failed("cannot switch from automatic field numbering to manual field specification");
      numbered_ = by_hand;
    }
    if (index) {
      if (*index >= static_cast<int64_t>(arguments_.at.size())) return failed("Replacement index out of range");
      return arguments_.at[static_cast<size_t>(*index)];
    }
    for (const auto& [key, value] : arguments_.named)
      if (same(key, name)) return value;
    return failed("the format names '" + to_utf8(name) + "', which is not there");
  }

  Render& render_;
  const bool is_markup_;
  const Arguments& arguments_;
  enum { not_yet, by_hand, automatic } numbered_ = not_yet;
  int64_t next_ = 0;
};

}  // namespace

Result<Text> percent_format(Render& render, const Value& format, const Value& value) {
  return PercentFormat(render, format, value).run();
}

Result<Text> brace_format(Render& render, const Value& format, const Arguments& arguments) {
  return BraceFormat(render, format.is_safe, arguments).run(format.text());
}

Result<Text> replaced(Render& render, TextView text, TextView old, TextView by, int64_t most) {
  Text out;
  size_t at = 0, charged = 0;
  for (int64_t count = 0; most < 0 || count < most; ++count) {
    const size_t found = find(text, old, at);
    if (found == TextView::npos || (old.empty() && found >= text.size() && count > 0 && at > text.size())) break;
    out += text.substr(at, found - at);
    out += by;
    at = found + old.size();
    if (old.empty()) {
      if (at >= text.size()) {
        at = text.size();
        break;
      }
      out += text[at++];
    }
    KVASIR_CHECK(render.grow(out.size(), &charged));
  }
  return out + Text(text.substr(at));
}

}  // namespace kvasir::jinja
