// A dot looks for attributes before items, brackets for items before attributes. Access that the sandbox forbids yields
// undefined.
#include "chat/jinja/attributes.h"

#include <algorithm>

#include "chat/jinja/methods.h"
#include "chat/jinja/objects.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/repr.h"

namespace kvasir::jinja {
namespace {

// Methods that change a list or a dict, as listed by Jinja's sandbox.
constexpr const char* kListChanges[] = {"append", "reverse", "insert", "sort", "extend", "remove"};
constexpr const char* kDictChanges[] = {"clear", "pop", "popitem", "setdefault", "update"};

bool changes(const Value& of, TextView name) {
  const auto is_name = [&](const char* other) { return same(name, other); };
  if (of.kind == Kind::list) return std::any_of(std::begin(kListChanges), std::end(kListChanges), is_name);
  if (of.kind == Kind::dict) return std::any_of(std::begin(kDictChanges), std::end(kDictChanges), is_name);
  return false;
}

Value forbidden(Render& render, const Value& of, TextView name) {
  return render.heap().undefined("access to attribute '" + to_utf8(name) + "' of '" + type_name(of) +
                                 "' object is unsafe.");
}

std::string described(const Value& of) {
  if (of.is_none()) return "None";
  return type_name(of) + " object";
}

// Returns the item; missing if the key is absent or the value has no items.
Result<Value> own_item(Render& render, const Value& of, const Value& index) {
  if (of.kind == Kind::dict) {
    auto found = find_key(render, of.pairs(), index);
    return found ? std::move(found) : Result<Value>(Value());  // an unhashable key is no key
  }
  if (!index.is_int()) return Value();
  const std::optional<int64_t> length = length_of(of);
  const auto* range = of.kind == Kind::object ? dynamic_cast<Range*>(of.object) : nullptr;
  if (!length || !(of.is_text() || of.is_sequence() || range != nullptr)) return Value();
  const int64_t at = index.to_int() + (index.to_int() < 0 ? *length : 0);
  if (at < 0 || at >= *length) return Value();
  if (range != nullptr) return Value::of_int(range->at(at));
  if (of.is_sequence()) return of.items()[static_cast<size_t>(at)];
  return render.heap().text(Text(1, of.text()[static_cast<size_t>(at)]), of.is_safe);
}

}  // namespace

Result<Value> own_attribute(Render& render, const Value& of, TextView name) {
  if (of.kind == Kind::object) {
    KVASIR_TRY(const std::optional<Value> found, of.object->attribute(render, name));
    if (found) return *found;
  }
  if (of.kind == Kind::tuple && of.is_group) {
    if (same(name, "grouper")) return of.items()[0];
    if (same(name, "list")) return of.items()[1];
  }
  return find_method(render, of, name);
}

Result<Value> get_attribute(Render& render, const Value& of, const Value& name) {
  if (of.is_undefined()) return undefined_error(of);
  const TextView text = name.text();
  if (changes(of, text)) return forbidden(render, of, text);
  if (text.starts_with(U"__")) {  // Python's internal attributes are forbidden, whether they exist or not
    KVASIR_TRY(const Value item, own_item(render, of, name));
    return item.is_missing() ? forbidden(render, of, text) : item;
  }
  KVASIR_TRY(const Value own, own_attribute(render, of, text));
  if (!own.is_missing()) return own;
  KVASIR_TRY(const Value item, own_item(render, of, name));
  if (!item.is_missing()) return item;
  return render.heap().undefined(fmt::format("'{}' has no attribute '{}'", described(of), to_utf8(text)));
}

Result<Value> get_item(Render& render, const Value& of, const Value& index) {
  if (of.is_undefined()) return undefined_error(of);
  KVASIR_TRY(const Value item, own_item(render, of, index));
  if (!item.is_missing()) return item;
  if (!index.is_text()) {
    KVASIR_TRY(const Text shown, repr_of(render, index));
    return render.heap().undefined(fmt::format("{} has no element {}", described(of), to_utf8(shown)));
  }
  const TextView text = index.text();
  if (changes(of, text) || text.starts_with(U"__")) return forbidden(render, of, text);
  KVASIR_TRY(const Value own, own_attribute(render, of, text));
  if (!own.is_missing()) return own;
  return render.heap().undefined(fmt::format("'{}' has no attribute '{}'", described(of), to_utf8(text)));
}

namespace {

struct Bounds {
  int64_t begin, end, step;
};

// Python's slice.indices.
Result<Bounds> bounds_of(int64_t length, const Value& begin, const Value& end, const Value& step) {
  for (const Value* bound : {&begin, &end, &step}) {
    if (!bound->is_none() && !bound->is_int())
      return failed("slice indices must be integers or None or have an __index__ method");
  }
  Bounds b{0, 0, step.is_none() ? 1 : step.to_int()};
  if (b.step == 0) return failed("slice step cannot be zero");
  const int64_t lowest = b.step < 0 ? -1 : 0, highest = b.step < 0 ? length - 1 : length;
  const auto clip = [&](const Value& bound, int64_t otherwise) {
    if (bound.is_none()) return otherwise;
    const int64_t value = bound.to_int();
    return value < 0 ? std::max(value + length, lowest) : std::min(value, highest);
  };
  b.begin = clip(begin, b.step < 0 ? highest : lowest);
  b.end = clip(end, b.step < 0 ? lowest : highest);
  b.step = std::clamp(b.step, -length - 1, length + 1);
  return b;
}

}  // namespace

bool is_sliceable(const Value& of) {
  return of.is_text() || of.is_sequence() || (of.kind == Kind::object && dynamic_cast<Range*>(of.object) != nullptr);
}

Result<Value> slice(Render& render, const Value& of, const Value& begin, const Value& end, const Value& step) {
  if (of.is_undefined()) return undefined_error(of);
  if (!is_sliceable(of)) return failed("'" + type_name(of) + "' object is not subscriptable");
  const auto* range = of.kind == Kind::object ? dynamic_cast<Range*>(of.object) : nullptr;
  KVASIR_TRY(const Bounds b, bounds_of(*length_of(of), begin, end, step));
  if (range != nullptr)
    return Value::of_object(render.heap().make<Range>(range->at(b.begin), range->at(b.end), range->step * b.step));
  KVASIR_CHECK(render.room(static_cast<size_t>(*length_of(of)), of.is_text() ? sizeof(char32_t) : sizeof(Value)));
  const auto each = [&](const auto& take) {
    for (int64_t i = b.begin; b.step > 0 ? i < b.end : i > b.end; i += b.step) take(static_cast<size_t>(i));
  };
  if (of.is_text()) {
    Text text;
    each([&](size_t i) { text += of.text()[i]; });
    return render.heap().text(std::move(text), of.is_safe);
  }
  std::vector<Value> items;
  each([&](size_t i) { items.push_back(of.items()[i]); });
  return of.kind == Kind::list ? render.heap().list(std::move(items)) : render.heap().tuple(std::move(items));
}

}  // namespace kvasir::jinja
