// Parses statements, the tags between {% and %}, and the text around them. parse_expression.cc parses expressions.
#include "chat/jinja/parser.h"

#include <algorithm>

#include "chat/jinja/parser_state.h"

namespace kvasir::jinja {
namespace {

using Names = std::initializer_list<TextView>;

// Valid tags of Jinja that are refused: they need other template files, or change how all text is printed.
constexpr TextView kRefused[] = {U"block", U"extends", U"include", U"import", U"from", U"autoescape", U"trans"};

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Result<Block> run() {
    KVASIR_TRY(Block body, block({}));
    return body;
  }

 private:
  // Parses statements up to a tag named in `ends`, which becomes the current token; up to the end of the template if
  // `ends` is empty.
  Result<Block> block(Names ends) {
    const Nested level(this);
    if (level.is_too_deep()) return too_deep();
    Block body;
    while (current().type != Token::end) {
      if (current().type == Token::data) {
        KVASIR_TRY(ExprPtr data, constant(heap()->text(current().value), current().line));
        next();
        KVASIR_CHECK(print(std::move(data), &body));
      } else if (current().type == Token::variable_begin) {
        next();
        KVASIR_TRY(ExprPtr value, tuple(Items::expressions));
        KVASIR_CHECK(expect(Token::variable_end));
        KVASIR_CHECK(print(std::move(value), &body));
      } else {
        next();  // block_begin
        if (std::any_of(ends.begin(), ends.end(), [&](TextView end) { return is_name(end); })) return body;
        KVASIR_CHECK(statement(&body));
        KVASIR_CHECK(expect(Token::block_end));
      }
    }
    if (ends.size() > 0)
      return error(fmt::format("Unexpected end of template. Jinja was looking for '{}'.", to_utf8(*(ends.end() - 1))));
    return body;
  }

  static Result<void> print(ExprPtr value, Block* body) {
    if (body->empty() || body->back().kind != StatementKind::output) {
      body->emplace_back().kind = StatementKind::output;
      body->back().line = value->line;
    }
    body->back().values.push_back(std::move(value));
    return {};
  }

  // Parses the body of a tag up to the name of an end tag in `ends`, and skips that name. Sets `found` to it.
  Result<Block> body_until(Names ends, Text* found = nullptr) {
    skip_op(U":");
    KVASIR_CHECK(expect(Token::block_end));
    KVASIR_TRY(Block body, block(ends));
    const Text& name = next().value;
    if (found != nullptr) *found = name;
    return body;
  }

  Result<void> statement(Block* into) {
    if (current().type != Token::name) return error("tag name expected");
    const Text tag = current().value;
    const int line = next().line;
    if (tag == U"print") return print_tag(into, line);
    Statement s;
    s.line = line;
    KVASIR_CHECK(statement_of(tag, &s));
    into->push_back(std::move(s));
    return {};
  }

  Result<void> statement_of(const Text& tag, Statement* s) {
    if (tag == U"if") return if_chain(s);
    if (tag == U"for") return for_loop(s);
    if (tag == U"set") return set(s);
    if (tag == U"macro") return macro(s);
    if (tag == U"call") return call_block(s);
    if (tag == U"filter") return filter_block(s);
    if (tag == U"with") return with(s);
    if (tag == U"generation") return generation(s);
    if (tag == U"break" || tag == U"continue") return leave(tag, s);
    if (std::find(std::begin(kRefused), std::end(kRefused), TextView(tag)) != std::end(kRefused))
      return unsupported("the tag '" + to_utf8(tag) + "'", s->line);
    return syntax_error("Encountered unknown tag '" + to_utf8(tag) + "'.", s->line);
  }

  Result<void> print_tag(Block* into, int line) {
    into->emplace_back().kind = StatementKind::output;
    into->back().line = line;
    bool is_first = true;
    while (current().type != Token::block_end) {
      if (!is_first) KVASIR_CHECK(expect_op(U","));
      is_first = false;
      KVASIR_TRY(ExprPtr value, expression());
      into->back().values.push_back(std::move(value));
    }
    return {};
  }

  Result<void> if_chain(Statement* s) {
    s->kind = StatementKind::if_chain;
    for (;;) {
      Branch branch;
      KVASIR_TRY(branch.test, tuple(Items::without_if));
      Text end;
      KVASIR_TRY(branch.body, body_until({U"elif", U"else", U"endif"}, &end));
      s->branches.push_back(std::move(branch));
      if (end == U"elif") continue;
      if (end == U"else") {
        Branch otherwise;
        KVASIR_TRY(otherwise.body, body_until({U"endif"}));
        s->branches.push_back(std::move(otherwise));
      }
      return {};
    }
  }

