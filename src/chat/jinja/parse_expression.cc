// Parses expressions, from the loosest binding (a if b else c) to the tightest (a constant).
#include <algorithm>
#include <optional>

#include "chat/jinja/filters.h"
#include "chat/jinja/parser_state.h"

namespace kvasir::jinja {
namespace {

const std::initializer_list<std::pair<TextView, Op>> kCompare = {{U"==", Op::eq}, {U"!=", Op::ne}, {U"<", Op::lt},
                                                                 {U"<=", Op::le}, {U">", Op::gt},  {U">=", Op::ge}};

int depth_of(const ExprPtr& expr) { return expr ? expr->depth : 0; }

void mark_as_target(Expr* expr) {
  expr->is_target = true;
  for (const ExprPtr& item : expr->items) mark_as_target(item.get());
}

bool can_assign(const Expr& expr) {
  if (expr.kind == ExprKind::tuple)
    return std::all_of(expr.items.begin(), expr.items.end(), [](const ExprPtr& item) { return can_assign(*item); });
  return expr.kind == ExprKind::name || expr.kind == ExprKind::namespace_attribute;
}

}  // namespace

ExprPtr ExpressionParser::make(ExprKind kind, int line) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = line;
  return expr;
}

Result<ExprPtr> ExpressionParser::finish(ExprPtr expr) const {
  int most = 0;
  for (const ExprPtr& item : expr->items) most = std::max(most, depth_of(item));
  for (const ExprPtr& item : expr->arguments.at) most = std::max(most, depth_of(item));
  for (const auto& [name, item] : expr->arguments.named) most = std::max(most, depth_of(item));
  most = std::max({most, depth_of(expr->arguments.more_at), depth_of(expr->arguments.more_named)});
  expr->depth = most + 1;
  if (expr->depth > kMostDepth)
    return limit_error(fmt::format("an expression of more than {} levels", kMostDepth), expr->line);
  return expr;
}

// ---- tokens

std::string ExpressionParser::shown() const {
  switch (current().type) {
    case Token::end:
      return "end of template";
    case Token::block_end:
      return "end of statement block";
    case Token::variable_end:
      return "end of print statement";
    case Token::integer:
      return "integer";
    case Token::real:
      return "float";
    case Token::text:
      return "string";
    default:
      return to_utf8(current().value);
  }
}

Result<void> ExpressionParser::expect_op(TextView op) {
  if (skip_op(op)) return {};
  return error(fmt::format("expected token '{}', got '{}'", to_utf8(op), shown()));
}

Result<Text> ExpressionParser::expect_name() {
  if (current().type == Token::name) return next().value;
  return error(fmt::format("expected token 'name', got '{}'", shown()));
}

Result<void> ExpressionParser::expect(Token::Type type) {
  if (current().type == type) {
    next();
    return {};
  }
  return error(fmt::format("expected the end of the tag, got '{}'", shown()));
}

// ---- conditions, logic and comparisons

Result<ExprPtr> ExpressionParser::expression(bool with_if) {
  const Nested level(this);
  if (level.is_too_deep()) return too_deep();
  KVASIR_TRY(ExprPtr value, any_of());
  while (with_if && is_name(U"if")) {
    ExprPtr choice = make(ExprKind::conditional, next().line);
    KVASIR_TRY(ExprPtr condition, any_of());
    ExprPtr otherwise;
    if (skip_name(U"else")) {
      KVASIR_TRY(otherwise, expression());
    }
    choice->items.push_back(std::move(condition));
    choice->items.push_back(std::move(value));
    choice->items.push_back(std::move(otherwise));
    KVASIR_TRY(value, finish(std::move(choice)));
  }
  return value;
}

Result<ExprPtr> ExpressionParser::named_chain(ExprKind kind, TextView word, Part part) {
  const int line = current().line;
  KVASIR_TRY(ExprPtr first, (this->*part)());
  if (!is_name(word)) return first;
  ExprPtr chain = make(kind, line);
  chain->items.push_back(std::move(first));
  while (skip_name(word)) {
    KVASIR_TRY(ExprPtr item, (this->*part)());
    chain->items.push_back(std::move(item));
  }
  return finish(std::move(chain));
}

