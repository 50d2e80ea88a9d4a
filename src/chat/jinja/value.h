// The values of a template, which behave like Python's. A value is small and copied; what it points to lives in the
// Heap of one rendering, or for constants in the template's Heap. operators.h, attributes.h and filters.h define the
// operations on values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kvasir/result.h>

#include "chat/jinja/text.h"

namespace kvasir::jinja {

class Render;
struct TextCell;
struct UndefinedCell;
struct ListCell;
struct DictCell;
struct Object;
struct Arguments;
struct Iterator;

/// Base of all objects that a Heap owns.
struct Cell {
  Cell() = default;
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;
  virtual ~Cell() = default;
};

enum class Kind : uint8_t { missing, undefined, none, boolean, integer, real, text, list, tuple, dict, object };

struct Value {
  Kind kind = Kind::missing;  ///< missing: no value; templates never see it
  bool is_safe = false;       ///< for text: it is a Markup of Python
  bool is_group = false;      ///< for a tuple: made by groupby, so its two items are also named `grouper` and `list`
  union {
    bool boolean;
    int64_t integer;
    double real;
    const TextCell* text_cell;
    const ListCell* list_cell;
    const DictCell* dict_cell;
    const UndefinedCell* undefined_cell;
    Object* object;
  };

  Value() : integer(0) {}
  static Value none() { return of(Kind::none); }
  static Value of_bool(bool value) {
    Value v = of(Kind::boolean);
    v.boolean = value;
    return v;
  }
  static Value of_int(int64_t value) {
    Value v = of(Kind::integer);
    v.integer = value;
    return v;
  }
  static Value of_real(double value) {
    Value v = of(Kind::real);
    v.real = value;
    return v;
  }
  static Value of_object(Object* value) {
    Value v = of(Kind::object);
    v.object = value;
    return v;
  }
  static Value of(Kind kind) {
    Value v;
    v.kind = kind;
    return v;
  }

  bool is(Kind k) const { return kind == k; }
  bool is_missing() const { return kind == Kind::missing; }
  bool is_undefined() const { return kind == Kind::undefined; }
  bool is_none() const { return kind == Kind::none; }
  bool is_text() const { return kind == Kind::text; }
  /// As in Python, a bool is an int.
  bool is_int() const { return kind == Kind::integer || kind == Kind::boolean; }
  bool is_number() const { return is_int() || kind == Kind::real; }
  bool is_sequence() const { return kind == Kind::list || kind == Kind::tuple; }

  /// Each requires the matching kind.
  int64_t to_int() const { return kind == Kind::boolean ? static_cast<int64_t>(boolean) : integer; }
  double to_real() const { return kind == Kind::real ? real : static_cast<double>(to_int()); }
  TextView text() const;
  const std::vector<Value>& items() const;
  const std::vector<std::pair<Value, Value>>& pairs() const;
};

struct TextCell : Cell {
  explicit TextCell(Text t) : text(std::move(t)) {}
  const Text text;
};

/// An undefined value, with the reason in Jinja's words.
struct UndefinedCell : Cell {
  explicit UndefinedCell(std::string text) : why(std::move(text)) {}
  const std::string why;
};

/// The items of a list or tuple. Only the list methods pop() and clear() change them, as Jinja's sandbox allows.
struct ListCell : Cell {
  mutable std::vector<Value> items;
};

/// The pairs of a dict, in insertion order.
struct DictCell : Cell {
  std::vector<std::pair<Value, Value>> items;
};

/// Base of all other values: functions, macros, `loop`, namespaces, generators.
struct Object : Cell {
  virtual const char* type_name() const = 0;
  virtual std::string shown() const { return std::string("<") + type_name() + ">"; }
  /// Returns the attribute of this name; null if there is none.
  virtual Result<std::optional<Value>> attribute(Render& render, TextView name);
  virtual bool can_be_called() const { return false; }
  virtual Result<Value> call(Render& render, Arguments arguments);
  /// Returns an iterator over the items; null if the object is not iterable.
  virtual Iterator* iterate(Render& render);
  virtual std::optional<int64_t> length() const { return {}; }
};

inline TextView Value::text() const { return text_cell->text; }
inline const std::vector<Value>& Value::items() const { return list_cell->items; }
inline const std::vector<std::pair<Value, Value>>& Value::pairs() const { return dict_cell->items; }

/// The positional and named arguments of a call.
struct Arguments {
  std::vector<Value> at;
  std::vector<std::pair<Text, Value>> named;
};

/// An iterator or generator of Python: next() returns each item once, then null.
struct Iterator : Object {
  const char* type_name() const override { return "generator"; }
  virtual Result<std::optional<Value>> next(Render& render) = 0;
  Iterator* iterate(Render&) override { return this; }
};

/// Owns what values point to, and counts its bytes.
class Heap {
 public:
  static constexpr size_t kMostBytes = size_t{64} << 20;

  Value text(Text value, bool is_safe = false);
  Value text(std::string_view ascii) { return text(to_text(ascii)); }
  Value list(std::vector<Value> items) { return sequence(Kind::list, std::move(items)); }
  Value tuple(std::vector<Value> items) { return sequence(Kind::tuple, std::move(items)); }
  Value dict(std::vector<std::pair<Value, Value>> items);
  Value undefined(std::string why);
  template <class T, class... Args>
  T* make(Args&&... args) {
    auto cell = std::make_unique<T>(std::forward<Args>(args)...);
    T* at = cell.get();
    keep(std::move(cell), sizeof(T));
    return at;
  }

  /// Whether `bytes` more bytes of values stay within kMostBytes.
  bool has_room(size_t bytes = 0) const { return bytes <= kMostBytes && bytes_ <= kMostBytes - bytes; }

 private:
  Value sequence(Kind kind, std::vector<Value> items);
  void keep(std::unique_ptr<Cell> cell, size_t bytes) {
    cells_.push_back(std::move(cell));
    bytes_ += bytes;
  }

  std::vector<std::unique_ptr<Cell>> cells_;
  size_t bytes_ = 0;
};

/// The type's name in Python's errors: "str", "int", "NoneType".
std::string type_name(const Value& value);

}  // namespace kvasir::jinja
