// Text in which each character records whether it came from the template or from the data. The mark is a bit of the
// character, so it survives slices, filters, formats and JSON. Character classes and cases follow Python and are here;
// methods of strings are in methods_text.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvasir::jinja {

/// Code points, with the bit kData set on those that came from data.
using Text = std::u32string;
using TextView = std::u32string_view;

inline constexpr char32_t kData = 0x8000'0000;

constexpr char32_t code(char32_t c) { return c & ~kData; }
/// Returns `c` with the mark of `of`, for characters derived from `of`.
constexpr char32_t marked_as(char32_t of, char32_t c) { return code(c) | (of & kData); }

/// Decodes UTF-8; invalid bytes become U+FFFD.
Text to_text(std::string_view utf8, bool is_data = false);
std::string to_utf8(TextView text);

/// Comparisons and searches ignore the marks.
bool same(TextView a, TextView b);
bool same(TextView a, std::string_view ascii);
int compare(TextView a, TextView b);
/// Return npos if `part` is not found.
size_t find(TextView text, TextView part, size_t from = 0);
size_t find_last(TextView text, TextView part);

/// As Python's str.isspace, str.isalpha and so on.
bool is_space(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_alnum(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_title(char32_t c);
bool is_printable(char32_t c);
bool is_identifier(TextView text);
/// Returns 0 to 9 for a decimal digit, -1 for any other character.
int decimal_value(char32_t c);

/// Unicode's full case mappings, as in str.upper, lower, title and casefold. Marks are kept.
Text upper(TextView text);
/// Lowers the characters [begin, end). Context-dependent forms depend on the whole text.
Text lower(TextView text, size_t begin = 0, size_t end = TextView::npos);
Text title_case(char32_t c);
Text case_fold(TextView text);

enum class Side { left, right, both };
/// Strips the characters of `chars` from the given sides; white space if `chars` is null.
TextView strip(TextView text, const TextView* chars, Side side = Side::both);
/// str.splitlines: splits at all line breaks that Python knows.
std::vector<TextView> split_lines(TextView text, bool keep_ends);

}  // namespace kvasir::jinja
