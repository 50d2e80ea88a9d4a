// The ids of a text that goes on after ids which stay as they are.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/tokenizer.h>

namespace kvasir {

/// The ids of `text` where it follows the text of `before`, so that `before` and they are one sequence. They are those
/// of the whole text where that begins with `before`. Where it does not (a model may spell a text in other tokens than
/// the encoder would, or a token would reach over the seam), they are those that `text` has in the middle of some other
/// text. An empty `before` is the start of a text, with its first token. Errors: those of Tokenizer::encode.
Result<std::vector<int>> encode_after(const Tokenizer& tokenizer, std::span<const int> before, std::string_view text);

/// The text of `ids` for a reader: whole characters, no control tokens.
std::string visible_text(const std::shared_ptr<const Tokenizer>& tokenizer, std::span<const int> ids);

}  // namespace kvasir
