// The tree of a template, as the parser makes it and scope.cc completes it.
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

/// A variable: the how-manieth of the frame that many levels from the outermost.
struct Slot {
  int level = -1;
  int index = -1;
};

/// What a frame's variable holds when the frame is entered.
struct Load {
  enum How { nothing, argument, context, outer } how = nothing;
  Text name;   ///< of a context's
  Slot alias;  ///< of an outer frame's
};

/// The variables of a frame: of a loop's body, a macro, a block that has its own.
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

/// items: the operands, in order. dict: key, value, key, value. conditional: the test, then and else (else may be
/// null). slice: three that may be null. attribute, item, call, filter, test: what they are of; a filter's is null at
/// the head of a block. item: its index second.
struct Expr {
  ExprKind kind;
  int line = 0;
  int depth = 1;
  std::vector<ExprPtr> items;
  std::vector<Op> ops;  ///< between the items of compare and math
  Value constant;       ///< constant; the name as a text of attribute and namespace_attribute
  Text name;            ///< of name, filter, test; of the namespace
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

/// A branch of an if: its test, null for else.
struct Branch {
  ExprPtr test;
  Block body;
};

/// A macro's or a call block's own.
struct Signature {
  std::vector<ExprPtr> parameters;             ///< names
  std::vector<ExprPtr> defaults;               ///< of the last ones
  int caller = -1, kwargs = -1, varargs = -1;  ///< the slots of the special ones, where the body names them
};

/// targets: a for's second is its first again, in the slots of test_scope.
/// values: what is printed; the iterable and, perhaps null, the filter of a for; a set's value; a set block's filter,
/// perhaps null; a call block's call; a filter block's filter; the values of with.
struct Statement {
  StatementKind kind;
  int line = 0;
  std::vector<ExprPtr> values;
  std::vector<ExprPtr> targets;
  Block body, otherwise;
  std::vector<Branch> branches;
  Signature signature;
  Text name;  ///< a macro's
  Slot slot;  ///< a macro's
  bool is_recursive = false;
  int loop = -1;  ///< the slot of `loop`, where the body names it
  /// Of the body; of the filter of a for; of its else.
  Scope scope, test_scope, else_scope;
};

}  // namespace kvasir::jinja