Result<ExprPtr> ExpressionParser::any_of() { return named_chain(ExprKind::any_of, U"or", &ExpressionParser::all_of); }
Result<ExprPtr> ExpressionParser::all_of() {
  return named_chain(ExprKind::all_of, U"and", &ExpressionParser::negation);
}

Result<ExprPtr> ExpressionParser::negation() {
  if (!is_name(U"not")) return comparison();
  const Nested level(this);
  if (level.is_too_deep()) return too_deep();
  ExprPtr expr = make(ExprKind::negation, next().line);
  KVASIR_TRY(ExprPtr of, negation());
  expr->items.push_back(std::move(of));
  return finish(std::move(expr));
}

Result<ExprPtr> ExpressionParser::comparison() {
  ExprPtr chain = make(ExprKind::compare, current().line);
  KVASIR_TRY(ExprPtr first, sum());
  chain->items.push_back(std::move(first));
  for (;;) {
    const auto* const found =
        std::find_if(kCompare.begin(), kCompare.end(), [&](const auto& op) { return is_op(op.first); });
    if (found != kCompare.end()) {
      next();
      chain->ops.push_back(found->second);
    } else if (skip_name(U"in")) {
      chain->ops.push_back(Op::in);
    } else if (is_name(U"not") && look().type == Token::name && look().value == U"in") {
      next();
      next();
      chain->ops.push_back(Op::not_in);
    } else {
      break;
    }
    KVASIR_TRY(ExprPtr item, sum());
    chain->items.push_back(std::move(item));
  }
  if (chain->ops.empty()) return std::move(chain->items[0]);
  return finish(std::move(chain));
}

// ---- arithmetic

Result<ExprPtr> ExpressionParser::math_chain(std::initializer_list<std::pair<TextView, Op>> ops, Part part) {
  ExprPtr chain = make(ExprKind::math, current().line);
  KVASIR_TRY(ExprPtr first, (this->*part)());
  chain->items.push_back(std::move(first));
  for (;;) {
    const auto* const found = std::find_if(ops.begin(), ops.end(), [&](const auto& op) { return is_op(op.first); });
    if (found == ops.end()) break;
    next();
    chain->ops.push_back(found->second);
    KVASIR_TRY(ExprPtr item, (this->*part)());
    chain->items.push_back(std::move(item));
  }
  if (chain->ops.empty()) return std::move(chain->items[0]);
  return finish(std::move(chain));
}

Result<ExprPtr> ExpressionParser::sum() {
  return math_chain({{U"+", Op::add}, {U"-", Op::sub}}, &ExpressionParser::concat);
}

Result<ExprPtr> ExpressionParser::concat() {
  ExprPtr chain = make(ExprKind::concat, current().line);
  do {
    KVASIR_TRY(ExprPtr item, product());
    chain->items.push_back(std::move(item));
  } while (skip_op(U"~"));
  if (chain->items.size() == 1) return std::move(chain->items[0]);
  return finish(std::move(chain));
}

Result<ExprPtr> ExpressionParser::product() {
  return math_chain({{U"*", Op::mul}, {U"/", Op::div}, {U"//", Op::floordiv}, {U"%", Op::mod}},
                    &ExpressionParser::power);
}

// In Jinja, ** is left-associative, unlike in Python.
Result<ExprPtr> ExpressionParser::power() { return math_chain({{U"**", Op::pow}}, &ExpressionParser::with_filters); }

Result<ExprPtr> ExpressionParser::unary(bool with_filters) {
  const Nested level(this);
  if (level.is_too_deep()) return too_deep();
  ExprPtr expr;
  if (is_op(U"-") || is_op(U"+")) {
    expr = make(is_op(U"-") ? ExprKind::minus : ExprKind::plus, current().line);
    next();
    KVASIR_TRY(ExprPtr of, unary(false));
    expr->items.push_back(std::move(of));
    KVASIR_TRY(expr, finish(std::move(expr)));
  } else {
    KVASIR_TRY(expr, primary());
  }
  KVASIR_TRY(expr, postfix(std::move(expr)));
  if (!with_filters) return expr;
  return filters_and_tests(std::move(expr));
}

