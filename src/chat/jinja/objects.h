// The objects of a template: iterators, `loop`, macros, namespaces, functions; and iteration over any value.
#pragma once

#include <functional>

#include "chat/jinja/render.h"

namespace kvasir::jinja {

/// An iterator that calls a function for each item.
struct Generator : Iterator {
  using Next = std::function<Result<std::optional<Value>>(Render&)>;
  explicit Generator(Next next) : next_(std::move(next)) {}
  Result<std::optional<Value>> next(Render& render) override { return next_(render); }

 private:
  Next next_;
};

/// Python's range; its numbers are computed, not stored.
struct Range : Object {
  Range(int64_t begin, int64_t end, int64_t by) : start(begin), stop(end), step(by) {}
  const char* type_name() const override { return "range"; }
  std::string shown() const override;
  Iterator* iterate(Render& render) override;
  std::optional<int64_t> length() const override;
  int64_t at(int64_t index) const { return start + index * step; }
  const int64_t start, stop, step;
};

/// keys(), values() and items() of a dict.
struct DictView : Object {
  enum Part { keys, values, items };
  DictView(Value d, Part p) : dict(d), part(p) {}
  const char* type_name() const override;
  Iterator* iterate(Render& render) override;
  std::optional<int64_t> length() const override { return static_cast<int64_t>(dict.pairs().size()); }
  const Value dict;
  const Part part;
};

/// namespace(): an object whose attributes can be set.
struct Namespace : Object {
  const char* type_name() const override { return "Namespace"; }
  Result<std::optional<Value>> attribute(Render& render, TextView name) override;
  std::vector<std::pair<Value, Value>> values;
};

struct Macro : Object {
  Macro(const Statement* s, Frame* f) : statement(s), closure(f) {}
  const char* type_name() const override { return "Macro"; }
  std::string shown() const override;
  Result<std::optional<Value>> attribute(Render& render, TextView name) override;
  bool can_be_called() const override { return true; }
  Result<Value> call(Render& render, Arguments arguments) override;
  const Statement* statement;
  Frame* closure;
};

/// `loop` inside a for.
struct Loop : Object {
  Loop(Iterator* items, std::optional<int64_t> length, int64_t depth, const Statement* s, Frame* f)
      : items_(items), length_(length), depth_(depth), statement_(s), outer_(f) {}
  const char* type_name() const override { return "LoopContext"; }
  Result<std::optional<Value>> attribute(Render& render, TextView name) override;
  bool can_be_called() const override { return true; }
  Result<Value> call(Render& render, Arguments arguments) override;
  /// Advances to the next item; null at the end.
  Result<std::optional<Value>> next(Render& render);
  /// Returns the number of items. Reads a generator to its end.
  Result<int64_t> count(Render& render);
  Result<bool> changed(Render& render, const std::vector<Value>& values);

  int64_t index0() const { return index0_; }

 private:
  Result<Value> peek(Render& render);

  Iterator* items_;
  std::optional<int64_t> length_;
  int64_t depth_, index0_ = -1;
  const Statement* statement_;
  Frame* outer_;
  Value before_, current_, after_;
  std::optional<std::vector<Value>> last_changed_;
};

struct Cycler : Object {
  const char* type_name() const override { return "Cycler"; }
  Result<std::optional<Value>> attribute(Render& render, TextView name) override;
  std::vector<Value> items;
  size_t at = 0;
};

struct Joiner : Object {
  const char* type_name() const override { return "Joiner"; }
  Result<std::optional<Value>> attribute(Render& render, TextView name) override;
  bool can_be_called() const override { return true; }
  Result<Value> call(Render& render, Arguments arguments) override;
  Value separator;
  bool is_used = false;
};

/// A function that a template can call.
struct Function : Object {
  using Body = std::function<Result<Value>(Render&, Arguments)>;
  explicit Function(Body b) : body(std::move(b)) {}
  const char* type_name() const override { return "function"; }
  bool can_be_called() const override { return true; }
  Result<Value> call(Render& render, Arguments arguments) override { return body(render, std::move(arguments)); }
  const Body body;
};

inline Value generator(Render& render, Generator::Next next) {
  return Value::of_object(render.heap().make<Generator>(std::move(next)));
}

inline Value function(Render& render, Function::Body body) {
  return Value::of_object(render.heap().make<Function>(std::move(body)));
}

/// Returns an iterator over a value. Errors: the value is not iterable.
Result<Iterator*> iterate(Render& render, const Value& value);
Result<std::vector<Value>> collect(Render& render, const Value& value);
/// Returns len(value); null if the value has no length.
std::optional<int64_t> length_of(const Value& value);

/// The arguments in the order of the parameters; missing for those not given.
using Given = std::vector<Value>;

/// Assigns arguments to the parameters `names`. Errors, which name the function: too many arguments, an unknown name, a
/// parameter given twice, or one of the first `required` parameters not given.
Result<Given> bind(const char* function, std::initializer_list<const char*> names, size_t required,
                   Arguments arguments);

}  // namespace kvasir::jinja
