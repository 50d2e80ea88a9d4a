// The methods of str, and the table of their parameters.
#include <algorithm>

#include "chat/jinja/filters.h"
#include "chat/jinja/format.h"
#include "chat/jinja/methods.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/repr.h"

namespace kvasir::jinja {
namespace {

struct Method {
  const char* name;
  std::initializer_list<const char*> parameters;
  size_t required;
  Result<Value> (*body)(Render&, const Value& self, const Given& given);
  bool has_keywords = false;  ///< arguments may be given by name too, as in Python
};

Value like(Render& render, const Value& self, Text value) { return render.heap().text(std::move(value), self.is_safe); }

Result<TextView> text_of(const Value& value) {
  if (!value.is_text()) return failed("a str is wanted, not '" + type_name(value) + "'");
  return value.text();
}

// As text_of, but a Markup escapes the arguments of most of its methods.
Result<Text> argument_of(const Value& self, const Value& value) {
  KVASIR_TRY(const TextView text, text_of(value));
  return self.is_safe && !value.is_safe ? escaped(text) : Text(text);
}

bool is_given(const Value& value) { return !value.is_missing() && !value.is_none(); }

// ---- white space and cases

template <Side side>
Result<Value> strip_side(Render& render, const Value& self, const Given& given) {
  if (!is_given(given[0])) return like(render, self, Text(strip(self.text(), nullptr, side)));
  KVASIR_TRY(const Text chars, argument_of(self, given[0]));
  const TextView of = chars;
  return like(render, self, Text(strip(self.text(), &of, side)));
}

template <Text (*change)(TextView)>
Result<Value> change_case(Render& render, const Value& self, const Given&) {
  return like(render, self, change(self.text()));
}

Result<Value> fold_case(Render& render, const Value& self, const Given&) {
  return render.heap().text(case_fold(self.text()));  // a plain str even for a Markup, as in Jinja
}

Text lower_all(TextView of) { return lower(of); }

Text capitalize(TextView of) { return of.empty() ? Text() : title_case(of[0]) + lower(of, 1); }

Text title(TextView of) {
  const auto is_cased = [](char32_t c) { return is_lower(c) || is_upper(c) || is_title(c); };
  Text out;
  for (size_t i = 0; i < of.size();) {
    if (!is_cased(of[i])) {
      out += of[i++];
      continue;
    }
    const size_t begin = i;
    while (i < of.size() && is_cased(of[i])) ++i;
    out += title_case(of[begin]) + lower(of, begin + 1, i);
  }
  return out;
}

Text swap_case(TextView of) {
  Text out;
  for (size_t i = 0; i < of.size(); ++i) {
    const TextView one = of.substr(i, 1);
    out += is_upper(of[i]) ? lower(of, i, i + 1) : is_lower(of[i]) ? upper(one) : Text(one);
  }
  return out;
}

template <bool (*holds)(char32_t)>
Result<Value> all_are(Render&, const Value& self, const Given&) {
  const TextView of = self.text();
  return Value::of_bool(!of.empty() && std::all_of(of.begin(), of.end(), holds));
}

template <bool (*wanted)(char32_t), bool (*other)(char32_t)>
Result<Value> is_cased_so(Render&, const Value& self, const Given&) {
  const TextView of = self.text();
  const auto is_wrong = [](char32_t c) { return other(c) || is_title(c); };
  return Value::of_bool(std::none_of(of.begin(), of.end(), is_wrong) && std::any_of(of.begin(), of.end(), wanted));
}

Result<Value> is_title_cased(Render&, const Value& self, const Given&) {
  bool in_word = false, found = false;
  for (const char32_t c : self.text()) {
    const bool is_first = is_upper(c) || is_title(c);
    if ((is_first && in_word) || (is_lower(c) && !in_word)) return Value::of_bool(false);
    in_word = is_first || is_lower(c);
    found |= in_word;
  }
  return Value::of_bool(found);
}

Result<Value> is_ascii(Render&, const Value& self, const Given&) {
  return Value::of_bool(std::all_of(self.text().begin(), self.text().end(), [](char32_t c) { return code(c) < 0x80; }));
}
Result<Value> is_printable_text(Render&, const Value& self, const Given&) {
  return Value::of_bool(std::all_of(self.text().begin(), self.text().end(), is_printable));
}
Result<Value> is_identifier_text(Render&, const Value& self, const Given&) {
  return Value::of_bool(is_identifier(self.text()));
}

// ---- searching

struct Part {
  TextView text;
  int64_t begin = 0;
  bool is_valid = true;
};

// Returns self[start:end] for find, count and similar methods.
Result<Part> part_of(const Value& self, const Value& start, const Value& end) {
  const auto size = static_cast<int64_t>(self.text().size());
  KVASIR_TRY(int64_t first, integer_or_none(start, 0));
  KVASIR_TRY(int64_t last, integer_or_none(end, size));
  if (first < 0) first = std::max<int64_t>(0, first + size);
  if (last < 0) last = std::max<int64_t>(0, last + size);
  last = std::min(last, size);
  if (first > last) return Part{{}, first, false};
  return Part{self.text().substr(static_cast<size_t>(first), static_cast<size_t>(last - first)), first};
}

template <bool from_end, bool must_be>
Result<Value> find_text(Render&, const Value& self, const Given& given) {
  KVASIR_TRY(const TextView wanted, text_of(given[0]));
  KVASIR_TRY(const Part part, part_of(self, given[1], given[2]));
  const size_t at = from_end ? find_last(part.text, wanted) : find(part.text, wanted);
  if (at != TextView::npos && part.is_valid) return Value::of_int(part.begin + static_cast<int64_t>(at));
  if (must_be) return failed("substring not found");
  return Value::of_int(-1);
}

Result<Value> count_text(Render&, const Value& self, const Given& given) {
  KVASIR_TRY(const TextView wanted, text_of(given[0]));
  KVASIR_TRY(const Part part, part_of(self, given[1], given[2]));
  if (!part.is_valid) return Value::of_int(0);
  if (wanted.empty()) return Value::of_int(static_cast<int64_t>(part.text.size()) + 1);
  int64_t count = 0;
  for (size_t at = 0; (at = find(part.text, wanted, at)) != TextView::npos; at += wanted.size()) ++count;
  return Value::of_int(count);
}

template <bool at_end>
Result<Value> begins_or_ends(Render&, const Value& self, const Given& given) {
  KVASIR_TRY(const Part part, part_of(self, given[1], given[2]));
  const std::vector<Value> one{given[0]};
  for (const Value& value : given[0].kind == Kind::tuple ? given[0].items() : one) {
    KVASIR_TRY(const TextView wanted, text_of(value));
    if (!part.is_valid || wanted.size() > part.text.size()) continue;
    const size_t at = at_end ? part.text.size() - wanted.size() : 0;
    if (same(part.text.substr(at, wanted.size()), wanted)) return Value::of_bool(true);
  }
  return Value::of_bool(false);
}

// ---- splitting

Result<Value> list_of(Render& render, const Value& self, const std::vector<TextView>& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  KVASIR_CHECK(render.room(parts.size(), sizeof(TextCell) + sizeof(Value)));
  for (const TextView part : parts) items.push_back(like(render, self, Text(part)));
  return render.heap().list(std::move(items));
}

std::vector<TextView> split_space(TextView of, int64_t most) {
  std::vector<TextView> parts;
  size_t at = 0;
  const auto skip = [&] {
    while (at < of.size() && is_space(of[at])) ++at;
  };
  for (skip(); at < of.size(); skip()) {
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
      parts.push_back(of.substr(at));
      break;
    }
    const size_t begin = at;
    while (at < of.size() && !is_space(of[at])) ++at;
    parts.push_back(of.substr(begin, at - begin));
  }
  return parts;
}

std::vector<TextView> split_space_from_end(TextView of, int64_t most) {
  std::vector<TextView> parts;
  for (of = strip(of, nullptr, Side::right); !of.empty(); of = strip(of, nullptr, Side::right)) {
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
      parts.push_back(of);
      break;
    }
    size_t begin = of.size();
    while (begin > 0 && !is_space(of[begin - 1])) --begin;
    parts.push_back(of.substr(begin));
    of = of.substr(0, begin);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

template <bool from_end>
Result<Value> split(Render& render, const Value& self, const Given& given) {
  KVASIR_TRY(const int64_t most, integer_or(given[1], -1));
  TextView of = self.text();
  if (!is_given(given[0]))
    return list_of(render, self, from_end ? split_space_from_end(of, most) : split_space(of, most));
  KVASIR_TRY(const TextView by, text_of(given[0]));
  if (by.empty()) return failed("empty separator");
  std::vector<TextView> parts;
  while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
    const size_t at = from_end ? find_last(of, by) : find(of, by);
    if (at == TextView::npos) break;
    parts.push_back(from_end ? of.substr(at + by.size()) : of.substr(0, at));
    of = from_end ? of.substr(0, at) : of.substr(at + by.size());
  }
  parts.push_back(of);
  if (from_end) std::reverse(parts.begin(), parts.end());
  return list_of(render, self, parts);
}

template <bool from_end>
Result<Value> partition(Render& render, const Value& self, const Given& given) {
  // Unlike the other methods, a Markup's escapes a separator of any type.
  KVASIR_TRY(const Value separator, self.is_safe ? filter_escape(render, given[0], {}) : Result<Value>(given[0]));
  KVASIR_TRY(const TextView by, text_of(separator));
  if (by.empty()) return failed("empty separator");
  const TextView of = self.text();
  const size_t at = from_end ? find_last(of, by) : find(of, by);
  const auto part = [&](TextView t) { return like(render, self, Text(t)); };
  if (at == TextView::npos) {
    if (from_end) return render.heap().tuple({part({}), part({}), part(of)});
    return render.heap().tuple({part(of), part({}), part({})});
  }
  return render.heap().tuple({part(of.substr(0, at)), part(of.substr(at, by.size())), part(of.substr(at + by.size()))});
}

Result<Value> split_into_lines(Render& render, const Value& self, const Given& given) {
  KVASIR_TRY(const int64_t keep_ends, integer_or(given[0], 0));
  return list_of(render, self, split_lines(self.text(), keep_ends != 0));
}

template <bool at_end>
Result<Value> without(Render& render, const Value& self, const Given& given) {
  KVASIR_TRY(const TextView part, text_of(given[0]));
  TextView of = self.text();
  if (part.size() <= of.size() && same(of.substr(at_end ? of.size() - part.size() : 0, part.size()), part))
    at_end ? of.remove_suffix(part.size()) : of.remove_prefix(part.size());
  return render.heap().text(Text(of));  // a plain str even for a Markup, as in Jinja
}

// ---- replacing, joining and padding

Result<Value> replace(Render& render, const Value& self, const Given& given) {
  KVASIR_TRY(const Text old, argument_of(self, given[0]));
  KVASIR_TRY(const Text by, argument_of(self, given[1]));
  KVASIR_TRY(const int64_t most, integer_or(given[2], -1));
  KVASIR_TRY(Text out, replaced(render, self.text(), old, by, most));
  return like(render, self, std::move(out));
}

Result<Value> join(Render& render, const Value& self, const Given& given) {
  KVASIR_TRY(const std::vector<Value> items, collect(render, given[0]));
  Text out;
  size_t charged = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += self.text();
    if (self.is_safe) {  // Markup.join escapes each item, of any type
      KVASIR_TRY(const Value item, filter_escape(render, items[i], {}));
      out += item.text();
    } else if (items[i].is_text()) {
      out += items[i].text();
    } else {
      return failed(fmt::format("sequence item {}: expected str instance, {} found", i, type_name(items[i])));
    }
    KVASIR_CHECK(render.grow(out.size(), &charged));
  }
  return like(render, self, std::move(out));
}

