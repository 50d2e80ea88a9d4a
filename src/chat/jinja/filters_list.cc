// Filters on lists and dicts.
#include <algorithm>

#include "chat/jinja/attributes.h"
#include "chat/jinja/filters.h"
#include "chat/jinja/format.h"
#include "chat/jinja/methods.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/repr.h"

namespace kvasir::jinja {
namespace {

Value listed(Render& render, std::vector<std::pair<Value, Value>> keyed) {
  std::vector<Value> items;
  items.reserve(keyed.size());
  for (const auto& [key, item] : keyed) items.push_back(item);
  return render.heap().list(std::move(items));
}

}  // namespace

Result<Value> filter_list(Render& render, const Value& of, const Given&) {
  KVASIR_TRY(std::vector<Value> items, collect(render, of));
  return render.heap().list(std::move(items));
}

Result<Value> filter_length(Render& render, const Value& of, const Given&) {
  if (auto* loop = of.kind == Kind::object ? dynamic_cast<Loop*>(of.object) : nullptr) {
    KVASIR_TRY(const int64_t count, loop->count(render));
    return Value::of_int(count);
  }
  const std::optional<int64_t> length = length_of(of);
  if (!length) return failed("object of type '" + type_name(of) + "' has no len()");
  return Value::of_int(*length);
}

Result<Value> filter_first(Render& render, const Value& of, const Given&) {
  KVASIR_TRY(Iterator* const items, iterate(render, of));
  KVASIR_TRY(const std::optional<Value> item, items->next(render));
  return item ? *item : render.heap().undefined("No first item, sequence was empty.");
}

namespace {

bool can_be_reversed(const Value& of) {
  if (of.kind == Kind::object)
    return dynamic_cast<Range*>(of.object) != nullptr || dynamic_cast<DictView*>(of.object) != nullptr;
  return of.is_undefined() || of.is_text() || of.is_sequence() || of.kind == Kind::dict;
}

}  // namespace

Result<Value> filter_last(Render& render, const Value& of, const Given&) {
  if (!can_be_reversed(of)) return failed("'" + type_name(of) + "' object is not reversible");
  if (of.is_text() && !of.text().empty()) return render.heap().text(Text(1, of.text().back()), of.is_safe);
  KVASIR_TRY(const std::vector<Value> items, collect(render, of));
  return items.empty() ? render.heap().undefined("No last item, sequence was empty.") : items.back();
}

Result<Value> filter_reverse(Render& render, const Value& of, const Given&) {
  if (of.is_text()) return render.heap().text(Text(of.text().rbegin(), of.text().rend()), of.is_safe);
  auto items = collect(render, of);
  if (!items)
    return items.error().kind == Error::too_long ? Result<Value>(tl::unexpected<Error>(items.error()))
                                                 : failed("argument must be iterable");
  std::reverse(items->begin(), items->end());
  const Value list = render.heap().list(std::move(*items));
  if (!can_be_reversed(of)) return list;
  KVASIR_TRY(Iterator* const reversed, iterate(render, list));
  return Value::of_object(reversed);
}

Result<Value> filter_items(Render& render, const Value& of, const Given&) {
  if (of.is_undefined()) return generator(render, [](Render&) -> Result<std::optional<Value>> { return std::nullopt; });
  // A generator: the error is returned only when an item is requested.
  return generator(render,
                   [of, items = static_cast<Iterator*>(nullptr)](Render& r) mutable -> Result<std::optional<Value>> {
                     if (of.kind != Kind::dict) return failed("Can only get item pairs from a mapping.");
                     if (items == nullptr) items = r.heap().make<DictView>(of, DictView::items)->iterate(r);
                     return items->next(r);
                   });
}

Result<Value> filter_join(Render& render, const Value& of, const Given& given) {
  KVASIR_TRY(const AttributePath path, AttributePath::of(render, given[1]));
  Text between;
  if (!given[0].is_missing()) {
    KVASIR_TRY(between, str_of(render, given[0]));
  }
  KVASIR_TRY(const std::vector<Value> items, collect(render, of));
  Text out;
  size_t charged = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    KVASIR_TRY(const Value item, path.get(render, items[i]));
    KVASIR_TRY(const Text text, str_of(render, item));
    if (i > 0) out += between;
    out += text;
    KVASIR_CHECK(render.grow(out.size(), &charged));
  }
  return render.heap().text(std::move(out));
}