// ---- constants, names, lists, dicts, tuples and targets

Result<ExprPtr> ExpressionParser::constant(Value value, int line) {
  ExprPtr expr = make(ExprKind::constant, line);
  expr->constant = value;
  return expr;
}

Result<ExprPtr> ExpressionParser::text_constant() {
  const int line = current().line;
  Text text;
  while (current().type == Token::text) text += next().value;
  return constant(heap_->text(std::move(text)), line);
}

Result<ExprPtr> ExpressionParser::primary() {
  const Token& token = current();
  switch (token.type) {
    case Token::name: {
      next();
      const TextView name = token.value;
      if (name == U"true" || name == U"True") return constant(Value::of_bool(true), token.line);
      if (name == U"false" || name == U"False") return constant(Value::of_bool(false), token.line);
      if (name == U"none" || name == U"None") return constant(Value::none(), token.line);
      ExprPtr expr = make(ExprKind::name, token.line);
      expr->name = token.value;
      return expr;
    }
    case Token::text:
      return text_constant();
    case Token::integer:
      next();
      return constant(Value::of_int(token.integer_value), token.line);
    case Token::real:
      next();
      return constant(Value::of_real(token.real_value), token.line);
    default:
      break;
  }
  if (skip_op(U"(")) {
    KVASIR_TRY(ExprPtr inside, tuple(Items::expressions, true));
    KVASIR_CHECK(expect_op(U")"));
    return inside;
  }
  if (is_op(U"[")) return list();
  if (is_op(U"{")) return dict();
  return error(fmt::format("unexpected '{}'", shown()));
}

Result<ExprPtr> ExpressionParser::list() {
  ExprPtr expr = make(ExprKind::list, next().line);
  while (!is_op(U"]")) {
    if (!expr->items.empty()) KVASIR_CHECK(expect_op(U","));
    if (is_op(U"]")) break;
    KVASIR_TRY(ExprPtr item, expression());
    expr->items.push_back(std::move(item));
  }
  next();
  return finish(std::move(expr));
}

Result<ExprPtr> ExpressionParser::dict() {
  ExprPtr expr = make(ExprKind::dict, next().line);
  while (!is_op(U"}")) {
    if (!expr->items.empty()) KVASIR_CHECK(expect_op(U","));
    if (is_op(U"}")) break;
    KVASIR_TRY(ExprPtr key, expression());
    KVASIR_CHECK(expect_op(U":"));
    KVASIR_TRY(ExprPtr value, expression());
    expr->items.push_back(std::move(key));
    expr->items.push_back(std::move(value));
  }
  next();
  return finish(std::move(expr));
}

