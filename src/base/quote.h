// Makes text from a file or a user safe to print in an error. token/utf8.h has the escapes of tokenizers.
#pragma once

#include <string>
#include <string_view>

namespace kvasir {

/// The text in double quotes, control characters escaped, truncated to 80 bytes.
std::string in_quotes(std::string_view text);

}  // namespace kvasir
