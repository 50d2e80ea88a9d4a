// Character classes and cases as in Python, from utf8proc's tables and special_cases.h.
#include "chat/jinja/text.h"

#include <algorithm>
#include <array>

#include <utf8proc.h>

#include "chat/jinja/special_cases.h"

namespace kvasir::jinja {
namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(code(c))); }

const SpecialCase* special_case(char32_t c) {
  const auto* const at = std::lower_bound(std::begin(kSpecialCases), std::end(kSpecialCases), code(c),
                                          [](const SpecialCase& s, char32_t value) { return s.of < value; });
  return at != std::end(kSpecialCases) && at->of == code(c) ? at : nullptr;
}

void append_marked(Text& out, char32_t of, TextView characters) {
  for (const char32_t c : characters) out += marked_as(of, c);
}

// Whether a capital sigma at `at` ends a word; its lower case form then differs.
bool ends_word(TextView text, size_t at) {
  const auto is_cased = [](char32_t c) { return is_lower(c) || is_upper(c) || is_title(c); };
  const auto is_ignorable = [](char32_t c) {
    const auto kind = category(c);
    return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_ME || kind == UTF8PROC_CATEGORY_CF ||
           kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_SK || code(c) == '\'' || code(c) == '.' ||
           code(c) == ':' || code(c) == 0xB7 || code(c) == 0x2019;
  };
  size_t before = at;
  while (before > 0 && is_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  size_t after = at + 1;
  while (after < text.size() && is_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

}  // namespace

Text to_text(std::string_view utf8, bool is_data) {
  Text text;
  text.reserve(utf8.size());
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(utf8.data());
  auto left = static_cast<utf8proc_ssize_t>(utf8.size());
  const char32_t mark = is_data ? kData : 0;
  while (left > 0) {
    utf8proc_int32_t c = 0;
    utf8proc_ssize_t used = 1;
    if (*at < 0x80) {
      c = *at;
    } else if (used = utf8proc_iterate(at, left, &c); used < 1) {
      used = 1;
      c = 0xFFFD;
    }
    text += static_cast<char32_t>(c) | mark;
    at += used;
    left -= used;
  }
  return text;
}

std::string to_utf8(TextView text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (const char32_t c : text) {
    std::array<utf8proc_uint8_t, 4> encoded{};
    const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code(c)), encoded.data());
    bytes.append(reinterpret_cast<const char*>(encoded.data()), static_cast<size_t>(count));
  }
  return bytes;
}

bool same(TextView a, TextView b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char32_t x, char32_t y) { return code(x) == code(y); });
}

bool same(TextView a, std::string_view ascii) {
  return std::equal(a.begin(), a.end(), ascii.begin(), ascii.end(),
                    [](char32_t x, char y) { return code(x) == static_cast<unsigned char>(y); });
}

int compare(TextView a, TextView b) {
  const size_t shared = std::min(a.size(), b.size());
  for (size_t i = 0; i < shared; ++i)
    if (code(a[i]) != code(b[i])) return code(a[i]) < code(b[i]) ? -1 : 1;
  return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

size_t find(TextView text, TextView part, size_t from) {
  if (from > text.size()) return TextView::npos;
  const auto at = std::search(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), part.begin(), part.end(),
                              [](char32_t x, char32_t y) { return code(x) == code(y); });
  if (at == text.end() && !part.empty()) return TextView::npos;
  return static_cast<size_t>(at - text.begin());
}

size_t find_last(TextView text, TextView part) {
  for (size_t at = text.size() + 1; at-- > 0;)
    if (at + part.size() <= text.size() && same(text.substr(at, part.size()), part)) return at;
  return TextView::npos;
}

bool is_space(char32_t marked) {
  const char32_t c = code(marked);
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_alpha(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

// Unicode's Numeric_Type=Digit: superscripts, subscripts and numbers in circles.
bool is_digit(char32_t marked) {
  const char32_t c = code(marked);
  return is_decimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468) || (c >= 0x2474 && c <= 0x247C) ||
         (c >= 0x2488 && c <= 0x2490) || (c >= 0x24F5 && c <= 0x24FD) || (c >= 0x2776 && c <= 0x277E) ||
         (c >= 0x2780 && c <= 0x2788) || (c >= 0x278A && c <= 0x2792);
}

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  if (kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO) return true;
  constexpr TextView kHan = U"〇一七万三九二五亿仟佰億兆両两八六十千参叁叄四壱壹弌弍弎弐弑拾柒捌玖百貮貳贰陆陌陸零";
  return kHan.find(code(c)) != TextView::npos;
}

