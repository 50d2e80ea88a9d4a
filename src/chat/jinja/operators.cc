// Comparison, truth and dict keys. Arithmetic is in arithmetic.cc.
#include "chat/jinja/operators.h"

#include <cmath>

#include "chat/jinja/objects.h"

namespace kvasir::jinja {
namespace {

bool can_be_key(const Value& value) {
  if (value.kind == Kind::list || value.kind == Kind::dict) return false;
  if (value.kind == Kind::tuple)
    for (const Value& item : value.items())
      if (!can_be_key(item)) return false;
  return true;
}

// Returns -1, 0 or 1. Requires: neither is NaN, which is neither equal to nor less than anything.
int order_of_numbers(const Value& a, const Value& b) {
  if (a.is_int() && b.is_int()) return a.to_int() == b.to_int() ? 0 : a.to_int() < b.to_int() ? -1 : 1;
  const auto x = a.is_int() ? static_cast<long double>(a.to_int()) : static_cast<long double>(a.real);
  const auto y = b.is_int() ? static_cast<long double>(b.to_int()) : static_cast<long double>(b.real);
  if (x == y) return 0;
  return x < y ? -1 : 1;
}

bool is_nan(const Value& value) { return value.kind == Kind::real && std::isnan(value.real); }

Result<bool> equal_items(Render& render, const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (identical(a[i], b[i])) continue;
    KVASIR_TRY(const bool is_equal, equals(render, a[i], b[i]));
    if (!is_equal) return false;
  }
  return true;
}

Result<bool> equal_dicts(Render& render, const Value& a, const Value& b) {
  if (a.pairs().size() != b.pairs().size()) return false;
  for (const auto& [key, value] : a.pairs()) {
    KVASIR_TRY(const Value other, find_key(render, b.pairs(), key));
    if (other.is_missing()) return false;
    if (identical(value, other)) continue;
    KVASIR_TRY(const bool is_equal, equals(render, value, other));
    if (!is_equal) return false;
  }
  return true;
}

bool equal_ranges(const Range& a, const Range& b) {
  const int64_t count = *a.length();
  if (count != *b.length()) return false;
  return count == 0 || (a.start == b.start && (count == 1 || a.step == b.step));
}

}  // namespace

Result<void> check_key(const Value& key) {
  if (can_be_key(key)) return {};
  return failed("unhashable type: '" + type_name(key) + "'");
}

tl::unexpected<Error> undefined_error(const Value& value) { return failed(value.undefined_cell->why); }

Result<bool> truth(Render& render, const Value& value) {
  switch (value.kind) {
    case Kind::missing:
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.to_int() != 0;
    case Kind::real:
      return value.real != 0;
    case Kind::object:
      if (auto* loop = dynamic_cast<Loop*>(value.object)) {
        KVASIR_TRY(const int64_t count, loop->count(render));
        return count != 0;
      }
      break;
    default:
      break;
  }
  return length_of(value).value_or(1) != 0;
}

bool identical(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::none:
      return true;
    case Kind::undefined:
      return a.undefined_cell == b.undefined_cell;
    case Kind::boolean:
      return a.boolean == b.boolean;
    case Kind::integer:
      return a.integer == b.integer;  // Python shares small integers; `is` on larger ones is rare
    case Kind::text:
      return a.text_cell == b.text_cell || (a.text().size() <= 1 && same(a.text(), b.text()));
    case Kind::list:
    case Kind::tuple:
      return a.list_cell == b.list_cell || (a.kind == Kind::tuple && a.items().empty() && b.items().empty());
    case Kind::dict:
      return a.dict_cell == b.dict_cell;
    case Kind::object:
      return a.object == b.object;
    default:
      return false;
  }
}

Result<bool> equals(Render& render, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return !is_nan(a) && !is_nan(b) && order_of_numbers(a, b) == 0;
  if (a.kind != b.kind) return false;
  KVASIR_CHECK(render.step());
  KVASIR_TRY(const Render::Level level, render.enter());
  switch (a.kind) {
    case Kind::text:
      return same(a.text(), b.text());
    case Kind::list:
    case Kind::tuple:
      return equal_items(render, a.items(), b.items());
    case Kind::dict:
      return equal_dicts(render, a, b);
    case Kind::object: {
      const auto *x = dynamic_cast<Range*>(a.object), *y = dynamic_cast<Range*>(b.object);
      if (x != nullptr && y != nullptr) return equal_ranges(*x, *y);
      return a.object == b.object;
    }
    default:
      return true;  // none, undefined
  }
}