Result<Value> filter_sum(Render& render, const Value& of, const Given& given) {
  KVASIR_TRY(const AttributePath path, AttributePath::of(render, given[0]));
  KVASIR_TRY(const std::vector<Value> items, collect(render, of));
  Value sum = given[1].is_missing() ? Value::of_int(0) : given[1];
  if (sum.is_text()) return failed("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : items) {
    KVASIR_TRY(const Value part, path.get(render, item));
    KVASIR_TRY(sum, calculate(render, Op::add, sum, part));
  }
  return sum;
}

namespace {

Result<Value> least(Render& render, const Value& of, const Given& given, bool is_max) {
  KVASIR_TRY(const bool with_case, flag(render, given[0]));
  KVASIR_TRY(const std::vector<Value> items, collect(render, of));
  if (items.empty()) return render.heap().undefined("No aggregated item, sequence was empty.");
  KVASIR_TRY(const AttributePath path, AttributePath::of(render, given[1]));
  Value best = items[0];
  KVASIR_TRY(Value best_key, path.get(render, best, !with_case));
  for (size_t i = 1; i < items.size(); ++i) {
    KVASIR_TRY(const Value key, path.get(render, items[i], !with_case));
    KVASIR_TRY(const bool is_better, is_max ? less(render, best_key, key) : less(render, key, best_key));
    if (!is_better) continue;
    best = items[i];
    best_key = key;
  }
  return best;
}

}  // namespace

Result<Value> filter_min(Render& render, const Value& of, const Given& given) {
  return least(render, of, given, false);
}
Result<Value> filter_max(Render& render, const Value& of, const Given& given) { return least(render, of, given, true); }

// ---- sorting

Result<Value> filter_sort(Render& render, const Value& of, const Given& given) {
  KVASIR_TRY(const int64_t reverse, integer_or(given[0], 0));
  KVASIR_TRY(const bool with_case, flag(render, given[1]));
  std::vector<AttributePath> paths;
  if (given[2].is_text()) {
    for (TextView rest = given[2].text();;) {
      const size_t comma = find(rest, U",");
      KVASIR_TRY(paths.emplace_back(), AttributePath::of(render, render.heap().text(Text(rest.substr(0, comma)))));
      if (comma == TextView::npos) break;
      rest.remove_prefix(comma + 1);
    }
  } else {
    KVASIR_TRY(paths.emplace_back(), AttributePath::of(render, given[2]));
  }
  KVASIR_TRY(const std::vector<Value> items, collect(render, of));
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items) {
    std::vector<Value> keys;
    for (const AttributePath& path : paths) {
      KVASIR_TRY(keys.emplace_back(), path.get(render, item, !with_case));
    }
    keyed.emplace_back(render.heap().list(std::move(keys)), item);
  }
  KVASIR_CHECK(sort_by_keys(render, &keyed, reverse != 0));
  return listed(render, std::move(keyed));
}

Result<Value> filter_dictsort(Render& render, const Value& of, const Given& given) {
  KVASIR_TRY(const bool with_case, flag(render, given[0]));
  KVASIR_TRY(const int64_t reverse, integer_or(given[2], 0));
  const bool by_value = given[1].is_text() && same(given[1].text(), "value");
  if (!given[1].is_missing() && !by_value && !(given[1].is_text() && same(given[1].text(), "key")))
    return failed("You can only sort by either \"key\" or \"value\"");
  if (of.is_undefined()) return undefined_error(of);
  if (of.kind != Kind::dict) return failed("'" + type_name(of) + "' object has no attribute 'items'");
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : of.pairs()) {
    Value by = by_value ? value : key;
    if (!with_case && by.is_text()) by = render.heap().text(lower(by.text()));
    keyed.emplace_back(by, render.heap().tuple({key, value}));
  }
  KVASIR_CHECK(sort_by_keys(render, &keyed, reverse != 0));
  return listed(render, std::move(keyed));
}

Result<Value> filter_unique(Render& render, const Value& of, const Given& given) {
  KVASIR_TRY(const bool with_case, flag(render, given[0]));
  KVASIR_TRY(const AttributePath path, AttributePath::of(render, given[1]));
  KVASIR_TRY(Iterator* const items, iterate(render, of));
  return generator(render,
                   [with_case, path, items,
                    seen = std::vector<std::pair<Value, Value>>()](Render& r) mutable -> Result<std::optional<Value>> {
                     for (;;) {
                       KVASIR_TRY(const std::optional<Value> item, items->next(r));
                       if (!item) return item;
                       KVASIR_TRY(const Value key, path.get(r, *item, !with_case));
                       KVASIR_TRY(const Value found, find_key(r, seen, key));
                       if (!found.is_missing()) continue;
                       seen.emplace_back(key, Value::none());
                       return item;
                     }
                   });
}

