// Walks each frame twice: the first walk finds its variables and their initial values, the second sets the slots of all
// names and descends into inner frames.
#include "chat/jinja/scope.h"

#include <map>
#include <set>

#include "chat/jinja/errors.h"

namespace kvasir::jinja {
namespace {

/// The variables found in a frame so far. Each branch of an if works on a copy; the copies are merged.
struct Symbols {
  const Symbols* outer = nullptr;
  Scope* scope = nullptr;
  std::map<Text, Slot> names;
  std::map<int, Load> loads;  // by slot
  std::set<Text> stores;

  std::optional<Slot> look_up(const Text& name) const {
    for (const Symbols* s = this; s != nullptr; s = s->outer)
      if (const auto at = s->names.find(name); at != s->names.end()) return at->second;
    return {};
  }

  Slot define(const Text& name, Load load) {
    int index = 0;
    const auto count = static_cast<int>(scope->names.size());
    while (index < count && scope->names[static_cast<size_t>(index)] != name) ++index;
    if (index == count) scope->names.push_back(name);
    const Slot slot{scope->level, index};
    names[name] = slot;
    loads[index] = std::move(load);
    return slot;
  }

  void store(const Text& name) {
    stores.insert(name);
    if (names.contains(name)) return;
    const auto from = outer != nullptr ? outer->look_up(name) : std::nullopt;
    define(name, from ? Load{Load::outer, {}, *from} : Load{});
  }

  Slot declare(const Text& name) {
    stores.insert(name);
    return define(name, {Load::argument, {}, {}});
  }

  void load(const Text& name) {
    if (!look_up(name)) define(name, {Load::context, name, {}});
  }

  // A variable that not every branch sets starts with its value in an outer frame or in the context.
  void merge(const std::vector<Symbols>& branches) {
    std::map<Text, size_t> set_by;
    for (const Symbols& branch : branches)
      for (const Text& name : branch.stores)
        if (!stores.contains(name)) ++set_by[name];
    for (const Symbols& branch : branches) {
      for (const auto& [name, slot] : branch.names) names[name] = slot;
      for (const auto& [slot, load] : branch.loads) loads[slot] = load;
      stores.insert(branch.stores.begin(), branch.stores.end());
    }
    for (const auto& [name, count] : set_by) {
      if (count == branches.size()) continue;
      const Slot slot = *look_up(name);
      const auto from = outer != nullptr ? outer->look_up(name) : std::nullopt;
      loads[slot.index] = from ? Load{Load::outer, {}, *from} : Load{Load::context, name, {}};
    }
  }

