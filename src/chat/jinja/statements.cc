// Runs statements.
#include "chat/jinja/attributes.h"
#include "chat/jinja/globals.h"
#include "chat/jinja/objects.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/render.h"
#include "chat/jinja/repr.h"

namespace kvasir::jinja {

Result<Text> Render::run(const Block& body, const Scope& scope) {
  Text out;
  whole_ = &out;
  KVASIR_CHECK(run_block(body, open(scope, nullptr), &out));
  if (late_error_) return tl::unexpected<Error>(*late_error_);
  return out;
}

// ---- variables

Frame* Render::open(const Scope& scope, Frame* outer) {
  auto* frame = heap_->make<Frame>(&scope, outer);
  load(frame);
  return frame;
}

// Sets each variable to its initial value. Arguments keep their values.
void Render::load(Frame* frame) {
  for (size_t i = 0; i < frame->slots.size(); ++i) {
    const Load& load = frame->scope->loads[i];
    if (load.how == Load::nothing) frame->slots[i] = {};
    if (load.how == Load::context) frame->slots[i] = look_up(load.name);
    if (load.how == Load::outer) frame->slots[i] = frame->outer->at(load.alias);
  }
}

Value Render::look_up(TextView name) {
  for (const auto& [key, value] : context_.pairs())
    if (same(key.text(), name)) return value;
  return find_global(*this, name);
}

Result<void> Render::assign(const Expr& target, const Value& value, Frame* frame) {
  if (target.kind == ExprKind::name) {
    frame->at(target.slot) = value;
    return {};
  }
  if (target.kind == ExprKind::namespace_attribute) {
    const Value& of = frame->at(target.slot);
    auto* space = of.kind == Kind::object ? dynamic_cast<Namespace*>(of.object) : nullptr;
    if (space == nullptr) return failed("cannot assign attribute on non-namespace object");
    return set_key(*this, &space->values, target.constant, value);
  }
  KVASIR_TRY(const std::vector<Value> values, collect(*this, value));
  if (values.size() != target.items.size())
    return failed(fmt::format("{} values to unpack, expected {}", values.size(), target.items.size()));
  for (size_t i = 0; i < values.size(); ++i) KVASIR_CHECK(assign(*target.items[i], values[i], frame));
  return {};
}

// ---- statements

Result<void> Render::print(const Value& value, Out* out) {
  if (value.is_text()) {
    *out += value.text();
  } else {
    KVASIR_TRY(const Text text, str_of(*this, value));
    *out += text;
  }
  if (out->size() > kMostOutput) return limit_error(fmt::format("a text of more than {} characters", kMostOutput));
  return {};
}

// Prints the result of a call or filter block, which must be a text. Jinja notices another type only when it joins the
// output at the end, so run() returns this error after all others.
Result<void> Render::print_text(const Value& value, Out* out) {
  if (value.is_text()) return print(value, out);
  if (!late_error_)
    late_error_ = Error{Error::bad_argument, "expected str instance, " + type_name(value) + " found", {}, {}};
  return {};
}

Result<Render::Flow> Render::run_block(const Block& body, Frame* frame, Out* out) {
  for (const Statement& s : body) {
    KVASIR_CHECK(step());
    auto flow = run_statement(s, frame, out);
    if (!flow && flow.error().where.empty()) flow.error().where = fmt::format("line {}", s.line);
    if (!flow || *flow != Flow::on) return flow;
  }
  return Flow::on;
}

Result<Render::Flow> Render::run_statement(const Statement& s, Frame* frame, Out* out) {
  switch (s.kind) {
    case StatementKind::output:
      for (const ExprPtr& expr : s.values) {
        auto evaluated = evaluate(*expr, frame);
        if (!evaluated && is_constant(*expr)) evaluated = fold(*expr, frame);
        KVASIR_TRY(const Value value, std::move(evaluated));
        if (out == whole_) lines_.emplace_back(out->size(), expr->line);
        KVASIR_CHECK(print(value, out));
      }
      return Flow::on;
    case StatementKind::for_loop:
      return run_for(s, frame, out);
    case StatementKind::if_chain:
      return run_if(s, frame, out);
    case StatementKind::set: {
      KVASIR_TRY(const Value value, evaluate(*s.values[0], frame));
      KVASIR_CHECK(assign(*s.targets[0], value, frame));
      return Flow::on;
    }
    case StatementKind::set_block:
    case StatementKind::filter_block:
      return run_captured(s, frame, out);
    case StatementKind::macro:
      frame->at(s.slot) = Value::of_object(heap_->make<Macro>(&s, frame));
      return Flow::on;
    case StatementKind::call_block:
      KVASIR_CHECK(run_call_block(s, frame, out));
      return Flow::on;
    case StatementKind::with:
      return run_with(s, frame, out);
    case StatementKind::break_loop:
      return Flow::leave;
    case StatementKind::continue_loop:
      return Flow::again;
  }
  return Flow::on;
}

Result<Render::Flow> Render::run_if(const Statement& s, Frame* frame, Out* out) {
  for (const Branch& branch : s.branches) {
    if (branch.test) {
      KVASIR_TRY(const Value test, evaluate(*branch.test, frame));
      KVASIR_TRY(const bool holds, truth(*this, test));
      if (!holds) continue;
    }
    return run_block(branch.body, frame, out);
  }
  return Flow::on;
}

Result<Render::Flow> Render::run_with(const Statement& s, Frame* frame, Out* out) {
  Frame* inside = open(s.scope, frame);
  for (size_t i = 0; i < s.targets.size(); ++i) {
    KVASIR_TRY(const Value value, evaluate(*s.values[i], frame));
    KVASIR_CHECK(assign(*s.targets[i], value, inside));
  }
  return run_block(s.body, inside, out);
}

// Runs a block and captures its text, which is filtered and then assigned (set block) or printed (filter block).
Result<Render::Flow> Render::run_captured(const Statement& s, Frame* frame, Out* out) {
  Frame* inside = open(s.scope, frame);
  Out taken;
  KVASIR_TRY(const Flow flow, run_block(s.body, inside, &taken));
  if (flow != Flow::on) return flow;
  Value value = heap_->text(std::move(taken));
  if (s.values[0]) {
    KVASIR_TRY(value, evaluate_filter(*s.values[0], inside, &value));
  }
  if (s.kind == StatementKind::filter_block)
    KVASIR_CHECK(print_text(value, out));
  else
    KVASIR_CHECK(assign(*s.targets[0], value, frame));
  return Flow::on;
}

// ---- loops

Result<Value> Render::filtered(const Statement& s, Frame* frame, const Value& iterable) {
  KVASIR_TRY(Iterator* const items, iterate(*this, iterable));
  Frame* inside = open(s.test_scope, frame);
  return generator(*this, [&s, inside, items](Render& render) -> Result<std::optional<Value>> {
    for (;;) {
      KVASIR_TRY(const std::optional<Value> item, items->next(render));
      if (!item) return item;
      KVASIR_CHECK(render.step());
      KVASIR_CHECK(render.assign(*s.targets[1], *item, inside));
      KVASIR_TRY(const Value test, render.evaluate(*s.values[1], inside));
      KVASIR_TRY(const bool holds, truth(render, test));
      if (holds) return item;
    }
  });
}

Result<Render::Flow> Render::run_for(const Statement& s, Frame* frame, Out* out) {
  KVASIR_TRY(const Value iterable, evaluate(*s.values[0], frame));
  Flow flow = Flow::on;
  KVASIR_CHECK(run_loop(s, frame, iterable, 0, out, &flow));
  return flow;
}

// Sets `flow` if the loop's else breaks or continues the loop around it.
Result<void> Render::run_loop(const Statement& s, Frame* frame, const Value& iterable, int64_t depth, Out* out,
                              Flow* flow) {
  KVASIR_TRY(const Level level, enter());
  Value items = iterable;
  if (s.values[1]) {
    KVASIR_TRY(items, filtered(s, frame, iterable));
  }
  Frame* inside = open(s.scope, frame);
  KVASIR_TRY(Iterator* const source, iterate(*this, items));
  Loop* loop = nullptr;
  if (s.loop >= 0) {
    loop = heap_->make<Loop>(source, length_of(items), depth, &s, frame);
    inside->slots[static_cast<size_t>(s.loop)] = Value::of_object(loop);
  }
  bool is_empty = true;
  for (;;) {
    KVASIR_CHECK(step());
    KVASIR_TRY(const std::optional<Value> item, loop != nullptr ? loop->next(*this) : source->next(*this));
    if (!item) break;
    load(inside);
    KVASIR_CHECK(assign(*s.targets[0], *item, inside));
    KVASIR_TRY(const Flow after, run_block(s.body, inside, out));
    if (after == Flow::leave) break;
    if (after == Flow::on) is_empty = false;  // in Jinja, an item ended by `continue` does not prevent the else
  }
  if (!is_empty || s.otherwise.empty()) return {};
  KVASIR_TRY(*flow, run_block(s.otherwise, open(s.else_scope, frame), out));
  return {};
}

Result<Value> Render::loop_again(const Statement& s, Frame* outer, const Value& iterable, int64_t depth) {
  if (calls_ >= kMostCalls) return limit_error(fmt::format("a loop of more than {} levels", kMostCalls));
  const Level level(&calls_);
  Text text;
  Flow flow = Flow::on;
  KVASIR_CHECK(run_loop(s, outer, iterable, depth, &text, &flow));
  return heap_->text(std::move(text));
}

// ---- macros

Result<void> Render::run_call_block(const Statement& s, Frame* frame, Out* out) {
  const Value caller = Value::of_object(heap_->make<Macro>(&s, frame));
  if (s.values.empty()) {  // a generation block
    KVASIR_TRY(const Value text, call(caller, {}));
    return print(text, out);
  }
  KVASIR_TRY(const Value value, evaluate_call(*s.values[0], frame, &caller));
  return print_text(value, out);
}

Result<Value> Render::call_macro(const Statement& macro, Frame* closure, Arguments arguments) {
  if (calls_ >= kMostCalls) return limit_error(fmt::format("more than {} calls inside one another", kMostCalls));
  const Level level(&calls_);
  Frame* frame = open(macro.scope, closure);
  KVASIR_CHECK(bind_arguments(macro, frame, std::move(arguments)));
  Text text;
  KVASIR_CHECK(run_block(macro.body, frame, &text));
  return heap_->text(std::move(text));
}

Result<void> Render::bind_arguments(const Statement& macro, Frame* frame, Arguments arguments) {
  const Signature& signature = macro.signature;
  const size_t count = signature.parameters.size();
  const auto take = [&](TextView name) {
    for (size_t i = 0; i < arguments.named.size(); ++i) {
      if (!same(arguments.named[i].first, name)) continue;
      const Value value = arguments.named[i].second;
      arguments.named.erase(arguments.named.begin() + static_cast<std::ptrdiff_t>(i));
      return value;
    }
    return Value();
  };
  for (size_t i = 0; i < count; ++i) {
    const Expr& parameter = *signature.parameters[i];
    frame->at(parameter.slot) = i < arguments.at.size() ? arguments.at[i] : take(parameter.name);
  }
  const auto special = [&](int slot, const Value& value) { frame->slots[static_cast<size_t>(slot)] = value; };
  if (signature.caller >= 0) {
    const Value caller = take(U"caller");
    special(signature.caller, caller.is_missing() || caller.is_none() ? heap_->undefined("No caller defined") : caller);
  }
  const std::string name = macro.name.empty() ? "None" : "'" + to_utf8(macro.name) + "'";
  if (signature.kwargs >= 0) {
    std::vector<std::pair<Value, Value>> rest;
    for (auto& [key, value] : arguments.named) rest.emplace_back(heap_->text(key), value);
    special(signature.kwargs, heap_->dict(std::move(rest)));
  } else if (!arguments.named.empty()) {
    return failed(fmt::format("macro {} takes no keyword argument '{}'", name, to_utf8(arguments.named[0].first)));
  }
  if (signature.varargs >= 0) {
    const size_t first = std::min(count, arguments.at.size());
    special(signature.varargs,
            heap_->tuple({arguments.at.begin() + static_cast<std::ptrdiff_t>(first), arguments.at.end()}));
  } else if (arguments.at.size() > count) {
    return failed(fmt::format("macro {} takes not more than {} argument(s)", name, count));
  }
  const size_t without = count - signature.defaults.size();
  for (size_t i = 0; i < count; ++i) {
    const Expr& parameter = *signature.parameters[i];
    if (!frame->at(parameter.slot).is_missing()) continue;
    if (i < without) {
      frame->at(parameter.slot) = heap_->undefined("parameter '" + to_utf8(parameter.name) + "' was not provided");
    } else {
      KVASIR_TRY(frame->at(parameter.slot), evaluate(*signature.defaults[i - without], frame));
    }
  }
  return {};
}

}  // namespace kvasir::jinja
