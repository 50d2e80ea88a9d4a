// The values of a template: Python's, as far as templates see them. A value is small and copied; what it points to
// lives in the Heap of one rendering, or of the template for its constants. What can be done with values is in
// operators.h, attributes.h and filters.h.
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
struct Value;

/// What a Heap owns.
struct Cell {
  Cell() = default;
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;
  virtual ~Cell() = default;
};

struct TextCell : Cell {
  explicit TextCell(Text t) : text(std::move(t)) {}
  const Text text;
};

/// Why something is undefined, in Jinja's words.
struct UndefinedCell : Cell {
  explicit UndefinedCell(std::string text) : why(std::move(text)) {}
  const std::string why;
};

/// A list's items change by pop() and clear() alone, which Jinja's sandbox allows.
struct ListCell : Cell {
  mutable std::vector<Value> items;
};

/// Pairs in the order in which they came.
struct DictCell : Cell {
  std::vector<std::pair<Value, Value>> items;
};

/// Whatever else a name can stand for: functions, macros, `loop`, namespaces, generators.
struct Object : Cell {
  virtual const char* type_name() const = 0;
  virtual std::string shown() const { return std::string("<") + type_name() + ">"; }
  /// Null where it has none of that name.
  virtual Result<std::optional<Value>> attribute(Render& render, TextView name);
  virtual bool can_be_called() const { return false; }
  virtual Result<Value> call(Render& render, struct Arguments arguments);
  /// Its items one after the other; null where it has none.
  virtual struct Iterator* iterate(Render& render);
  virtual std::optional<int64_t> length() const { return {}; }
};

enum class Kind : uint8_t { missing, undefined, none, boolean, integer, real, text, list, tuple, dict, object };

struct Value {
  Kind kind = Kind::missing;  ///< missing: no value at all, never seen by a template
  bool is_safe = false;       ///< of a text: Python's Markup
  bool is_group = false;      ///< of a tuple: groupby's, whose two items go by `grouper` and `list` too
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
  /// Python's bool is an int.
  bool is_int() const { return kind == Kind::integer || kind == Kind::boolean; }
  bool is_number() const { return is_int() || kind == Kind::real; }
  bool is_sequence() const { return kind == Kind::list || kind == Kind::tuple; }

  /// Requires for each: the kind.
  int64_t to_int() const { return kind == Kind::boolean ? static_cast<int64_t>(boolean) : integer; }
  double to_real() const { return kind == Kind::real ? real : static_cast<double>(to_int()); }
  TextView text() const { return text_cell->text; }
  const std::vector<Value>& items() const { return list_cell->items; }
  const std::vector<std::pair<Value, Value>>& pairs() const { return dict_cell->items; }
};

/// What a call is given.
struct Arguments {
  std::vector<Value> at;
  std::vector<std::pair<Text, Value>> named;
};

/// Items one after the other; used up once. Python's generators and iterators.
struct Iterator : Object {
  const char* type_name() const override { return "generator"; }
  virtual Result<std::optional<Value>> next(Render& render) = 0;
  Iterator* iterate(Render&) override { return this; }
};

/// Owns what values point to, and counts the bytes.
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

  /// False once values of so many bytes more would be too many.
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

/// "str", "int", "NoneType": as Python's errors name them.
std::string type_name(const Value& value);

}  // namespace kvasir::jinja
