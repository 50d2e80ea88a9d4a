// The base of the parser, shared by parse_expression.cc and parser.cc: the tokens and the nesting depth.
#pragma once

#include <initializer_list>

#include "chat/jinja/ast.h"
#include "chat/jinja/errors.h"
#include "chat/jinja/lexer.h"

namespace kvasir::jinja {

/// Parses expressions (parse_expression.cc). The class Parser in parser.cc adds statements.
class ExpressionParser {
 public:
  static constexpr int kMostNested = 64;
  static constexpr int kMostDepth = 200;  ///< for chains, which nest without brackets: a.b.c, x|f|g

  ExpressionParser(std::vector<Token> tokens, Heap* heap) : tokens_(std::move(tokens)), heap_(heap) {}

 protected:
  // ---- tokens

  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool is_op(TextView op) const { return current().type == Token::op && current().value == op; }
  bool is_name(TextView name) const { return current().type == Token::name && current().value == name; }
  bool skip_op(TextView op) { return is_op(op) && (next(), true); }
  bool skip_name(TextView name) { return is_name(name) && (next(), true); }
  Result<void> expect_op(TextView op);
  Result<Text> expect_name();
  Result<void> expect(Token::Type type);
  std::string shown() const;
  tl::unexpected<Error> error(std::string what) const { return syntax_error(std::move(what), current().line); }

  // ---- expressions

  /// `with_if`: accepts `a if b`. All of these functions return an expression with its depth set.
  Result<ExprPtr> expression(bool with_if = true);
  enum class Items { expressions, without_if, primaries };
  /// Parses an expression, or a tuple without its own brackets. It may be empty only if `in_brackets`.
  Result<ExprPtr> tuple(Items items, bool in_brackets = false);
  /// Parses the target of an assignment: `a`, `a, b` or `(a, b)`; if `with_namespace`, also `ns.a`.
  Result<ExprPtr> target(bool with_namespace);
  Result<ExprPtr> name_target();
  /// Parses `|name(arguments)|name...`; without the first bar if `inline_start`.
  Result<ExprPtr> filters(ExprPtr of, bool inline_start);
  Result<ExprPtr> constant(Value value, int line);

  /// Counts a nesting level during its lifetime.
  struct Nested {
    explicit Nested(ExpressionParser* p) : parser(p) { ++parser->nested_; }
    ~Nested() { --parser->nested_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    bool is_too_deep() const { return parser->nested_ > kMostNested; }
    ExpressionParser* parser;
  };
  tl::unexpected<Error> too_deep() const {
    return limit_error(fmt::format("more than {} levels", kMostNested), current().line);
  }

  Heap* heap() { return heap_; }

 private:
  using Part = Result<ExprPtr> (ExpressionParser::*)();
  Result<ExprPtr> any_of();
  Result<ExprPtr> all_of();
  Result<ExprPtr> negation();
  Result<ExprPtr> comparison();
  Result<ExprPtr> sum();
  Result<ExprPtr> concat();
  Result<ExprPtr> product();
  Result<ExprPtr> power();
  Result<ExprPtr> with_filters() { return unary(true); }
  Result<ExprPtr> unary(bool with_filters);
  Result<ExprPtr> primary();
  Result<ExprPtr> text_constant();
  Result<ExprPtr> list();
  Result<ExprPtr> dict();
  Result<ExprPtr> postfix(ExprPtr of);
  Result<ExprPtr> filters_and_tests(ExprPtr of);
  Result<ExprPtr> subscript(ExprPtr of);
  Result<ExprPtr> in_brackets();
  Result<ExprPtr> call(ExprPtr of);
  Result<ExprPtr> test(ExprPtr of);
  Result<CallArguments> arguments();
  Result<void> argument(CallArguments* into);

  Result<ExprPtr> named_chain(ExprKind kind, TextView word, Part part);
  Result<ExprPtr> math_chain(std::initializer_list<std::pair<TextView, Op>> ops, Part part);
  static ExprPtr make(ExprKind kind, int line);
  /// Sets the depth of `expr`. Errors: it is too deep.
  Result<ExprPtr> finish(ExprPtr expr) const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nested_ = 0;
  Heap* heap_;
};

}  // namespace kvasir::jinja
