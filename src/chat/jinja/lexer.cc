// The lexer. White space is trimmed by the rules in Jinja's documentation of white space control.
#include "chat/jinja/lexer.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "chat/jinja/errors.h"

namespace kvasir::jinja {
namespace {

constexpr TextView kOperators[] = {U"//", U"**", U"==", U"!=", U">=", U"<=", U"+", U"-", U"/", U"*", U"%", U"~", U"[",
                                   U"]",  U"(",  U")",  U"{",  U"}",  U">",  U"<", U"=", U".", U":", U"|", U",", U";"};

bool is_digit_of(char32_t c, int base) {
  const char32_t lower = c | 0x20;
  if (c >= '0' && c <= '9') return static_cast<int>(c - '0') < base;
  return base == 16 && lower >= 'a' && lower <= 'f';
}

int digit_value(char32_t c) { return c <= '9' ? static_cast<int>(c - '0') : static_cast<int>((c | 0x20) - 'a') + 10; }

class Lexer {
 public:
  explicit Lexer(TextView source) : source_(source) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) KVASIR_CHECK(root());
    add(Token::end);
    return std::move(tokens_);
  }

 private:
  // ---- between tags

  Result<void> root() {
    const size_t begin = at_;
    size_t tag = begin;
    while (tag < source_.size() && !is_tag(tag)) ++tag;
    if (tag == source_.size()) {
      add_data(source_.substr(begin));
      at_ = tag;
      return {};
    }
    const char32_t kind = source_[tag + 1];
    size_t inside = tag + 2;
    const char32_t sign = sign_at(inside);
    if (sign != 0) ++inside;
    add_data(trimmed(source_.substr(begin, tag - begin), sign, kind != '{'));
    line_ += lines_in(begin, tag);
    at_ = inside;
    line_starts_ = false;
    if (kind == '#') return comment();
    if (kind == '{') return tag_of(Token::variable_begin, Token::variable_end);
    if (begins_raw()) return raw();
    return tag_of(Token::block_begin, Token::block_end);
  }

