// Tokens to a tree, by Jinja's grammar. Names are not resolved yet: scope.h does that.
#pragma once

#include <string_view>

#include "chat/jinja/ast.h"

namespace kvasir::jinja {

/// Constants go to `heap`, which the tree needs for its life. Errors: what Jinja's own parser refuses, tags and filters
/// that a chat template may not have (by name), nesting of more than 64 levels; each with its line.
Result<Block> parse(TextView source, Heap* heap);

}  // namespace kvasir::jinja
