// Methods of lists, dicts, numbers and ranges.
#include "chat/jinja/methods.h"

#include <cmath>

#include "chat/jinja/operators.h"

namespace kvasir::jinja {
namespace {

// ---- lists and tuples

Result<Value> count_of(Render& render, const Value& of, Arguments arguments) {
  KVASIR_TRY(const auto given, bind("count", {"value"}, 1, std::move(arguments)));
  int64_t count = 0;
  for (const Value& item : of.items()) {
    KVASIR_TRY(const bool is_equal, equals(render, item, given[0]));
    count += is_equal;
  }
  return Value::of_int(count);
}

Result<Value> index_of(Render& render, const Value& of, Arguments arguments) {
  KVASIR_TRY(const auto given, bind("index", {"value", "start", "stop"}, 1, std::move(arguments)));
  const auto size = static_cast<int64_t>(of.items().size());
  KVASIR_TRY(int64_t begin, integer_or(given[1], 0));
  KVASIR_TRY(int64_t end, integer_or(given[2], size));
  if (begin < 0) begin = std::max<int64_t>(0, begin + size);
  if (end < 0) end += size;
  for (int64_t i = begin; i < std::min(end, size); ++i) {
    KVASIR_TRY(const bool is_equal, equals(render, of.items()[static_cast<size_t>(i)], given[0]));
    if (is_equal) return Value::of_int(i);
  }
  return failed("the value is not in the list");
}

Result<Value> pop_of(const Value& of, Arguments arguments) {
  KVASIR_TRY(const auto given, bind("pop", {"index"}, 0, std::move(arguments)));
  auto& items = of.list_cell->items;
  KVASIR_TRY(int64_t at, integer_or(given[0], -1));
  if (at < 0) at += static_cast<int64_t>(items.size());
  if (at < 0 || at >= static_cast<int64_t>(items.size())) return failed("pop index out of range");
  const Value item = items[static_cast<size_t>(at)];
  items.erase(items.begin() + at);
  return item;
}

Value list_method(Render& render, const Value& of, TextView name) {
  if (same(name, "count"))
    return function(render, [of](Render& r, Arguments a) { return count_of(r, of, std::move(a)); });
  if (same(name, "index"))
    return function(render, [of](Render& r, Arguments a) { return index_of(r, of, std::move(a)); });
  if (of.kind != Kind::list) return {};
  if (same(name, "pop")) return function(render, [of](Render&, Arguments a) { return pop_of(of, std::move(a)); });
  if (same(name, "clear"))
    return function(render, [of](Render&, Arguments a) -> Result<Value> {
      KVASIR_CHECK(bind("clear", {}, 0, std::move(a)));
      of.list_cell->items.clear();
      return Value::none();
    });
  if (same(name, "copy"))
    return function(render, [of](Render& r, Arguments a) -> Result<Value> {
      KVASIR_CHECK(bind("copy", {}, 0, std::move(a)));
      return r.heap().list(of.items());
    });
  return {};
}

// ---- dicts

Value dict_view(Render& render, const Value& of, const char* name, DictView::Part part) {
  return function(render, [of, name, part](Render& r, Arguments a) -> Result<Value> {
    KVASIR_CHECK(bind(name, {}, 0, std::move(a)));
    return Value::of_object(r.heap().make<DictView>(of, part));
  });
}

Result<Value> from_keys(Render& render, Arguments arguments) {
  KVASIR_TRY(const auto given, bind("fromkeys", {"iterable", "value"}, 1, std::move(arguments)));
  KVASIR_TRY(const std::vector<Value> keys, collect(render, given[0]));
  std::vector<std::pair<Value, Value>> pairs;
  for (const Value& key : keys)
    KVASIR_CHECK(set_key(render, &pairs, key, given[1].is_missing() ? Value::none() : given[1]));
  return render.heap().dict(std::move(pairs));
}

Value dict_method(Render& render, const Value& of, TextView name) {
  if (same(name, "items")) return dict_view(render, of, "items", DictView::items);
  if (same(name, "keys")) return dict_view(render, of, "keys", DictView::keys);
  if (same(name, "values")) return dict_view(render, of, "values", DictView::values);
  if (same(name, "get"))
    return function(render, [of](Render& r, Arguments a) -> Result<Value> {
      if (!a.named.empty()) return failed("get() takes no keyword arguments");
      KVASIR_TRY(const auto given, bind("get", {"key", "default"}, 1, std::move(a)));
      KVASIR_TRY(const Value found, find_key(r, of.pairs(), given[0]));
      if (!found.is_missing()) return found;
      return given[1].is_missing() ? Value::none() : given[1];
    });
  if (same(name, "copy"))
    return function(render, [of](Render& r, Arguments a) -> Result<Value> {
      KVASIR_CHECK(bind("copy", {}, 0, std::move(a)));
      return r.heap().dict(of.pairs());
    });
  if (same(name, "fromkeys")) return function(render, from_keys);
  return {};
}

// ---- numbers

Value without_arguments(Render& render, const char* name, Value result) {
  return function(render, [name, result](Render&, Arguments a) -> Result<Value> {
    KVASIR_CHECK(bind(name, {}, 0, std::move(a)));
    return result;
  });
}

int64_t bits_of(int64_t value) {
  const uint64_t size = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  return size == 0 ? 0 : 64 - __builtin_clzll(size);
}

Value integer_method(Render& render, const Value& of, TextView name) {
  const int64_t value = of.to_int();
  if (same(name, "real") || same(name, "numerator")) return Value::of_int(value);
  if (same(name, "imag")) return Value::of_int(0);
  if (same(name, "denominator")) return Value::of_int(1);
  if (same(name, "conjugate")) return without_arguments(render, "conjugate", Value::of_int(value));
  if (same(name, "bit_length")) return without_arguments(render, "bit_length", Value::of_int(bits_of(value)));
  if (same(name, "bit_count")) {
    const uint64_t size = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    return without_arguments(render, "bit_count", Value::of_int(__builtin_popcountll(size)));
  }
  return {};
}

Value real_method(Render& render, const Value& of, TextView name) {
  const double value = of.real;
  if (same(name, "real")) return of;
  if (same(name, "imag")) return Value::of_real(0);
  if (same(name, "conjugate")) return without_arguments(render, "conjugate", of);
  if (same(name, "is_integer"))
    return without_arguments(render, "is_integer", Value::of_bool(std::isfinite(value) && std::floor(value) == value));
  return {};
}

Value range_attribute(Render& render, const Range& range, TextView name) {
  if (same(name, "start")) return Value::of_int(range.start);
  if (same(name, "stop")) return Value::of_int(range.stop);
  if (same(name, "step")) return Value::of_int(range.step);
  if (!same(name, "count") && !same(name, "index")) return {};
  const bool counts = same(name, "count");
  return function(render, [&range, counts](Render& r, Arguments a) -> Result<Value> {
    KVASIR_TRY(const auto given, bind("index", {"value"}, 1, std::move(a)));
    for (int64_t i = 0; i < *range.length(); ++i) {
      KVASIR_TRY(const bool is_equal, equals(r, Value::of_int(range.at(i)), given[0]));
      if (is_equal) return Value::of_int(counts ? 1 : i);
    }
    if (counts) return Value::of_int(0);
    return failed("the value is not in the range");
  });
}

}  // namespace

Result<Value> find_method(Render& render, const Value& of, TextView name) {
  switch (of.kind) {
    case Kind::text:
      return find_text_method(render, of, name);
    case Kind::list:
    case Kind::tuple:
      return list_method(render, of, name);
    case Kind::dict:
      return dict_method(render, of, name);
    case Kind::boolean:
    case Kind::integer:
      return integer_method(render, of, name);
    case Kind::real:
      return real_method(render, of, name);
    case Kind::object:
      if (const auto* range = dynamic_cast<Range*>(of.object)) return range_attribute(render, *range, name);
      return Value();
    default:
      return Value();
  }
}

}  // namespace kvasir::jinja
