// Evaluates expressions.
#include "chat/jinja/attributes.h"
#include "chat/jinja/filters.h"
#include "chat/jinja/objects.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/render.h"
#include "chat/jinja/repr.h"

namespace kvasir::jinja {

namespace {

bool is_negative(const Value& value) {
  return (value.kind == Kind::integer && value.integer < 0) || (value.kind == Kind::real && value.real < 0);
}

// Whether Jinja's compiler replaces a constant expression by this value: has_safe_repr in jinja2/compiler.py.
bool has_safe_repr(const Value& value) {
  if (value.is_sequence()) return std::all_of(value.items().begin(), value.items().end(), has_safe_repr);
  if (value.kind == Kind::dict)
    return std::all_of(value.pairs().begin(), value.pairs().end(),
                       [](const auto& pair) { return has_safe_repr(pair.first) && has_safe_repr(pair.second); });
  if (value.kind == Kind::object) return dynamic_cast<const Range*>(value.object) != nullptr;
  return !value.is_undefined();
}

}  // namespace

Result<void> Render::step(size_t count) {
  steps_ += count;
  if (steps_ > kMostSteps || steps_ < count)
    return limit_error(fmt::format("the template takes more than {} steps", kMostSteps));
  if (!heap_->has_room()) return limit_error("the template makes more than 64 MiB of values");
  return {};
}

Result<void> Render::room(size_t count, size_t bytes_each) {
  if (count > Heap::kMostBytes / bytes_each || !heap_->has_room(count * bytes_each))
    return limit_error("the template makes more than 64 MiB of values");
  return step(count / 64);
}

Result<void> Render::grow(size_t size, size_t* charged) {
  if (!heap_->has_room(size * sizeof(char32_t))) return limit_error("the template makes more than 64 MiB of values");
  const size_t steps = size / 64 - *charged / 64;
  *charged = size;
  return step(steps);
}

Result<Render::Level> Render::enter() {
  if (nested_ >= kMostNested)
    return limit_error(fmt::format("more than {} evaluations inside one another", kMostNested));
  return Level(&nested_);
}

Result<Value> Render::call(const Value& callee, Arguments arguments) {
  if (callee.is_undefined()) return undefined_error(callee);
  if (callee.kind != Kind::object) return failed("'" + type_name(callee) + "' object is not callable");
  return callee.object->call(*this, std::move(arguments));
}

Result<Value> Render::evaluate(const Expr& expr, Frame* frame) {
  switch (expr.kind) {
    case ExprKind::constant:
      return expr.constant;
    case ExprKind::name: {
      const Value& value = frame->at(expr.slot);
      if (!value.is_missing()) return value;
      return heap_->undefined("'" + to_utf8(expr.name) + "' is undefined");
    }
    default:
      break;
  }
  KVASIR_CHECK(step());
  KVASIR_TRY(const Level level, enter());
  auto value = evaluate_branch(expr, frame);
  if (!value && !folds_ && is_constant(expr))
    if (auto folded = fold(expr, frame); folded && has_safe_repr(*folded)) return folded;
  if (!value && value.error().where.empty()) value.error().where = fmt::format("line {}", expr.line);
  return value;
}

Result<Value> Render::evaluate_branch(const Expr& expr, Frame* frame) {
  switch (expr.kind) {
    case ExprKind::constant:
    case ExprKind::name:
    case ExprKind::namespace_attribute:
    case ExprKind::slice:
      break;  // handled by evaluate(), assign() and evaluate_item()
    case ExprKind::tuple: {
      KVASIR_TRY(std::vector<Value> items, evaluate_all(expr.items, frame));
      return heap_->tuple(std::move(items));
    }
    case ExprKind::list: {
      KVASIR_TRY(std::vector<Value> items, evaluate_all(expr.items, frame));
      return heap_->list(std::move(items));
    }
    case ExprKind::dict:
      return evaluate_dict(expr, frame);
    case ExprKind::conditional: {
      KVASIR_TRY(const Value test, evaluate(*expr.items[0], frame));
      KVASIR_TRY(const bool holds, truth(*this, test));
      if (holds) return evaluate(*expr.items[1], frame);
      if (expr.items[2]) return evaluate(*expr.items[2], frame);
      return heap_->undefined(fmt::format(
          "the inline if-expression on line {} evaluated to false and no else section was defined.", expr.line));
    }
    case ExprKind::any_of:
    case ExprKind::all_of: {
      Value value;
      for (const ExprPtr& item : expr.items) {
        KVASIR_TRY(value, evaluate(*item, frame));
        KVASIR_TRY(const bool holds, truth(*this, value));
        if (holds == (expr.kind == ExprKind::any_of)) break;
      }
      return value;
    }
    case ExprKind::negation: {
      KVASIR_TRY(const Value value, evaluate(*expr.items[0], frame));
      KVASIR_TRY(const bool holds, truth(*this, value));
      return Value::of_bool(!holds);
    }
    case ExprKind::compare:
      return evaluate_compare(expr, frame);
    case ExprKind::math:
      return evaluate_math(expr, frame);
    case ExprKind::concat:
      return evaluate_concat(expr, frame);
    case ExprKind::minus:
    case ExprKind::plus: {
      KVASIR_TRY(const Value value, evaluate(*expr.items[0], frame));
      return expr.kind == ExprKind::minus ? negative(value) : positive(value);
    }
    case ExprKind::attribute: {
      KVASIR_TRY(const Value of, evaluate(*expr.items[0], frame));
      return get_attribute(*this, of, expr.constant);
    }
    case ExprKind::item:
      return evaluate_item(expr, frame);
    case ExprKind::call:
      return evaluate_call(expr, frame, nullptr);
    case ExprKind::filter:
      return evaluate_filter(expr, frame, nullptr);
    case ExprKind::test:
      return evaluate_test(expr, frame);
  }
  return fail(Error::internal, "an expression of no kind");
}

Result<std::vector<Value>> Render::evaluate_all(const std::vector<ExprPtr>& exprs, Frame* frame) {
  std::vector<Value> values;
  values.reserve(exprs.size());
  for (const ExprPtr& expr : exprs) {
    KVASIR_TRY(values.emplace_back(), evaluate(*expr, frame));
  }
  return values;
}

Result<Value> Render::evaluate_dict(const Expr& expr, Frame* frame) {
  std::vector<std::pair<Value, Value>> pairs;
  for (size_t i = 0; i + 1 < expr.items.size(); i += 2) {
    KVASIR_TRY(const Value key, evaluate(*expr.items[i], frame));
    KVASIR_TRY(const Value value, evaluate(*expr.items[i + 1], frame));
    KVASIR_CHECK(set_key(*this, &pairs, key, value));
  }
  return heap_->dict(std::move(pairs));
}

Result<Value> Render::evaluate_compare(const Expr& expr, Frame* frame) {
  KVASIR_TRY(Value left, evaluate(*expr.items[0], frame));
  bool holds = true;
  for (size_t i = 0; holds && i < expr.ops.size(); ++i) {
    KVASIR_TRY(const Value right, evaluate(*expr.items[i + 1], frame));
    KVASIR_TRY(holds, compare(*this, expr.ops[i], left, right));
    left = right;
  }
  return Value::of_bool(holds);
}

Result<Value> Render::evaluate_math(const Expr& expr, Frame* frame) {
  KVASIR_TRY(Value value, evaluate(*expr.items[0], frame));
  for (size_t i = 0; i < expr.ops.size(); ++i) {
    KVASIR_TRY(const Value right, evaluate(*expr.items[i + 1], frame));
    const bool is_power = i == 0 && expr.ops[i] == Op::pow && is_negative(value);
    if (is_power && is_constant(*expr.items[0]) && !is_constant(*expr.items[1])) {
      // Jinja compiles this to the Python code "-3 ** x", in which ** binds more tightly than the minus.
      KVASIR_TRY(const Value positive, negative(value));
      KVASIR_TRY(const Value power, calculate(*this, Op::pow, positive, right));
      KVASIR_TRY(value, negative(power));
      continue;
    }
    KVASIR_TRY(value, calculate(*this, expr.ops[i], value, right));
  }
  return value;
}

Result<Value> Render::evaluate_concat(const Expr& expr, Frame* frame) {
  KVASIR_TRY(const std::vector<Value> values, evaluate_all(expr.items, frame));
  Text text;
  for (const Value& value : values) {
    KVASIR_TRY(const Text part, str_of(*this, value));
    KVASIR_CHECK(room(text.size() + part.size()));
    text += part;
  }
  return heap_->text(std::move(text));
}

Result<Value> Render::evaluate_item(const Expr& expr, Frame* frame) {
  KVASIR_TRY(const Value of, evaluate(*expr.items[0], frame));
  const Expr& index = *expr.items[1];
  if (index.kind != ExprKind::slice) {
    KVASIR_TRY(const Value at, evaluate(index, frame));
    return get_item(*this, of, at);
  }
  std::array<Value, 3> bounds;
  for (size_t i = 0; i < 3; ++i) {
    bounds[i] = Value::none();
    if (!index.items[i]) continue;
    KVASIR_TRY(bounds[i], evaluate(*index.items[i], frame));
  }
  auto sliced = slice(*this, of, bounds[0], bounds[1], bounds[2]);
  // Jinja's compiler takes Python's TypeError for an undefined value; a step of 0 is a ValueError.
  const bool is_step_0 = bounds[2].is_int() && bounds[2].to_int() == 0 && is_sliceable(of);
  if (!sliced && folds_ && sliced.error().kind == Error::bad_argument && !of.is_undefined() && !is_step_0)
    return heap_->undefined("no part of a value");
  return sliced;
}

// Evaluates a constant expression as Jinja's compiler folds it: there, a slice that fails is undefined.
Result<Value> Render::fold(const Expr& expr, Frame* frame) {
  folds_ = true;
  auto value = evaluate(expr, frame);
  folds_ = false;
  return value;
}

bool is_constant(const Expr& expr) {
  const auto constant = [](const ExprPtr& one) { return one == nullptr || is_constant(*one); };
  if (expr.kind == ExprKind::name || expr.kind == ExprKind::call) return false;
  if (expr.kind == ExprKind::filter)  // Jinja passes the context to these filters, so it does not fold them
    for (const TextView name : {U"map", U"select", U"reject", U"selectattr", U"rejectattr"})
      if (same(expr.name, name)) return false;
  const CallArguments& given = expr.arguments;
  return std::all_of(expr.items.begin(), expr.items.end(), constant) &&
         std::all_of(given.at.begin(), given.at.end(), constant) &&
         std::all_of(given.named.begin(), given.named.end(), [&](const auto& one) { return constant(one.second); }) &&
         constant(given.more_at) && constant(given.more_named);
}

Result<Arguments> Render::evaluate_arguments(const CallArguments& arguments, Frame* frame) {
  Arguments all;
  KVASIR_TRY(all.at, evaluate_all(arguments.at, frame));
  if (arguments.more_at) {
    KVASIR_TRY(const Value more, evaluate(*arguments.more_at, frame));
    KVASIR_TRY(const std::vector<Value> items, collect(*this, more));
    all.at.insert(all.at.end(), items.begin(), items.end());
  }
  for (const auto& [name, expr] : arguments.named) {
    for (const auto& [other, value] : all.named)
      if (other == name) return failed("keyword argument repeated: " + to_utf8(name));
    KVASIR_TRY(const Value value, evaluate(*expr, frame));
    all.named.emplace_back(name, value);
  }
  if (!arguments.more_named) return all;
  KVASIR_TRY(const Value more, evaluate(*arguments.more_named, frame));
  if (more.kind != Kind::dict) return failed("argument after ** must be a mapping, not " + type_name(more));
  for (const auto& [key, value] : more.pairs()) {
    if (!key.is_text()) return failed("keywords must be strings");
    for (const auto& [other, _] : all.named)
      if (same(other, key.text())) return failed("got multiple values for keyword argument " + to_utf8(other));
    all.named.emplace_back(Text(key.text()), value);
  }
  return all;
}

Result<Value> Render::evaluate_call(const Expr& expr, Frame* frame, const Value* caller) {
  KVASIR_TRY(const Value callee, evaluate(*expr.items[0], frame));
  KVASIR_TRY(Arguments arguments, evaluate_arguments(expr.arguments, frame));
  if (caller != nullptr) arguments.named.emplace_back(U"caller", *caller);
  return call(callee, std::move(arguments));
}

Result<Value> Render::evaluate_filter(const Expr& expr, Frame* frame, const Value* of) {
  Value value;
  if (expr.items[0] == nullptr) {
    value = *of;
  } else if (of != nullptr && expr.items[0]->kind == ExprKind::filter) {
    KVASIR_TRY(value, evaluate_filter(*expr.items[0], frame, of));
  } else {
    KVASIR_TRY(value, evaluate(*expr.items[0], frame));
  }
  KVASIR_TRY(Arguments arguments, evaluate_arguments(expr.arguments, frame));
  return apply_filter(*this, *expr.filter, value, std::move(arguments));
}

Result<Value> Render::evaluate_test(const Expr& expr, Frame* frame) {
  KVASIR_TRY(const Value value, evaluate(*expr.items[0], frame));
  KVASIR_TRY(Arguments arguments, evaluate_arguments(expr.arguments, frame));
  KVASIR_TRY(const bool holds, apply_test(*this, *expr.test, value, std::move(arguments)));
  return Value::of_bool(holds);
}

}  // namespace kvasir::jinja