enum class Align { left, right, center };

template <Align align>
Result<Value> pad(Render& render, const Value& self, const Given& given) {
  KVASIR_TRY(const int64_t width, integer_or(given[0], 0));
  Text fill = U" ";
  if (!given[1].is_missing()) {
    KVASIR_TRY(fill, argument_of(self, given[1]));
    if (fill.size() != 1) return failed("The fill character must be exactly one character long");
  }
  const auto size = static_cast<int64_t>(self.text().size());
  if (width <= size) return self;
  KVASIR_CHECK(render.room(static_cast<size_t>(width)));
  const auto missing = static_cast<size_t>(width - size);
  size_t left = 0;
  if (align == Align::right) left = missing;
  if (align == Align::center) left = missing / 2 + (missing & static_cast<size_t>(width) & 1);
  return like(render, self, Text(left, fill[0]) + Text(self.text()) + Text(missing - left, fill[0]));
}

Result<Value> zero_fill(Render& render, const Value& self, const Given& given) {
  KVASIR_TRY(const int64_t width, integer_or(given[0], 0));
  TextView of = self.text();
  if (width <= static_cast<int64_t>(of.size())) return self;
  KVASIR_CHECK(render.room(static_cast<size_t>(width)));
  const Text zeros(static_cast<size_t>(width) - of.size(), U'0');
  Text out;
  if (!of.empty() && (code(of[0]) == '+' || code(of[0]) == '-')) {
    out += of[0];
    of.remove_prefix(1);
  }
  return like(render, self, out + zeros + Text(of));
}

