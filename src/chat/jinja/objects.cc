// The behaviour of iterators, loops, macros and the other objects.
#include "chat/jinja/objects.h"

#include <algorithm>

#include "chat/jinja/attributes.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/repr.h"

namespace kvasir::jinja {
namespace {

struct SequenceIterator : Iterator {
  explicit SequenceIterator(const ListCell* l) : list(l) {}
  Result<std::optional<Value>> next(Render&) override {
    if (at >= list->items.size()) return std::nullopt;
    return list->items[at++];
  }
  const ListCell* list;
  size_t at = 0;
};

}  // namespace

// ---- ranges and views

std::optional<int64_t> Range::length() const {
  if (step > 0) return start < stop ? (stop - start + step - 1) / step : 0;
  return start > stop ? (start - stop - step - 1) / -step : 0;
}

std::string Range::shown() const {
  return step == 1 ? fmt::format("range({}, {})", start, stop) : fmt::format("range({}, {}, {})", start, stop, step);
}

Iterator* Range::iterate(Render& render) {
  return render.heap().make<Generator>([this, at = int64_t{0}](Render&) mutable -> Result<std::optional<Value>> {
    if (at >= *length()) return std::nullopt;
    return Value::of_int(this->at(at++));
  });
}

const char* DictView::type_name() const {
  return part == keys ? "dict_keys" : part == values ? "dict_values" : "dict_items";
}

Iterator* DictView::iterate(Render& render) {
  return render.heap().make<Generator>([this, at = size_t{0}](Render& r) mutable -> Result<std::optional<Value>> {
    if (at >= dict.pairs().size()) return std::nullopt;
    const auto& [key, value] = dict.pairs()[at++];
    return part == keys ? key : part == values ? value : r.heap().tuple({key, value});
  });
}

Result<std::optional<Value>> Namespace::attribute(Render&, TextView name) {
  for (const auto& [key, value] : values)
    if (key.is_text() && same(key.text(), name)) return value;
  return std::nullopt;
}

// ---- macros

std::string Macro::shown() const {
  return statement->name.empty() ? "<Macro anonymous>" : "<Macro '" + to_utf8(statement->name) + "'>";
}

Result<std::optional<Value>> Macro::attribute(Render& render, TextView name) {
  const Signature& signature = statement->signature;
  if (same(name, "name")) return statement->name.empty() ? Value::none() : render.heap().text(statement->name);
  if (same(name, "catch_kwargs")) return Value::of_bool(signature.kwargs >= 0);
  if (same(name, "catch_varargs")) return Value::of_bool(signature.varargs >= 0);
  if (same(name, "caller")) return Value::of_bool(signature.caller >= 0);
  if (!same(name, "arguments")) return std::nullopt;
  std::vector<Value> names;
  for (const ExprPtr& parameter : signature.parameters) names.push_back(render.heap().text(parameter->name));
  return render.heap().tuple(std::move(names));
}

Result<Value> Macro::call(Render& render, Arguments arguments) {
  return render.call_macro(*statement, closure, std::move(arguments));
}

// ---- loops

Result<std::optional<Value>> Loop::next(Render& render) {
  std::optional<Value> item;
  if (!after_.is_missing()) {
    item = std::exchange(after_, Value());
  } else {
    KVASIR_TRY(item, items_->next(render));
  }
  if (!item) return item;
  ++index0_;
  before_ = std::exchange(current_, *item);
  return item;
}

Result<Value> Loop::peek(Render& render) {
  if (!after_.is_missing()) return after_;
  KVASIR_TRY(const std::optional<Value> item, items_->next(render));
  if (item) after_ = *item;
  return after_;
}

Result<int64_t> Loop::count(Render& render) {
  if (length_) return *length_;
  KVASIR_TRY(std::vector<Value> rest, collect(render, Value::of_object(items_)));
  length_ = static_cast<int64_t>(rest.size()) + index0_ + 1 + (after_.is_missing() ? 0 : 1);
  KVASIR_TRY(items_, jinja::iterate(render, render.heap().list(std::move(rest))));
  return *length_;
}

Result<bool> Loop::changed(Render& render, const std::vector<Value>& values) {
  bool is_same = last_changed_ && last_changed_->size() == values.size();
  for (size_t i = 0; is_same && i < values.size(); ++i) {
    KVASIR_TRY(is_same, equals(render, (*last_changed_)[i], values[i]));
  }
  last_changed_ = values;
  return !is_same;
}

Result<std::optional<Value>> Loop::attribute(Render& render, TextView name) {
  if (same(name, "index0")) return Value::of_int(index0_);
  if (same(name, "index")) return Value::of_int(index0_ + 1);
  if (same(name, "depth0")) return Value::of_int(depth_);
  if (same(name, "depth")) return Value::of_int(depth_ + 1);
  if (same(name, "first")) return Value::of_bool(index0_ == 0);
  if (same(name, "last")) {
    KVASIR_TRY(const Value after, peek(render));
    return Value::of_bool(after.is_missing());
  }
  if (same(name, "nextitem")) {
    KVASIR_TRY(const Value after, peek(render));
    return after.is_missing() ? render.heap().undefined("there is no next item") : after;
  }
  if (same(name, "previtem"))
    return before_.is_missing() ? render.heap().undefined("there is no previous item") : before_;
  if (same(name, "length") || same(name, "revindex") || same(name, "revindex0")) {
    KVASIR_TRY(const int64_t all, count(render));
    const int64_t gone = same(name, "length") ? 0 : same(name, "revindex") ? index0_ : index0_ + 1;
    return Value::of_int(all - gone);
  }
  if (same(name, "cycle"))
    return function(render, [this](Render&, Arguments arguments) -> Result<Value> {
      if (arguments.at.empty() || !arguments.named.empty()) return failed("no items for cycling given");
      return arguments.at[static_cast<size_t>(index0_) % arguments.at.size()];
    });
  if (same(name, "changed"))
    return function(render, [this](Render& r, Arguments arguments) -> Result<Value> {
      if (!arguments.named.empty()) return failed("changed() takes no keyword arguments");
      KVASIR_TRY(const bool is_other, changed(r, arguments.at));
      return Value::of_bool(is_other);
    });
  return std::nullopt;
}

Result<Value> Loop::call(Render& render, Arguments arguments) {
  KVASIR_TRY(const auto given, bind("loop", {"iterable"}, 1, std::move(arguments)));
  if (!statement_->is_recursive) return failed("The loop must have the 'recursive' marker to be called recursively.");
  return render.loop_again(*statement_, outer_, given[0], depth_ + 1);
}

// ---- cycler and joiner

Result<std::optional<Value>> Cycler::attribute(Render& render, TextView name) {
  if (same(name, "current")) return items[at];
  if (same(name, "pos")) return Value::of_int(static_cast<int64_t>(at));
  if (same(name, "items")) return render.heap().tuple(items);
  if (same(name, "next"))
    return function(render, [this](Render&, Arguments arguments) -> Result<Value> {
      KVASIR_CHECK(bind("next", {}, 0, std::move(arguments)));
      const Value now = items[at];
      at = (at + 1) % items.size();
      return now;
    });
  if (same(name, "reset"))
    return function(render, [this](Render&, Arguments arguments) -> Result<Value> {
      KVASIR_CHECK(bind("reset", {}, 0, std::move(arguments)));
      at = 0;
      return Value::none();
    });
  return std::nullopt;
}

Result<std::optional<Value>> Joiner::attribute(Render&, TextView name) {
  if (same(name, "sep")) return separator;
  if (same(name, "used")) return Value::of_bool(is_used);
  return std::nullopt;
}

Result<Value> Joiner::call(Render& render, Arguments arguments) {
  KVASIR_CHECK(bind("joiner", {}, 0, std::move(arguments)));
  if (std::exchange(is_used, true)) return separator;
  return render.heap().text(Text());
}

// ---- items

Result<Iterator*> iterate(Render& render, const Value& value) {
  switch (value.kind) {
    case Kind::list:
    case Kind::tuple:
      return render.heap().make<SequenceIterator>(value.list_cell);
    case Kind::undefined:
      return render.heap().make<Generator>([](Render&) -> Result<std::optional<Value>> { return std::nullopt; });
    case Kind::text:
      return render.heap().make<Generator>([value, at = size_t{0}](Render& r) mutable -> Result<std::optional<Value>> {
        if (at >= value.text().size()) return std::nullopt;
        return r.heap().text(Text(1, value.text()[at++]));
      });
    case Kind::dict:
      return render.heap().make<Generator>([value, at = size_t{0}](Render&) mutable -> Result<std::optional<Value>> {
        if (at >= value.pairs().size()) return std::nullopt;
        return value.pairs()[at++].first;
      });
    case Kind::object:
      if (Iterator* items = value.object->iterate(render)) return items;
      break;
    default:
      break;
  }
  return failed("'" + type_name(value) + "' object is not iterable");
}

Result<std::vector<Value>> collect(Render& render, const Value& value) {
  if (value.is_sequence()) {
    KVASIR_CHECK(render.room(value.items().size(), sizeof(Value)));
    return value.items();
  }
  KVASIR_TRY(Iterator* const items, iterate(render, value));
  std::vector<Value> all;
  for (;;) {
    KVASIR_CHECK(render.step());
    KVASIR_TRY(const std::optional<Value> item, items->next(render));
    if (!item) return all;
    all.push_back(*item);
  }
}

std::optional<int64_t> length_of(const Value& value) {
  switch (value.kind) {
    case Kind::undefined:
      return 0;
    case Kind::text:
      return static_cast<int64_t>(value.text().size());
    case Kind::list:
    case Kind::tuple:
      return static_cast<int64_t>(value.items().size());
    case Kind::dict:
      return static_cast<int64_t>(value.pairs().size());
    case Kind::object:
      return value.object->length();
    default:
      return {};
  }
}

Result<Given> bind(const char* function, std::initializer_list<const char*> names, size_t required,
                   Arguments arguments) {
  if (arguments.at.size() > names.size())
    return failed(
        fmt::format("{}() takes at most {} arguments ({} given)", function, names.size(), arguments.at.size()));
  std::vector<Value> values = std::move(arguments.at);
  values.resize(names.size());
  for (const auto& [name, value] : arguments.named) {
    const auto* const at =
        std::find_if(names.begin(), names.end(), [&wanted = name](const char* n) { return same(wanted, n); });
    if (at == names.end())
      return failed(fmt::format("{}() got an unexpected keyword argument '{}'", function, to_utf8(name)));
    Value& slot = values[static_cast<size_t>(at - names.begin())];
    if (!slot.is_missing()) return failed(fmt::format("{}() got multiple values for argument '{}'", function, *at));
    slot = value;
  }
  for (size_t i = 0; i < required; ++i)
    if (values[i].is_missing())
      return failed(fmt::format("{}() missing the argument '{}'", function, names.begin()[i]));
  return values;
}

}  // namespace kvasir::jinja