Result<bool> less(Render& render, const Value& a, const Value& b) {
  if (a.is_undefined()) return undefined_error(a);
  if (b.is_undefined()) return undefined_error(b);
  if (a.is_number() && b.is_number()) return !is_nan(a) && !is_nan(b) && order_of_numbers(a, b) < 0;
  if (a.is_text() && b.is_text()) return jinja::compare(a.text(), b.text()) < 0;
  if (!a.is_sequence() || a.kind != b.kind)
    return failed(fmt::format("'<' not supported between instances of '{}' and '{}'", type_name(a), type_name(b)));
  KVASIR_TRY(const Render::Level level, render.enter());
  const size_t shared = std::min(a.items().size(), b.items().size());
  for (size_t i = 0; i < shared; ++i) {
    if (identical(a.items()[i], b.items()[i])) continue;
    KVASIR_TRY(const bool is_equal, equals(render, a.items()[i], b.items()[i]));
    if (!is_equal) return less(render, a.items()[i], b.items()[i]);
  }
  return a.items().size() < b.items().size();
}

Result<bool> contains(Render& render, const Value& container, const Value& value) {
  if (container.is_text()) {
    if (value.is_undefined() || !value.is_text())
      return failed("'in <string>' requires string as left operand, not " + type_name(value));
    return find(container.text(), value.text()) != TextView::npos;
  }
  const auto* view = container.kind == Kind::object ? dynamic_cast<DictView*>(container.object) : nullptr;
  const bool is_keys = view != nullptr && view->part == DictView::keys;
  if (container.kind == Kind::dict || is_keys) {
    KVASIR_TRY(const Value found, find_key(render, (is_keys ? view->dict : container).pairs(), value));
    return !found.is_missing();
  }
  auto items = iterate(render, container);
  if (!items) return failed("argument of type '" + type_name(container) + "' is not iterable");
  for (;;) {
    KVASIR_CHECK(render.step());
    KVASIR_TRY(const std::optional<Value> item, (*items)->next(render));
    if (!item) return false;
    if (identical(*item, value)) return true;
    KVASIR_TRY(const bool is_equal, equals(render, *item, value));
    if (is_equal) return true;
  }
}

Result<bool> compare(Render& render, Op op, const Value& a, const Value& b) {
  const auto turned = [](Result<bool> result) -> Result<bool> {
    if (result) *result = !*result;
    return result;
  };
  switch (op) {
    case Op::eq:
      return equals(render, a, b);
    case Op::ne:
      return turned(equals(render, a, b));
    case Op::in:
      return contains(render, b, a);
    case Op::not_in:
      return turned(contains(render, b, a));
    case Op::lt:
      return less(render, a, b);
    case Op::gt:
      return less(render, b, a);
    default:
      break;
  }
  if (is_nan(a) || is_nan(b)) return false;
  return turned(op == Op::le ? less(render, b, a) : less(render, a, b));
}

Result<void> set_key(Render& render, std::vector<std::pair<Value, Value>>* pairs, const Value& key,
                     const Value& value) {
  KVASIR_CHECK(check_key(key));
  for (auto& [other, old] : *pairs) {
    KVASIR_TRY(const bool is_equal, equals(render, other, key));
    if (!is_equal) continue;
    old = value;
    return {};
  }
  pairs->emplace_back(key, value);
  return {};
}

Result<Value> find_key(Render& render, const std::vector<std::pair<Value, Value>>& pairs, const Value& key) {
  KVASIR_CHECK(check_key(key));
  if (key.is_text()) {
    KVASIR_CHECK(render.step(pairs.size() / 16));
    for (const auto& [other, value] : pairs)
      if (other.is_text() && same(other.text(), key.text())) return value;
    return Value();
  }
  for (const auto& [other, value] : pairs) {
    KVASIR_TRY(const bool is_equal, equals(render, other, key));
    if (is_equal) return value;
  }
  return Value();
}

}  // namespace kvasir::jinja