Result<Value> expand_tabs(Render& render, const Value& self, const Given& given) {
  KVASIR_TRY(const int64_t size, integer_or(given[0], 8));
  Text out;
  int64_t column = 0;
  for (const char32_t c : self.text()) {
    if (code(c) != '\t') {
      out += c;
      column = code(c) == '\n' || code(c) == '\r' ? 0 : column + 1;
    } else if (size > 0) {
      const int64_t spaces = size - column % size;
      KVASIR_CHECK(render.room(static_cast<size_t>(spaces)));
      out.append(static_cast<size_t>(spaces), marked_as(c, U' '));
      column += spaces;
    }
  }
  return like(render, self, std::move(out));
}

Result<Value> no_bytes(Render&, const Value&, const Given&) {
  return fail(Error::unsupported, "bytes are not supported in a chat template");
}

const Method kMethods[] = {
    {"strip", {"chars"}, 0, strip_side<Side::both>},
    {"lstrip", {"chars"}, 0, strip_side<Side::left>},
    {"rstrip", {"chars"}, 0, strip_side<Side::right>},
    {"upper", {}, 0, change_case<upper>},
    {"lower", {}, 0, change_case<lower_all>},
    {"casefold", {}, 0, fold_case},
    {"capitalize", {}, 0, change_case<capitalize>},
    {"title", {}, 0, change_case<title>},
    {"swapcase", {}, 0, change_case<swap_case>},
    {"isspace", {}, 0, all_are<is_space>},
    {"isalpha", {}, 0, all_are<is_alpha>},
    {"isdecimal", {}, 0, all_are<is_decimal>},
    {"isdigit", {}, 0, all_are<is_digit>},
    {"isnumeric", {}, 0, all_are<is_numeric>},
    {"isalnum", {}, 0, all_are<is_alnum>},
    {"islower", {}, 0, is_cased_so<is_lower, is_upper>},
    {"isupper", {}, 0, is_cased_so<is_upper, is_lower>},
    {"istitle", {}, 0, is_title_cased},
    {"isascii", {}, 0, is_ascii},
    {"isprintable", {}, 0, is_printable_text},
    {"isidentifier", {}, 0, is_identifier_text},
    {"find", {"sub", "start", "end"}, 1, find_text<false, false>},
    {"rfind", {"sub", "start", "end"}, 1, find_text<true, false>},
    {"index", {"sub", "start", "end"}, 1, find_text<false, true>},
    {"rindex", {"sub", "start", "end"}, 1, find_text<true, true>},
    {"count", {"sub", "start", "end"}, 1, count_text},
    {"startswith", {"prefix", "start", "end"}, 1, begins_or_ends<false>},
    {"endswith", {"suffix", "start", "end"}, 1, begins_or_ends<true>},
    {"split", {"sep", "maxsplit"}, 0, split<false>, true},
    {"rsplit", {"sep", "maxsplit"}, 0, split<true>, true},
    {"partition", {"sep"}, 1, partition<false>},
    {"rpartition", {"sep"}, 1, partition<true>},
    {"splitlines", {"keepends"}, 0, split_into_lines, true},
    {"removeprefix", {"prefix"}, 1, without<false>},
    {"removesuffix", {"suffix"}, 1, without<true>},
    {"replace", {"old", "new", "count"}, 2, replace},
    {"join", {"iterable"}, 1, join},
    {"ljust", {"width", "fillchar"}, 1, pad<Align::left>},
    {"rjust", {"width", "fillchar"}, 1, pad<Align::right>},
    {"center", {"width", "fillchar"}, 1, pad<Align::center>},
    {"zfill", {"width"}, 1, zero_fill},
    {"expandtabs", {"tabsize"}, 0, expand_tabs, true},
    {"encode", {"encoding", "errors"}, 0, no_bytes, true},
    {"translate", {"table"}, 1, no_bytes},
    {"maketrans", {"x", "y", "z"}, 1, no_bytes},
};

}  // namespace