Result<ExprPtr> ExpressionParser::tuple(Items items, bool in_brackets) {
  const Nested level(this);
  if (level.is_too_deep()) return too_deep();
  ExprPtr expr = make(ExprKind::tuple, current().line);
  bool is_tuple = false;
  for (;;) {
    if (!expr->items.empty()) KVASIR_CHECK(expect_op(U","));
    if (current().type == Token::variable_end || current().type == Token::block_end || is_op(U")")) break;
    KVASIR_TRY(ExprPtr item, items == Items::primaries ? primary() : expression(items == Items::expressions));
    expr->items.push_back(std::move(item));
    if (!is_op(U",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !expr->items.empty()) return std::move(expr->items[0]);
  if (!is_tuple && !in_brackets) return error(fmt::format("Expected an expression, got '{}'", shown()));
  return finish(std::move(expr));
}

Result<ExprPtr> ExpressionParser::target(bool with_namespace) {
  ExprPtr expr;
  if (with_namespace && look().type == Token::op && look().value == U".") {
    expr = make(ExprKind::namespace_attribute, current().line);
    KVASIR_TRY(expr->name, expect_name());
    next();
    KVASIR_TRY(Text attribute, expect_name());
    expr->constant = heap_->text(std::move(attribute));
  } else {
    KVASIR_TRY(expr, tuple(Items::primaries));
  }
  if (!can_assign(*expr)) return syntax_error("can't assign to that", expr->line);
  mark_as_target(expr.get());
  return expr;
}

Result<ExprPtr> ExpressionParser::name_target() {
  ExprPtr expr = make(ExprKind::name, current().line);
  KVASIR_TRY(expr->name, expect_name());
  for (const TextView word : {U"true", U"True", U"false", U"False", U"none", U"None"})
    if (expr->name == word) return syntax_error("can't assign to '" + to_utf8(word) + "'", expr->line);
  expr->is_target = true;
  return expr;
}

// ---- attributes, subscripts, calls, filters and tests

Result<ExprPtr> ExpressionParser::postfix(ExprPtr of) {
  for (;;) {
    if (is_op(U".") || is_op(U"[")) {
      KVASIR_TRY(of, subscript(std::move(of)));
    } else if (is_op(U"(")) {
      KVASIR_TRY(of, call(std::move(of)));
    } else {
      return of;
    }
  }
}

Result<ExprPtr> ExpressionParser::filters_and_tests(ExprPtr of) {
  for (;;) {
    if (is_op(U"|")) {
      KVASIR_TRY(of, filters(std::move(of), false));
    } else if (is_name(U"is")) {
      KVASIR_TRY(of, test(std::move(of)));
    } else if (is_op(U"(")) {
      KVASIR_TRY(of, call(std::move(of)));
    } else {
      return of;
    }
  }
}

Result<ExprPtr> ExpressionParser::subscript(ExprPtr of) {
  const int line = current().line;
  if (skip_op(U".")) {
    const Token& token = next();
    ExprPtr expr = make(token.type == Token::name ? ExprKind::attribute : ExprKind::item, line);
    expr->items.push_back(std::move(of));
    if (token.type == Token::name) {
      expr->constant = heap_->text(token.value);
    } else if (token.type == Token::integer) {
      KVASIR_TRY(ExprPtr index, constant(Value::of_int(token.integer_value), token.line));
      expr->items.push_back(std::move(index));
    } else {
      return syntax_error("expected name or number", token.line);
    }
    return finish(std::move(expr));
  }
  next();
  ExprPtr expr = make(ExprKind::item, line);
  ExprPtr indices = make(ExprKind::tuple, line);
  while (!is_op(U"]")) {
    if (!indices->items.empty()) KVASIR_CHECK(expect_op(U","));
    KVASIR_TRY(ExprPtr index, in_brackets());
    indices->items.push_back(std::move(index));
  }
  next();
  if (indices->items.size() == 1) {
    indices = std::move(indices->items[0]);
  } else {
    KVASIR_TRY(indices, finish(std::move(indices)));
  }
  expr->items.push_back(std::move(of));
  expr->items.push_back(std::move(indices));
  return finish(std::move(expr));
}

Result<ExprPtr> ExpressionParser::in_brackets() {
  ExprPtr slice = make(ExprKind::slice, current().line);
  slice->items.resize(3);
  if (!is_op(U":")) {
    KVASIR_TRY(slice->items[0], expression());
    if (!is_op(U":")) return std::move(slice->items[0]);
  }
  for (size_t i = 1; i < 3 && skip_op(U":"); ++i) {
    if (is_op(U":") || is_op(U"]") || is_op(U",")) continue;
    KVASIR_TRY(slice->items[i], expression());
  }
  return finish(std::move(slice));
}

Result<ExprPtr> ExpressionParser::call(ExprPtr of) {
  ExprPtr expr = make(ExprKind::call, current().line);
  expr->items.push_back(std::move(of));
  KVASIR_TRY(expr->arguments, arguments());
  return finish(std::move(expr));
}

Result<CallArguments> ExpressionParser::arguments() {
  CallArguments found;
  KVASIR_CHECK(expect_op(U"("));
  bool needs_comma = false;
  while (!is_op(U")")) {
    if (needs_comma) {
      KVASIR_CHECK(expect_op(U","));
      if (is_op(U")")) break;
    }
    KVASIR_CHECK(argument(&found));
    needs_comma = true;
  }
  next();
  return found;
}

Result<void> ExpressionParser::argument(CallArguments* into) {
  const auto refuse = [&](bool wrong) -> Result<void> {
    if (wrong) return error("invalid syntax for function call expression");
    return {};
  };
  const bool has_more_at = into->more_at != nullptr, has_more_named = into->more_named != nullptr;
  if (is_op(U"*")) {
    KVASIR_CHECK(refuse(has_more_at || has_more_named));
    next();
    KVASIR_TRY(into->more_at, expression());
    return {};
  }
  if (is_op(U"**")) {
    KVASIR_CHECK(refuse(has_more_named));
    next();
    KVASIR_TRY(into->more_named, expression());
    return {};
  }
  if (current().type == Token::name && look().type == Token::op && look().value == U"=") {
    KVASIR_CHECK(refuse(has_more_named));
    Text name = next().value;
    next();
    KVASIR_TRY(ExprPtr value, expression());
    into->named.emplace_back(std::move(name), std::move(value));
    return {};
  }
  KVASIR_CHECK(refuse(has_more_at || has_more_named || !into->named.empty()));
  KVASIR_TRY(ExprPtr value, expression());
  into->at.push_back(std::move(value));
  return {};
}

Result<ExprPtr> ExpressionParser::filters(ExprPtr of, bool inline_start) {
  while (is_op(U"|") || inline_start) {
    if (!inline_start) next();
    inline_start = false;
    ExprPtr expr = make(ExprKind::filter, current().line);
    KVASIR_TRY(expr->name, expect_name());
    while (skip_op(U".")) {
      KVASIR_TRY(const Text more, expect_name());
      expr->name += U'.' + more;
    }
    expr->filter = find_filter(expr->name);
    if (expr->filter == nullptr) return unsupported("the filter '" + to_utf8(expr->name) + "'", expr->line);
    if (is_op(U"(")) {
      KVASIR_TRY(expr->arguments, arguments());
    }
    expr->items.push_back(std::move(of));
    KVASIR_TRY(of, finish(std::move(expr)));
  }
  return of;
}

Result<ExprPtr> ExpressionParser::test(ExprPtr of) {
  const int line = next().line;
  const bool is_not = skip_name(U"not");
  ExprPtr expr = make(ExprKind::test, line);
  KVASIR_TRY(expr->name, expect_name());
  while (skip_op(U".")) {
    KVASIR_TRY(const Text more, expect_name());
    expr->name += U'.' + more;
  }
  expr->test = find_test(expr->name);
  if (expr->test == nullptr) return unsupported("the test '" + to_utf8(expr->name) + "'", expr->line);
  const Token::Type type = current().type;
  const bool has_operand = type == Token::text || type == Token::integer || type == Token::real || is_op(U"[") ||
                           is_op(U"{") ||
                           (type == Token::name && !is_name(U"else") && !is_name(U"or") && !is_name(U"and"));
  if (is_op(U"(")) {
    KVASIR_TRY(expr->arguments, arguments());
  } else if (has_operand) {
    if (is_name(U"is")) return error("You cannot chain multiple tests with is");
    KVASIR_TRY(ExprPtr operand, primary());
    KVASIR_TRY(operand, postfix(std::move(operand)));
    expr->arguments.at.push_back(std::move(operand));
  }
  expr->items.push_back(std::move(of));
  KVASIR_TRY(expr, finish(std::move(expr)));
  if (!is_not) return expr;
  ExprPtr inverse = make(ExprKind::negation, line);
  inverse->items.push_back(std::move(expr));
  return finish(std::move(inverse));
}

}  // namespace kvasir::jinja
