// A template's source to tokens, by the rules of Jinja's lexer with trim_blocks and lstrip_blocks.
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
  Text value;  ///< the data, the name, the decoded string, the operator
  int64_t integer_value = 0;
  double real_value = 0;
};

/// Ends with one of type `end`. Errors: a tag, string or bracket that does not end, a character that begins no token,
/// with the line.
Result<std::vector<Token>> tokenize(TextView source);

}  // namespace kvasir::jinja
