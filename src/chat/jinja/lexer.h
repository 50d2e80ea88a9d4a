// Splits a template's source into tokens, as Jinja's lexer does with trim_blocks and lstrip_blocks.
#pragma once

#include <string_view>
#include <vector>

#include <kvasir/result.h>

#include "chat/jinja/text.h"

namespace kvasir::jinja {

struct Token {
  enum Type { data, variable_begin, variable_end, block_begin, block_end, name, text, integer, real, op, end };
  Type type = end;
  int line = 1;
  Text value;  ///< data, name, decoded string or operator
  int64_t integer_value = 0;
  double real_value = 0;
};

/// The last token has type `end`. Errors, with the line: a comment, raw block or string without an end, an unmatched
/// bracket, a character that begins no token.
Result<std::vector<Token>> tokenize(TextView source);

}  // namespace kvasir::jinja