  Result<void> for_loop(Statement* s) {
    s->kind = StatementKind::for_loop;
    KVASIR_TRY(ExprPtr to, target(false));
    s->targets.push_back(std::move(to));
    if (!skip_name(U"in")) return error(fmt::format("expected token 'in', got '{}'", shown()));
    KVASIR_TRY(ExprPtr iterable, tuple(Items::without_if));
    ExprPtr test;
    if (skip_name(U"if")) {
      KVASIR_TRY(test, expression());
    }
    s->values.push_back(std::move(iterable));
    s->values.push_back(std::move(test));
    s->is_recursive = skip_name(U"recursive");
    Text end;
    ++loops_;
    KVASIR_TRY(s->body, body_until({U"endfor", U"else"}, &end));
    --loops_;
    if (end == U"else") {
      KVASIR_TRY(s->otherwise, body_until({U"endfor"}));
    }
    return {};
  }

  Result<void> leave(const Text& tag, Statement* s) {
    s->kind = tag == U"break" ? StatementKind::break_loop : StatementKind::continue_loop;
    if (loops_ == 0) return syntax_error("'" + to_utf8(tag) + "' outside loop", s->line);
    return {};
  }

  Result<void> set(Statement* s) {
    KVASIR_TRY(ExprPtr to, target(true));
    s->targets.push_back(std::move(to));
    if (skip_op(U"=")) {
      s->kind = StatementKind::set;
      KVASIR_TRY(ExprPtr value, tuple(Items::expressions));
      s->values.push_back(std::move(value));
      return {};
    }
    s->kind = StatementKind::set_block;
    KVASIR_TRY(ExprPtr filter, filters(nullptr, false));
    s->values.push_back(std::move(filter));
    KVASIR_TRY(s->body, body_until({U"endset"}));
    return {};
  }

  Result<void> signature(Signature* into) {
    KVASIR_CHECK(expect_op(U"("));
    while (!is_op(U")")) {
      if (!into->parameters.empty()) KVASIR_CHECK(expect_op(U","));
      KVASIR_TRY(ExprPtr name, name_target());
      name->is_parameter = true;
      for (const ExprPtr& other : into->parameters)
        if (other->name == name->name) return error("duplicate argument '" + to_utf8(name->name) + "'");
      if (skip_op(U"=")) {
        KVASIR_TRY(ExprPtr value, expression());
        into->defaults.push_back(std::move(value));
      } else if (!into->defaults.empty()) {
        return error("non-default argument follows default argument");
      }
      into->parameters.push_back(std::move(name));
    }
    next();
    return {};
  }

  // Parses the body of a function. A break in it cannot leave a loop around it.
  Result<void> function_body(Names ends, Statement* s) {
    const int outer = std::exchange(loops_, 0);
    KVASIR_TRY(s->body, body_until(ends));
    loops_ = outer;
    return {};
  }

  Result<void> macro(Statement* s) {
    s->kind = StatementKind::macro;
    KVASIR_TRY(const ExprPtr name, name_target());
    s->name = name->name;
    KVASIR_CHECK(signature(&s->signature));
    return function_body({U"endmacro"}, s);
  }

  Result<void> call_block(Statement* s) {
    s->kind = StatementKind::call_block;
    if (is_op(U"(")) KVASIR_CHECK(signature(&s->signature));
    KVASIR_TRY(ExprPtr call, expression());
    if (call->kind != ExprKind::call) return syntax_error("expected call", s->line);
    s->values.push_back(std::move(call));
    return function_body({U"endcall"}, s);
  }

  // {% generation %} marks the model's own text for training. Rendering just prints the body. In transformers it is a
  // call block, so it has its own variables.
  Result<void> generation(Statement* s) {
    s->kind = StatementKind::call_block;
    return function_body({U"endgeneration"}, s);
  }

  Result<void> filter_block(Statement* s) {
    s->kind = StatementKind::filter_block;
    KVASIR_TRY(ExprPtr filter, filters(nullptr, true));
    s->values.push_back(std::move(filter));
    KVASIR_TRY(s->body, body_until({U"endfilter"}));
    return {};
  }

  Result<void> with(Statement* s) {
    s->kind = StatementKind::with;
    while (current().type != Token::block_end) {
      if (!s->targets.empty()) KVASIR_CHECK(expect_op(U","));
      KVASIR_TRY(ExprPtr to, target(false));
      to->is_parameter = true;
      for (const ExprPtr& item : to->items) item->is_parameter = true;
      s->targets.push_back(std::move(to));
      KVASIR_CHECK(expect_op(U"="));
      KVASIR_TRY(ExprPtr value, expression());
      s->values.push_back(std::move(value));
    }
    KVASIR_TRY(s->body, body_until({U"endwith"}));
    return {};
  }

  int loops_ = 0;
};

}  // namespace

Result<Block> parse(TextView source, Heap* heap) {
  KVASIR_TRY(std::vector<Token> tokens, tokenize(source));
  return Parser(std::move(tokens), heap).run();
}

}  // namespace kvasir::jinja
