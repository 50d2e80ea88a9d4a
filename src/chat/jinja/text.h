// Text whose characters know where they came from: the template, or the data that it was given. The mark is a bit of
// the character, and so it goes wherever the character goes: through slices, filters, formats and JSON.
// Python's view of characters (white space, cases, classes) is here; methods of strings are in methods_text.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvasir::jinja {

/// A code point, with kData set where it came from data.
using Text = std::u32string;
using TextView = std::u32string_view;

inline constexpr char32_t kData = 0x8000'0000;

constexpr char32_t code(char32_t c) { return c & ~kData; }
/// `c` with the mark of `of`: what becomes of a character stays where it came from.
constexpr char32_t marked_as(char32_t of, char32_t c) { return code(c) | (of & kData); }

/// Bytes that are not UTF-8 become U+FFFD.
Text to_text(std::string_view utf8, bool is_data = false);
std::string to_utf8(TextView text);

/// Comparisons and searches look at characters only, not at their marks.
bool same(TextView a, TextView b);
bool same(TextView a, std::string_view ascii);
int compare(TextView a, TextView b);
/// npos where it is not found.
size_t find(TextView text, TextView part, size_t from = 0);
size_t find_last(TextView text, TextView part);

/// As Python's str.isspace, isalpha ... do.
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
/// 0 to 9; -1 for any other character.
int decimal_value(char32_t c);

/// Unicode's full mappings, as str.upper, lower, title and casefold use them; marks stay.
Text upper(TextView text);
/// Of the characters from `begin` to `end`, as they are cased in the whole.
Text lower(TextView text, size_t begin = 0, size_t end = TextView::npos);
Text title_case(char32_t c);
Text case_fold(TextView text);

enum class Side { left, right, both };
/// Without the characters of `chars` at its sides; of white space where `chars` is null.
TextView strip(TextView text, const TextView* chars, Side side = Side::both);
/// str.splitlines: cut where Python sees the end of a line.
std::vector<TextView> split_lines(TextView text, bool keep_ends);

}  // namespace kvasir::jinja
