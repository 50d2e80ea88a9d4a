// Which variable each name of a template means, decided before it is rendered, as Jinja decides it: a name that a block
// assigns to is the block's own from its first line on, and begins as what it was outside.
#pragma once

#include "chat/jinja/ast.h"

namespace kvasir::jinja {

/// Fills in the slots of all names and the scopes of all statements; returns the outermost scope. Errors: an assignment
/// to `loop`, a parameter `caller` without a default.
Result<Scope> resolve_names(Block* body);

}  // namespace kvasir::jinja