namespace {

struct Group {
  Value key;
  std::vector<Value> items;
};

}  // namespace

Result<Value> filter_groupby(Render& render, const Value& of, const Given& given) {
  KVASIR_TRY(const AttributePath path, AttributePath::of(render, given[0]));
  KVASIR_TRY(const bool with_case, flag(render, given[2]));
  KVASIR_TRY(const std::vector<Value> items, collect(render, of));
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items) {
    KVASIR_TRY(const Value key, path.get(render, item, !with_case, given[1]));
    keyed.emplace_back(key, item);
  }
  KVASIR_CHECK(sort_by_keys(render, &keyed, false));
  std::vector<Group> groups;
  for (const auto& [key, item] : keyed) {
    bool goes_on = false;
    if (!groups.empty()) {
      KVASIR_TRY(goes_on, equals(render, groups.back().key, key));
    }
    if (!goes_on) groups.push_back({key, {}});
    groups.back().items.push_back(item);
  }
  std::vector<Value> out;
  for (Group& group : groups) {
    Value key = group.key;
    if (!with_case) {
      KVASIR_TRY(key, path.get(render, group.items[0], false, given[1]));
    }
    Value tuple = render.heap().tuple({key, render.heap().list(std::move(group.items))});
    tuple.is_group = true;
    out.push_back(tuple);
  }
  return render.heap().list(std::move(out));
}

// ---- parts

Result<Value> filter_batch(Render& render, const Value& of, const Given& given) {
  KVASIR_TRY(Iterator* const items, iterate(render, of));
  return generator(render,
                   [items, each = given[0], fill = given[1], is_over = false,
                    waiting = std::optional<Value>()](Render& r) mutable -> Result<std::optional<Value>> {
                     std::vector<Value> part;
                     if (waiting) part.push_back(*std::exchange(waiting, std::nullopt));
                     while (!is_over) {
                       KVASIR_CHECK(r.step());
                       KVASIR_TRY(const std::optional<Value> item, items->next(r));
                       is_over = !item;
                       if (!item) break;
                       KVASIR_TRY(const bool is_full,
                                  equals(r, Value::of_int(static_cast<int64_t>(part.size())), each));
                       if (is_full) {
                         waiting = item;
                         return r.heap().list(std::move(part));
                       }
                       part.push_back(*item);
                     }
                     if (part.empty()) return std::nullopt;
                     if (!fill.is_missing() && !fill.is_none()) {
                       KVASIR_TRY(const bool is_short, less(r, Value::of_int(static_cast<int64_t>(part.size())), each));
                       if (is_short) {
                         KVASIR_TRY(const int64_t wanted, integer_or(each, 0));
                         KVASIR_CHECK(r.room(static_cast<size_t>(wanted), sizeof(Value)));
                         part.resize(static_cast<size_t>(wanted), fill);
                       }
                     }
                     return r.heap().list(std::move(part));
                   });
}

Result<Value> filter_slice(Render& render, const Value& of, const Given& given) {
  // A generator: wrong arguments are reported when an item is requested.
  return generator(render,
                   [of, slices = given[0], fill = given[1], at = int64_t{0}, all = std::vector<Value>(),
                    is_read = false](Render& r) mutable -> Result<std::optional<Value>> {
                     if (!is_read) {
                       KVASIR_TRY(all, collect(r, of));
                       is_read = true;
                     }
                     if (!slices.is_int()) return failed("the number of slices is no integer");
                     const int64_t count = slices.to_int();
                     if (count == 0) return failed("integer division or modulo by zero");
                     if (at >= count) return std::nullopt;
                     KVASIR_CHECK(r.step());
                     const auto size = static_cast<int64_t>(all.size());
                     const int64_t each = size / count, longer = size % count;
                     const int64_t begin = at * each + std::min(at, longer);
                     const int64_t end = begin + each + (at < longer ? 1 : 0);
                     std::vector<Value> part(all.begin() + begin, all.begin() + end);
                     if (!fill.is_missing() && !fill.is_none() && at >= longer) part.push_back(fill);
                     ++at;
                     return r.heap().list(std::move(part));
                   });
}

}  // namespace kvasir::jinja
