// Resolves the names of a template to variables before rendering, by Jinja's rules: a name that a block assigns to is
// local to the whole block, and starts with the value it has outside.
#pragma once

#include "chat/jinja/ast.h"

namespace kvasir::jinja {

/// Fills in the slots of all names and the scopes of all statements; returns the outermost scope. Errors: an assignment
/// to `loop`, a parameter `caller` without a default.
Result<Scope> resolve_names(Block* body);

}  // namespace kvasir::jinja