  bool is_tag(size_t i) const {
    return source_[i] == '{' && i + 1 < source_.size() &&
           (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#');
  }
  char32_t sign_at(size_t i) const {
    return i < source_.size() && (source_[i] == '-' || source_[i] == '+') ? source_[i] : 0;
  }
  bool has(TextView what, size_t i) const { return i <= source_.size() && source_.substr(i, what.size()) == what; }

  // Trims the text before a tag: a minus removes white space at its end, a block that in its own line.
  TextView trimmed(TextView text, char32_t sign, bool is_block) const {
    if (sign == '-') return strip(text, nullptr, Side::right);
    if (sign == '+' || !is_block) return text;
    const size_t newline = text.rfind('\n');
    const size_t line = newline == TextView::npos ? 0 : newline + 1;
    if (line == 0 && !line_starts_) return text;
    return strip(text.substr(line), nullptr).empty() ? text.substr(0, line) : text;
  }

  void skip_space() {
    while (at_ < source_.size() && is_space(source_[at_])) ++at_;
  }

  // Skips an end tag and the white space that it removes; returns false if there is none here.
  bool ends(TextView tag, bool trims_line) {
    const size_t begin = at_;
    if (trims_line && has(U"+", at_) && has(tag, at_ + 1)) {
      at_ += 1 + tag.size();
    } else if (has(U"-", at_) && has(tag, at_ + 1)) {
      at_ += 1 + tag.size();
      skip_space();
    } else if (has(tag, at_)) {
      at_ += tag.size();
      if (trims_line && has(U"\n", at_)) ++at_;
    } else {
      return false;
    }
    line_ += lines_in(begin, at_);
    line_starts_ = source_[at_ - 1] == '\n';
    return true;
  }

  Result<void> comment() {
    const int line = line_;
    if (at_ == source_.size()) return {};  // Jinja accepts an open comment at the very end
    for (; at_ < source_.size(); ++at_) {
      if (ends(U"#}", true)) return {};
      line_ += source_[at_] == '\n';
    }
    return syntax_error("Missing end of comment tag", line);
  }

  // Skips the rest of {% raw %} after its sign. Returns false, with at_ unchanged, for another tag.
  bool begins_raw() {
    const size_t before = at_;
    skip_space();
    if (has(U"raw", at_)) {
      at_ += 3;
      skip_space();
      const bool minus = has(U"-%}", at_);
      if (minus || has(U"%}", at_)) {
        at_ += minus ? 3 : 2;
        if (minus) skip_space();
        line_ += lines_in(before, at_);
        line_starts_ = source_[at_ - 1] == '\n';
        return true;
      }
    }
    at_ = before;
    return false;
  }

  Result<void> raw() {
    const size_t begin = at_;
    for (size_t i = begin; i < source_.size(); ++i) {
      if (!has(U"{%", i)) continue;
      const char32_t sign = sign_at(i + 2);
      at_ = i + 2 + (sign != 0);
      skip_space();
      if (!has(U"endraw", at_)) continue;
      at_ += 6;
      skip_space();
      const size_t tag = at_;
      if (!ends(U"%}", true)) continue;
      const bool starts = line_starts_;
      line_starts_ = begin > 0 && source_[begin - 1] == '\n';
      add_data(trimmed(source_.substr(begin, i - begin), sign, true));
      line_starts_ = starts;
      line_ += lines_in(begin, tag);
      return {};
    }
    at_ = source_.size();
    if (begin == at_) return {};
    return syntax_error("Missing end of raw directive", line_);
  }

  // ---- inside a tag

  Result<void> tag_of(Token::Type begin, Token::Type end) {
    const bool is_block = begin == Token::block_begin;
    add(begin);
    std::vector<char32_t> open;
    while (at_ < source_.size()) {
      const int line = line_;
      if (open.empty() && ends(is_block ? U"%}" : U"}}", is_block)) {
        add(end);
        tokens_.back().line = line;
        return {};
      }
      KVASIR_CHECK(token(&open));
    }
    return {};  // the parser reports that the tag has no end
  }

  Result<void> token(std::vector<char32_t>* open) {
    const char32_t c = source_[at_];
    if (is_space(c)) {
      line_ += c == '\n';
      ++at_;
      return {};
    }
    if (c >= '0' && c <= '9') return number();
    if (c == '_' || is_alnum(c)) return name();
    if (c == '\'' || c == '"') return string();
    return symbol(open);
  }

  Result<void> symbol(std::vector<char32_t>* open) {
    const auto* const found =
        std::find_if(std::begin(kOperators), std::end(kOperators), [&](TextView op) { return has(op, at_); });
    if (found == std::end(kOperators))
      return syntax_error(fmt::format("unexpected char '{}' at {}", to_utf8(source_.substr(at_, 1)), at_), line_);
    const char32_t c = found->front();
    if (c == '(') open->push_back(')');
    if (c == '[') open->push_back(']');
    if (c == '{') open->push_back('}');
    if (c == ')' || c == ']' || c == '}') {
      if (open->empty() || open->back() != c)
        return syntax_error(fmt::format("unexpected '{}'", static_cast<char>(c)), line_);
      open->pop_back();
    }
    add(Token::op, Text(*found));
    at_ += found->size();
    return {};
  }

  Result<void> name() {
    const size_t begin = at_;
    while (at_ < source_.size() && (source_[at_] == '_' || is_alnum(source_[at_]) || is_identifier_tail(source_[at_])))
      ++at_;
    const TextView text = source_.substr(begin, at_ - begin);
    if (!is_identifier(text)) return syntax_error("Invalid character in identifier", line_);
    add(Token::name, Text(text));
    return {};
  }
  static bool is_identifier_tail(char32_t c) { return c >= 0x80 && is_identifier(Text{U'a', c}); }

  // Returns the end of the digits from `i` on, which single underscores may separate.
  size_t digits_end(size_t i, int base = 10) const {
    size_t end = i;
    while (end < source_.size()) {
      const size_t next = end > i && source_[end] == '_' ? end + 1 : end;
      if (next >= source_.size() || !is_digit_of(source_[next], base)) break;
      end = next + 1;
    }
    return end;
  }

  Result<void> number() {
    const size_t begin = at_;
    const size_t whole = digits_end(begin);
    size_t end = whole;
    if (!(begin > 0 && source_[begin - 1] == '.')) {
      if (has(U".", whole) && digits_end(whole + 1) > whole + 1) end = digits_end(whole + 1);
      size_t exponent = end;
      if (exponent < source_.size() && (source_[exponent] | 0x20) == 'e') {
        exponent += 1 + (sign_at(exponent + 1) != 0);
        if (digits_end(exponent) > exponent) end = digits_end(exponent);
      }
    }
    if (end > whole) return real(begin, end);
    return integer(begin);
  }

  Result<void> real(size_t begin, size_t end) {
    std::string digits = to_utf8(source_.substr(begin, end - begin));
    std::erase(digits, '_');
    Token& token = add(Token::real);
    // strtod turns a number out of range into infinity or zero.
    if (std::from_chars(digits.data(), digits.data() + digits.size(), token.real_value).ec != std::errc())
      token.real_value = std::strtod(digits.c_str(), nullptr);
    at_ = end;
    return {};
  }

  Result<void> integer(size_t begin) {
    int base = 10;
    size_t first = begin, end = 0;
    const char32_t letter = begin + 1 < source_.size() && source_[begin] == '0' ? source_[begin + 1] | 0x20 : 0;
    if (letter == 'b' || letter == 'o' || letter == 'x') {
      const int other = letter == 'b' ? 2 : letter == 'o' ? 8 : 16;
      const size_t after = begin + 2 + has(U"_", begin + 2);
      if (digits_end(after, other) > after) {
        base = other;
        first = after;
        end = digits_end(after, other);
      }
    }
    if (end == 0) {  // after a leading zero only zeros belong to the number
      end = digits_end(begin);
      if (source_[begin] == '0')
        for (end = begin + 1; end < source_.size();) {
          const size_t next = end + (source_[end] == '_');
          if (!has(U"0", next)) break;
          end = next + 1;
        }
    }
    Token& token = add(Token::integer);
    for (size_t i = first; i < end; ++i) {
      if (source_[i] == '_') continue;
      if (__builtin_mul_overflow(token.integer_value, base, &token.integer_value) ||
          __builtin_add_overflow(token.integer_value, digit_value(source_[i]), &token.integer_value))
        return limit_error("an integer of more than 64 bits", line_);
    }
    at_ = end;
    return {};
  }

  // ---- strings

  Result<void> string() {
    const char32_t quote = source_[at_];
    const int line = line_;
    Text value;
    size_t i = at_ + 1;
    for (;; ++i) {
      if (i >= source_.size())
        return syntax_error(fmt::format("unexpected char '{}' at {}", static_cast<char>(quote), at_), line);
      const char32_t c = source_[i];
      if (c == quote) break;
      line_ += c == '\n';
      if (c != '\\') {
        value += c;
        continue;
      }
      if (++i >= source_.size()) continue;
      line_ += source_[i] == '\n';
      KVASIR_CHECK(escape(&i, &value));
    }
    at_ = i + 1;
    Token& token = add(Token::text, std::move(value));
    token.line = line;
    return {};
  }

  // Decodes the escape after a backslash. *i is its first character, on return its last.
  Result<void> escape(size_t* i, Text* value) {
    constexpr TextView kLetters = U"\\'\"abfnrtv";
    constexpr TextView kMeant = U"\\'\"\a\b\f\n\r\t\v";
    const char32_t c = source_[*i];
    if (const size_t at = kLetters.find(c); at != TextView::npos) {
      *value += kMeant[at];
      return {};
    }
    if (c == '\n') return {};
    if (is_digit_of(c, 8)) return octal(i, value);
    if (c == 'x' || c == 'u' || c == 'U') return hexadecimal(i, c == 'x' ? 2 : c == 'u' ? 4 : 8, value);
    if (c == 'N') return unsupported("characters by their names (\\N{...})", line_);
    *value += U'\\';
    if (c < 0x80) {
      *value += c;
    } else {  // Jinja escapes non-ASCII characters before it decodes backslashes
      const auto number = static_cast<uint32_t>(c);
      *value += to_text(c < 0x100     ? fmt::format("x{:02x}", number)
                        : c < 0x10000 ? fmt::format("u{:04x}", number)
                                      : fmt::format("U{:08x}", number));
    }
    return {};
  }

  Result<void> octal(size_t* i, Text* value) {
    char32_t c = 0;
    size_t end = *i;
    while (end < *i + 3 && end < source_.size() && is_digit_of(source_[end], 8)) c = c * 8 + source_[end++] - '0';
    *i = end - 1;
    *value += c;
    return {};
  }

  Result<void> hexadecimal(size_t* i, size_t digits, Text* value) {
    char32_t c = 0;
    for (size_t k = 1; k <= digits; ++k) {
      if (*i + k >= source_.size() || !is_digit_of(source_[*i + k], 16))
        return syntax_error("truncated escape of a character", line_);
      c = c * 16 + static_cast<char32_t>(digit_value(source_[*i + k]));
    }
    *i += digits;
    if (c > 0x10FFFF) return syntax_error("illegal Unicode character", line_);
    if (c >= 0xD800 && c <= 0xDFFF) return unsupported("halves of a character (surrogates)", line_);
    *value += c;
    return {};
  }

  // ----

  int lines_in(size_t begin, size_t end) const {
    return static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(begin),
                                       source_.begin() + static_cast<std::ptrdiff_t>(end), U'\n'));
  }
  void add_data(TextView text) {
    if (!text.empty()) add(Token::data, Text(text));
  }
  Token& add(Token::Type type, Text value = {}) {
    tokens_.push_back({.type = type, .line = line_, .value = std::move(value)});
    return tokens_.back();
  }

  TextView source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(TextView source) {
  Text lines;
  lines.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      lines += U'\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      lines += source[i];
    }
  }
  if (lines.ends_with(U'\n')) lines.pop_back();
  return Lexer(lines).run();
}

}  // namespace kvasir::jinja