Value find_text_method(Render& render, const Value& of, TextView name) {
  if (same(name, "format") || same(name, "format_map")) {
    const bool is_map = same(name, "format_map");
    return function(render, [of, is_map](Render& r, Arguments arguments) -> Result<Value> {
      if (is_map) {
        KVASIR_TRY(const auto given, bind("format_map", {"mapping"}, 1, std::move(arguments)));
        if (given[0].kind != Kind::dict) return failed("format_map() wants a mapping");
        arguments = {};
        for (const auto& [key, value] : given[0].pairs())
          if (key.is_text()) arguments.named.emplace_back(Text(key.text()), value);
      }
      KVASIR_TRY(Text out, brace_format(r, of, arguments));
      return like(r, of, std::move(out));
    });
  }
  const auto* const method =
      std::find_if(std::begin(kMethods), std::end(kMethods), [&](const Method& m) { return same(name, m.name); });
  if (method == std::end(kMethods)) return {};
  return function(render, [of, method](Render& r, Arguments arguments) -> Result<Value> {
    if (!method->has_keywords && !arguments.named.empty())
      return failed(fmt::format("str.{}() takes no keyword arguments", method->name));
    KVASIR_TRY(const Given given, bind(method->name, method->parameters, method->required, std::move(arguments)));
    return method->body(r, of, given);
  });
}

}  // namespace kvasir::jinja
