// Parses a template's source to a syntax tree, by Jinja's grammar. scope.h resolves the names afterwards.
#pragma once

#include <string_view>

#include "chat/jinja/ast.h"

namespace kvasir::jinja {

/// Stores constants in `heap`, which must outlive the tree. Errors, with the line: invalid Jinja, tags, filters or
/// tests that are not supported in chat templates, or nesting of more than 64 levels.
Result<Block> parse(TextView source, Heap* heap);

}  // namespace kvasir::jinja
