// Jinja's filters and tests, by name. The tables are in filters.cc and tests.cc; a template that uses another name is
// refused when it is parsed.
#pragma once

#include <initializer_list>

#include "chat/jinja/objects.h"

namespace kvasir::jinja {

struct FilterEntry {
  const char* name;
  std::initializer_list<const char*> parameters;
  size_t required;
  Result<Value> (*body)(Render&, const Value& of, const Given& given);
  /// Replaces `body` for filters that take any arguments.
  Result<Value> (*with_any)(Render&, const Value& of, Arguments arguments) = nullptr;
};

struct TestEntry {
  const char* name;
  size_t parameters;
  Result<bool> (*body)(Render&, const Value& of, const Given& given);
};

/// Return null for an unknown name.
const FilterEntry* find_filter(TextView name);
const TestEntry* find_test(TextView name);

Result<Value> apply_filter(Render& render, const FilterEntry& filter, const Value& of, Arguments arguments);
Result<bool> apply_test(Render& render, const TestEntry& test, const Value& of, Arguments arguments);

// ---- the filters, implemented in filters_text.cc, filters_list.cc and filters_choose.cc

#define KVASIR_FILTER(name) Result<Value> name(Render& render, const Value& of, const Given& given)
KVASIR_FILTER(filter_abs);
KVASIR_FILTER(filter_attr);
KVASIR_FILTER(filter_batch);
KVASIR_FILTER(filter_capitalize);
KVASIR_FILTER(filter_center);
KVASIR_FILTER(filter_default);
KVASIR_FILTER(filter_dictsort);
KVASIR_FILTER(filter_escape);
KVASIR_FILTER(filter_first);
KVASIR_FILTER(filter_float);
KVASIR_FILTER(filter_forceescape);
KVASIR_FILTER(filter_groupby);
KVASIR_FILTER(filter_indent);
KVASIR_FILTER(filter_int);
KVASIR_FILTER(filter_items);
KVASIR_FILTER(filter_join);
KVASIR_FILTER(filter_last);
KVASIR_FILTER(filter_length);
KVASIR_FILTER(filter_list);
KVASIR_FILTER(filter_lower);
KVASIR_FILTER(filter_max);
KVASIR_FILTER(filter_min);
KVASIR_FILTER(filter_replace);
KVASIR_FILTER(filter_reverse);
KVASIR_FILTER(filter_round);
KVASIR_FILTER(filter_safe);
KVASIR_FILTER(filter_slice);
KVASIR_FILTER(filter_sort);
KVASIR_FILTER(filter_string);
KVASIR_FILTER(filter_sum);
KVASIR_FILTER(filter_title);
KVASIR_FILTER(filter_tojson);
KVASIR_FILTER(filter_trim);
KVASIR_FILTER(filter_truncate);
KVASIR_FILTER(filter_unique);
KVASIR_FILTER(filter_upper);
KVASIR_FILTER(filter_urlencode);
KVASIR_FILTER(filter_wordcount);
#undef KVASIR_FILTER
Result<Value> filter_format(Render& render, const Value& of, Arguments arguments);
Result<Value> filter_map(Render& render, const Value& of, Arguments arguments);
Result<Value> filter_select(Render& render, const Value& of, Arguments arguments);
Result<Value> filter_reject(Render& render, const Value& of, Arguments arguments);
Result<Value> filter_selectattr(Render& render, const Value& of, Arguments arguments);
Result<Value> filter_rejectattr(Render& render, const Value& of, Arguments arguments);

// ---- helpers of the filters

/// bool(given); false if the argument was not given.
Result<bool> flag(Render& render, const Value& given);
/// Returns a text unchanged, with its marks; str(of) for any other value.
Result<Value> soft_text(Render& render, const Value& of);

/// A path such as "a.b.0" from an item to one of its attributes. An absent path leads to the item itself.
class AttributePath {
 public:
  static Result<AttributePath> of(Render& render, const Value& attribute);
  /// Returns the attribute. `otherwise` replaces undefined values, unless it is missing or None. `ignore_case`: lowers
  /// texts.
  Result<Value> get(Render& render, Value item, bool ignore_case = false, const Value& otherwise = {}) const;

 private:
  std::vector<Value> parts_;
};

/// Sorts stably by keys. Errors: keys that have no order.
Result<void> sort_by_keys(Render& render, std::vector<std::pair<Value, Value>>* keyed, bool reverse);

}  // namespace kvasir::jinja
