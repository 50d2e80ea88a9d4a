// Text of a file or a person made safe to print in an error. Escapes of a tokenizer's own spelling are in token/utf8.h.
#pragma once

#include <string>
#include <string_view>

namespace kvasir {

/// In double quotes, control characters escaped, cut at 80 bytes.
std::string in_quotes(std::string_view text);

}  // namespace kvasir
