// Turns the bytes of tokens into whole UTF-8 characters.
#include <kvasir/tokenizer.h>

#include "token/tokenizer_impl.h"
#include "token/utf8.h"

namespace kvasir {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)), previous_(TokenModel::kMidText) {}

std::string StreamDecoder::push(int id) {
  pending_ += model_of(*tokenizer_).text_after(previous_, id);
  previous_ = id;
  std::string whole;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Step step = utf8_step(rest);
    if (step.kind == Utf8Kind::kIncomplete) break;
    whole += step.kind == Utf8Kind::kChar ? rest.substr(0, step.length) : kReplacement;
    rest.remove_prefix(step.length);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return whole;
}

std::string StreamDecoder::finish() {
  const bool cut = !pending_.empty();
  pending_.clear();
  previous_ = TokenModel::kMidText;
  return cut ? std::string(kReplacement) : std::string();
}

}  // namespace kvasir
