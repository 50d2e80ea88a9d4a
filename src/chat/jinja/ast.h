// The syntax tree of a template. The parser makes it; scope.cc fills in the slots and scopes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chat/jinja/value.h"

namespace kvasir::jinja {

struct Expr;
struct Statement;
struct FilterEntry;
struct TestEntry;
using ExprPtr = std::unique_ptr<Expr>;
using Block = std::vector<Statement>;

/// The place of a variable: number `index` in the frame at `level`, counted from the outermost frame.
struct Slot {
  int level = -1;
  int index = -1;
};

/// The initial value of a variable when its frame is entered.
struct Load {
  enum How { nothing, argument, context, outer } how = nothing;
  Text name;   ///< for context: the name there
  Slot alias;  ///< for outer: the variable of an outer frame
};

/// The variables of a frame. Loop bodies, macros and blocks with their own variables have frames.
struct Scope {
  int level = 0;
  std::vector<Text> names;  ///< by slot
  std::vector<Load> loads;
};

struct CallArguments {
  std::vector<ExprPtr> at;
  std::vector<std::pair<Text, ExprPtr>> named;
  ExprPtr more_at, more_named;  ///< *args, **kwargs
};

enum class ExprKind {
  constant,
  name,
  tuple,
  list,
  dict,
  conditional,
  any_of,
  all_of,
  negation,
  compare,
  math,
  concat,
  minus,
  plus,
  attribute,
  item,
  slice,
  call,
  filter,
  test,
  namespace_attribute
};

enum class Op { add, sub, mul, div, floordiv, mod, pow, eq, ne, lt, le, gt, ge, in, not_in };

/// `items` holds the operands in order. dict: key, value, key, value. conditional: test, then, else (may be null).
/// slice: begin, end, step (each may be null). attribute, call, filter, test: the value they apply to, which is null
/// for the first filter of a block. item: the value, then the index.
struct Expr {
  ExprKind kind;
  int line = 0;
  int depth = 1;
  std::vector<ExprPtr> items;
  std::vector<Op> ops;  ///< compare, math: the operators between the items
  Value constant;       ///< constant: its value; attribute, namespace_attribute: the attribute's name
  Text name;            ///< name, filter, test: the name; namespace_attribute: the namespace's name
  bool is_target = false;
  bool is_parameter = false;
  Slot slot;
  CallArguments arguments;
  const FilterEntry* filter = nullptr;
  const TestEntry* test = nullptr;
};

enum class StatementKind {
  output,
  for_loop,
  if_chain,
  set,
  set_block,
  macro,
  call_block,
  filter_block,
  with,
  break_loop,
  continue_loop
};

/// A branch of an if. The test is null for else.
struct Branch {
  ExprPtr test;
  Block body;
};

/// The parameters of a macro or a call block.
struct Signature {
  std::vector<ExprPtr> parameters;             ///< names
  std::vector<ExprPtr> defaults;               ///< default values of the last parameters
  int caller = -1, kwargs = -1, varargs = -1;  ///< slots of the special variables; -1 if the body does not use them
};

/// `targets`: what is assigned to. A for with a filter has two: the same target in the slots of scope and of
/// test_scope. `values`, by kind: the printed values; the iterable of a for and its filter (may be null); the value of
/// a set; the filter of a set block (may be null); the call of a call block; the filter of a filter block; the values
/// of a with.
struct Statement {
  StatementKind kind;
  int line = 0;
  std::vector<ExprPtr> values;
  std::vector<ExprPtr> targets;
  Block body, otherwise;
  std::vector<Branch> branches;
  Signature signature;
  Text name;  ///< of a macro
  Slot slot;  ///< of a macro
  bool is_recursive = false;
  int loop = -1;  ///< slot of `loop`; -1 if the loop does not use it
  /// Scopes of the body, and of a for's filter and else.
  Scope scope, test_scope, else_scope;
};

}  // namespace kvasir::jinja