  void finish() const {
    scope->loads.assign(scope->names.size(), {});
    for (const auto& [slot, load] : loads) scope->loads[static_cast<size_t>(slot)] = load;
  }
};

// ---- walks over the parts of an expression

template <class Visit>
void for_each_part(const Expr& expr, const Visit& visit) {
  const auto one = [&](const ExprPtr& part) {
    if (part) visit(*part);
  };
  for (const ExprPtr& item : expr.items) one(item);
  for (const ExprPtr& item : expr.arguments.at) one(item);
  for (const auto& [name, item] : expr.arguments.named) one(item);
  one(expr.arguments.more_at);
  one(expr.arguments.more_named);
}

void see(const Expr& expr, Symbols* symbols, bool as_parameter = false) {
  if (expr.kind == ExprKind::name) {
    if (as_parameter || expr.is_parameter)
      symbols->declare(expr.name);
    else if (expr.is_target)
      symbols->store(expr.name);
    else
      symbols->load(expr.name);
  } else if (expr.kind == ExprKind::namespace_attribute) {
    symbols->load(expr.name);
  }
  for_each_part(expr, [&](const Expr& part) { see(part, symbols, as_parameter); });
}

void see(const ExprPtr& expr, Symbols* symbols) {
  if (expr) see(*expr, symbols);
}

void see(const Block& block, Symbols* symbols);

// Jinja treats an if as three branches: the first, all others with a test, and else.
void see_if(const Statement& s, Symbols* symbols) {
  see(s.branches[0].test, symbols);
  std::vector<Symbols> seen(3, *symbols);
  see(s.branches[0].body, &seen[0]);
  for (size_t i = 1; i < s.branches.size(); ++i) {
    const Branch& branch = s.branches[i];
    if (!branch.test) {
      see(branch.body, &seen[2]);
      continue;
    }
    see(branch.test, &seen[1]);
    std::vector<Symbols> inner(3, seen[1]);
    see(branch.body, &inner[0]);
    seen[1].merge(inner);
  }
  symbols->merge(seen);
}

void see(const Statement& s, Symbols* symbols) {
  switch (s.kind) {
    case StatementKind::output:
    case StatementKind::call_block:
    case StatementKind::filter_block:
    case StatementKind::with:
      for (const ExprPtr& value : s.values) see(value, symbols);
      break;
    case StatementKind::for_loop:
      see(s.values[0], symbols);
      break;
    case StatementKind::if_chain:
      see_if(s, symbols);
      break;
    case StatementKind::set:
      see(s.values[0], symbols);
      see(s.targets[0], symbols);
      break;
    case StatementKind::set_block:
      see(s.targets[0], symbols);
      break;
    case StatementKind::macro:
      symbols->store(s.name);
      break;
    case StatementKind::break_loop:
    case StatementKind::continue_loop:
      break;
  }
}

void see(const Block& block, Symbols* symbols) {
  for (const Statement& s : block) see(s, symbols);
}

// ---- whether a name is read anywhere inside

bool reads(const Expr& expr, TextView name) {
  if (expr.kind == ExprKind::name && !expr.is_target && expr.name == name) return true;
  bool found = false;
  for_each_part(expr, [&](const Expr& part) { found = found || reads(part, name); });
  return found;
}

bool reads(const Block& block, TextView name);

bool reads(const Statement& s, TextView name) {
  for (const ExprPtr& value : s.values)
    if (value && reads(*value, name)) return true;
  for (const ExprPtr& value : s.signature.defaults)
    if (reads(*value, name)) return true;
  for (const Branch& branch : s.branches)
    if ((branch.test && reads(*branch.test, name)) || reads(branch.body, name)) return true;
  return reads(s.body, name) || reads(s.otherwise, name);
}

bool reads(const Block& block, TextView name) {
  for (const Statement& s : block)
    if (reads(s, name)) return true;
  return false;
}

bool stores(const Expr& expr, TextView name) {
  if (expr.kind == ExprKind::name && expr.is_target && expr.name == name) return true;
  bool found = false;
  for_each_part(expr, [&](const Expr& part) { found = found || stores(part, name); });
  return found;
}

bool stores(const Block& block, TextView name);

bool stores(const Statement& s, TextView name) {
  for (const ExprPtr& target : s.targets)
    if (stores(*target, name)) return true;
  for (const ExprPtr& parameter : s.signature.parameters)
    if (stores(*parameter, name)) return true;
  for (const Branch& branch : s.branches)
    if (stores(branch.body, name)) return true;
  return stores(s.body, name) || stores(s.otherwise, name);
}

bool stores(const Block& block, TextView name) {
  for (const Statement& s : block)
    if (stores(s, name)) return true;
  return false;
}

// ---- slots

// Copies a target: a name, or a tuple of targets.
ExprPtr copy_of(const Expr& target) {
  auto copy = std::make_unique<Expr>();
  copy->kind = target.kind;
  copy->line = target.line;
  copy->name = target.name;
  copy->is_target = true;
  for (const ExprPtr& item : target.items) copy->items.push_back(copy_of(*item));
  return copy;
}

class Resolver {
 public:
  static Result<void> block(Block* body, const Symbols& symbols) {
    for (Statement& s : *body) KVASIR_CHECK(statement(&s, symbols));
    return {};
  }

 private:
  static void name(Expr* expr, const Symbols& symbols) {
    if (expr->kind == ExprKind::name || expr->kind == ExprKind::namespace_attribute)
      expr->slot = *symbols.look_up(expr->name);
    for_each_part(*expr, [&](const Expr& part) { name(const_cast<Expr*>(&part), symbols); });
  }
  static void name(const ExprPtr& expr, const Symbols& symbols) {
    if (expr) name(expr.get(), symbols);
  }

  static Symbols inside(const Symbols& outer, Scope* scope) {
    scope->level = outer.scope->level + 1;
    return {.outer = &outer, .scope = scope, .names = {}, .loads = {}, .stores = {}};
  }

