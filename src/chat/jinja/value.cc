// Creates values in a Heap.
#include "chat/jinja/value.h"

namespace kvasir::jinja {

Result<std::optional<Value>> Object::attribute(Render&, TextView) { return std::nullopt; }

Result<Value> Object::call(Render&, Arguments) {
  return fail(Error::bad_argument, std::string("'") + type_name() + "' object is not callable");
}

Iterator* Object::iterate(Render&) { return nullptr; }

Value Heap::text(Text value, bool is_safe) {
  const size_t bytes = value.size() * sizeof(char32_t) + sizeof(TextCell);
  auto cell = std::make_unique<TextCell>(std::move(value));
  Value v = Value::of(Kind::text);
  v.text_cell = cell.get();
  v.is_safe = is_safe;
  keep(std::move(cell), bytes);
  return v;
}

Value Heap::sequence(Kind kind, std::vector<Value> items) {
  auto cell = std::make_unique<ListCell>();
  cell->items = std::move(items);
  Value v = Value::of(kind);
  v.list_cell = cell.get();
  const size_t bytes = cell->items.size() * sizeof(Value) + sizeof(ListCell);
  keep(std::move(cell), bytes);
  return v;
}

Value Heap::dict(std::vector<std::pair<Value, Value>> items) {
  auto cell = std::make_unique<DictCell>();
  cell->items = std::move(items);
  Value v = Value::of(Kind::dict);
  v.dict_cell = cell.get();
  const size_t bytes = cell->items.size() * 2 * sizeof(Value) + sizeof(DictCell);
  keep(std::move(cell), bytes);
  return v;
}

Value Heap::undefined(std::string why) {
  Value v = Value::of(Kind::undefined);
  v.undefined_cell = make<UndefinedCell>(std::move(why));
  return v;
}

std::string type_name(const Value& value) {
  switch (value.kind) {
    case Kind::missing:
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::text:
      return value.is_safe ? "Markup" : "str";
    case Kind::list:
      return "list";
    case Kind::tuple:
      return "tuple";
    case Kind::dict:
      return "dict";
    case Kind::object:
      return value.object->type_name();
  }
  return "object";
}

}  // namespace kvasir::jinja
