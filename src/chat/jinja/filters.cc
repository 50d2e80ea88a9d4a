// The table of filters, and their helpers.
#include "chat/jinja/filters.h"

#include <algorithm>

#include "chat/jinja/attributes.h"
#include "chat/jinja/format.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/repr.h"

namespace kvasir::jinja {
namespace {

const FilterEntry kFilters[] = {
    {"abs", {}, 0, filter_abs},
    {"attr", {"name"}, 1, filter_attr},
    {"batch", {"linecount", "fill_with"}, 1, filter_batch},
    {"capitalize", {}, 0, filter_capitalize},
    {"center", {"width"}, 0, filter_center},
    {"count", {}, 0, filter_length},
    {"d", {"default_value", "boolean"}, 0, filter_default},
    {"default", {"default_value", "boolean"}, 0, filter_default},
    {"dictsort", {"case_sensitive", "by", "reverse"}, 0, filter_dictsort},
    {"e", {}, 0, filter_escape},
    {"escape", {}, 0, filter_escape},
    {"first", {}, 0, filter_first},
    {"float", {"default"}, 0, filter_float},
    {"forceescape", {}, 0, filter_forceescape},
    {"format", {}, 0, nullptr, filter_format},
    {"groupby", {"attribute", "default", "case_sensitive"}, 1, filter_groupby},
    {"indent", {"width", "first", "blank"}, 0, filter_indent},
    {"int", {"default", "base"}, 0, filter_int},
    {"items", {}, 0, filter_items},
    {"join", {"d", "attribute"}, 0, filter_join},
    {"last", {}, 0, filter_last},
    {"length", {}, 0, filter_length},
    {"list", {}, 0, filter_list},
    {"lower", {}, 0, filter_lower},
    {"map", {}, 0, nullptr, filter_map},
    {"max", {"case_sensitive", "attribute"}, 0, filter_max},
    {"min", {"case_sensitive", "attribute"}, 0, filter_min},
    {"reject", {}, 0, nullptr, filter_reject},
    {"rejectattr", {}, 0, nullptr, filter_rejectattr},
    {"replace", {"old", "new", "count"}, 2, filter_replace},
    {"reverse", {}, 0, filter_reverse},
    {"round", {"precision", "method"}, 0, filter_round},
    {"safe", {}, 0, filter_safe},
    {"select", {}, 0, nullptr, filter_select},
    {"selectattr", {}, 0, nullptr, filter_selectattr},
    {"slice", {"slices", "fill_with"}, 1, filter_slice},
    {"sort", {"reverse", "case_sensitive", "attribute"}, 0, filter_sort},
    {"string", {}, 0, filter_string},
    {"sum", {"attribute", "start"}, 0, filter_sum},
    {"title", {}, 0, filter_title},
    {"tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, filter_tojson},
    {"trim", {"chars"}, 0, filter_trim},
    {"truncate", {"length", "killwords", "end", "leeway"}, 0, filter_truncate},
    {"unique", {"case_sensitive", "attribute"}, 0, filter_unique},
    {"upper", {}, 0, filter_upper},
    {"urlencode", {}, 0, filter_urlencode},
    {"wordcount", {}, 0, filter_wordcount},
};

}  // namespace

const FilterEntry* find_filter(TextView name) {
  for (const FilterEntry& filter : kFilters)
    if (same(name, filter.name)) return &filter;
  return nullptr;
}

Result<Value> apply_filter(Render& render, const FilterEntry& filter, const Value& of, Arguments arguments) {
  if (filter.with_any != nullptr) return filter.with_any(render, of, std::move(arguments));
  KVASIR_TRY(const Given given, bind(filter.name, filter.parameters, filter.required, std::move(arguments)));
  return filter.body(render, of, given);
}

Result<bool> flag(Render& render, const Value& given) { return truth(render, given); }

Result<Value> soft_text(Render& render, const Value& of) {
  if (of.is_text()) return of;
  KVASIR_TRY(Text text, str_of(render, of));
  return render.heap().text(std::move(text));
}

Result<AttributePath> AttributePath::of(Render& render, const Value& attribute) {
  AttributePath path;
  if (attribute.is_missing() || attribute.is_none()) return path;
  if (!attribute.is_text()) {
    path.parts_.push_back(attribute);
    return path;
  }
  TextView rest = attribute.text();
  for (;;) {
    const size_t dot = find(rest, U".");
    const TextView part = rest.substr(0, dot);
    std::optional<int64_t> index;
    if (!part.empty() && std::all_of(part.begin(), part.end(), is_digit)) {
      KVASIR_TRY(index, parse_integer(part, 10));
      if (!index) return failed("invalid literal for int() with base 10: '" + to_utf8(part) + "'");
    }
    path.parts_.push_back(index ? Value::of_int(*index) : render.heap().text(Text(part)));
    if (dot == TextView::npos) return path;
    rest.remove_prefix(dot + 1);
  }
}

Result<Value> AttributePath::get(Render& render, Value item, bool ignore_case, const Value& otherwise) const {
  KVASIR_CHECK(render.step());
  for (const Value& part : parts_) {
    KVASIR_TRY(item, get_item(render, item, part));
    if (item.is_undefined() && !otherwise.is_missing() && !otherwise.is_none()) item = otherwise;
  }
  if (ignore_case && item.is_text()) return render.heap().text(lower(item.text()), item.is_safe);
  return item;
}

Result<void> sort_by_keys(Render& render, std::vector<std::pair<Value, Value>>* keyed, bool reverse) {
  Result<void> done;
  const auto is_before = [&](const Value& a, const Value& b) {
    auto is_less = render.step() ? less(render, a, b) : Result<bool>(render.step().map([] { return false; }));
    if (!is_less && done) done = tl::unexpected<Error>(is_less.error());
    return is_less.value_or(false);
  };
  // Equal items keep their order in both directions. std::stable_sort, a merge sort, tolerates an inconsistent order,
  // where std::sort could read out of bounds.
  std::stable_sort(keyed->begin(), keyed->end(), [&](const auto& a, const auto& b) {
    return reverse ? is_before(b.first, a.first) : is_before(a.first, b.first);
  });
  return done;
}

}  // namespace kvasir::jinja