bool is_alnum(char32_t c) { return is_alpha(c) || is_decimal(c) || is_digit(c) || is_numeric(c); }
bool is_lower(char32_t c) { return utf8proc_islower(static_cast<utf8proc_int32_t>(code(c))) != 0; }
bool is_upper(char32_t c) { return utf8proc_isupper(static_cast<utf8proc_int32_t>(code(c))) != 0; }
bool is_title(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }

bool is_printable(char32_t c) {
  if (code(c) == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

bool is_identifier(TextView text) {
  if (text.empty()) return false;
  const auto starts = [](char32_t c) { return code(c) == '_' || is_alpha(c) || category(c) == UTF8PROC_CATEGORY_NL; };
  const auto goes_on = [&](char32_t c) {
    const auto kind = category(c);
    return starts(c) || kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC || kind == UTF8PROC_CATEGORY_ND ||
           kind == UTF8PROC_CATEGORY_PC;
  };
  return starts(text[0]) && std::all_of(text.begin() + 1, text.end(), goes_on);
}

int decimal_value(char32_t marked) {
  const char32_t c = code(marked);
  if (c < 0x80) return c >= '0' && c <= '9' ? static_cast<int>(c - '0') : -1;
  if (!is_decimal(c)) return -1;
  // Decimal digits form runs of ten that begin with zero; mathematical digits form five runs from U+1D7CE on.
  if (c >= 0x1D7CE && c <= 0x1D7FF) return static_cast<int>((c - 0x1D7CE) % 10);
  char32_t zero = c;
  while (c - zero < 9 && is_decimal(zero - 1)) --zero;
  return static_cast<int>((c - zero) % 10);
}

Text upper(TextView text) {
  Text out;
  out.reserve(text.size());
  for (const char32_t c : text) {
    if (const SpecialCase* special = special_case(c))
      append_marked(out, c, special->upper);
    else
      out += marked_as(c, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code(c)))));
  }
  return out;
}

Text lower(TextView text, size_t begin, size_t end) {
  Text out;
  end = std::min(end, text.size());
  for (size_t i = begin; i < end; ++i) {
    const char32_t c = text[i];
    if (code(c) == 0x130)
      append_marked(out, c, U"i\u0307");
    else if (code(c) == 0x3A3)
      out += marked_as(c, ends_word(text, i) ? 0x3C2 : 0x3C3);
    else
      out += marked_as(c, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code(c)))));
  }
  return out;
}

Text title_case(char32_t c) {
  Text out;
  if (const SpecialCase* special = special_case(c))
    append_marked(out, c, special->title);
  else
    out += marked_as(c, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code(c)))));
  return out;
}

Text case_fold(TextView text) {
  Text out;
  for (const char32_t c : text) {
    std::array<utf8proc_int32_t, 16> folded{};
    int boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code(c)), folded.data(), folded.size(),
                                               UTF8PROC_CASEFOLD, &boundary);
    for (utf8proc_ssize_t i = 0; i < count; ++i)
      out += marked_as(c, static_cast<char32_t>(folded[static_cast<size_t>(i)]));
  }
  return out;
}

TextView strip(TextView text, const TextView* chars, Side side) {
  const auto goes = [&](char32_t c) {
    if (chars == nullptr) return is_space(c);
    return std::any_of(chars->begin(), chars->end(), [&](char32_t other) { return code(other) == code(c); });
  };
  if (side != Side::right)
    while (!text.empty() && goes(text.front())) text.remove_prefix(1);
  if (side != Side::left)
    while (!text.empty() && goes(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<TextView> split_lines(TextView text, bool keep_ends) {
  const auto ends = [](char32_t marked) {
    const char32_t c = code(marked);
    return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
  };
  std::vector<TextView> lines;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (end < text.size() && !ends(text[end])) ++end;
    size_t next = std::min(end + 1, text.size());
    if (next < text.size() && code(text[end]) == '\r' && code(text[next]) == '\n') ++next;
    lines.push_back(text.substr(begin, (keep_ends ? next : end) - begin));
    begin = next;
  }
  return lines;
}

}  // namespace kvasir::jinja