  static Result<void> statement(Statement* s, const Symbols& symbols) {
    switch (s->kind) {
      case StatementKind::for_loop:
        return for_loop(s, symbols);
      case StatementKind::macro:
        s->slot = *symbols.look_up(s->name);
        return function(s, symbols);
      case StatementKind::call_block:
        for (const ExprPtr& value : s->values) name(value, symbols);
        return function(s, symbols);
      case StatementKind::if_chain:
        for (Branch& branch : s->branches) {
          name(branch.test, symbols);
          KVASIR_CHECK(block(&branch.body, symbols));
        }
        return {};
      case StatementKind::set_block:
      case StatementKind::filter_block:
        return captured(s, symbols);
      case StatementKind::with:
        return with(s, symbols);
      default:
        for (const ExprPtr& value : s->values) name(value, symbols);
        for (const ExprPtr& target : s->targets) name(target, symbols);
        return {};
    }
  }

  static Result<void> for_loop(Statement* s, const Symbols& symbols) {
    if (stores(*s, U"loop")) return syntax_error("Can't assign to special loop variable in for-loop target", s->line);
    name(s->values[0], symbols);
    Symbols body = inside(symbols, &s->scope);
    if (s->is_recursive || reads(s->body, U"loop")) s->loop = body.declare(U"loop").index;
    see(*s->targets[0], &body, true);
    see(s->body, &body);
    body.finish();
    name(s->targets[0], body);
    KVASIR_CHECK(block(&s->body, body));
    if (s->values[1]) {
      s->targets.push_back(copy_of(*s->targets[0]));
      Symbols test = inside(symbols, &s->test_scope);
      see(*s->targets[0], &test, true);
      see(*s->values[1], &test);
      test.finish();
      name(s->targets[1], test);
      name(s->values[1], test);
    }
    Symbols otherwise = inside(symbols, &s->else_scope);
    see(s->otherwise, &otherwise);
    otherwise.finish();
    return block(&s->otherwise, otherwise);
  }

  static Result<void> function(Statement* s, const Symbols& symbols) {
    Symbols body = inside(symbols, &s->scope);
    Signature& signature = s->signature;
    const auto see_all = [&] {
      for (const ExprPtr& parameter : signature.parameters) see(*parameter, &body);
      for (const ExprPtr& value : signature.defaults) see(*value, &body);
      see(s->body, &body);
    };
    const auto special = [&](TextView word, int* slot) {
      bool is_parameter = false;
      for (const ExprPtr& parameter : signature.parameters) is_parameter |= parameter->name == word;
      if (!is_parameter && reads(s->body, word)) *slot = body.declare(Text(word)).index;
    };
    see_all();
    const size_t without = signature.parameters.size() - signature.defaults.size();
    for (size_t i = 0; i < without; ++i)
      if (signature.parameters[i]->name == U"caller" && reads(s->body, U"caller"))
        return syntax_error("the parameter \"caller\" must be omitted or have a default", s->line);
    special(U"caller", &signature.caller);
    special(U"kwargs", &signature.kwargs);
    special(U"varargs", &signature.varargs);
    see_all();
    body.finish();
    for (const ExprPtr& parameter : signature.parameters) name(parameter, body);
    for (const ExprPtr& value : signature.defaults) name(value, body);
    return block(&s->body, body);
  }

  // A set or filter block. Its filter is resolved in the body's frame, its target in the outer frame.
  static Result<void> captured(Statement* s, const Symbols& symbols) {
    for (const ExprPtr& target : s->targets) name(target, symbols);
    Symbols body = inside(symbols, &s->scope);
    see(s->body, &body);
    see(s->values[0], &body);
    body.finish();
    name(s->values[0], body);
    return block(&s->body, body);
  }

  static Result<void> with(Statement* s, const Symbols& symbols) {
    for (const ExprPtr& value : s->values) name(value, symbols);
    Symbols body = inside(symbols, &s->scope);
    for (const ExprPtr& target : s->targets) see(*target, &body);
    see(s->body, &body);
    body.finish();
    for (const ExprPtr& target : s->targets) name(target, body);
    return block(&s->body, body);
  }
};

}  // namespace

Result<Scope> resolve_names(Block* body) {
  Scope scope;
  Symbols symbols{.outer = nullptr, .scope = &scope, .names = {}, .loads = {}, .stores = {}};
  see(*body, &symbols);
  symbols.finish();
  KVASIR_CHECK(Resolver::block(body, symbols));
  return scope;
}

}  // namespace kvasir::jinja
