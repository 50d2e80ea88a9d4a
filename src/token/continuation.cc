// Encoding after a seam.
#include <kvasir/tokenizer.h>

#include <algorithm>
#include <array>
#include <optional>

namespace kvasir {
namespace {

// The ids after `head`, where the ids of its text and `text` together begin with it; else nothing.
Result<std::optional<std::vector<int>>> after(const Tokenizer& tokenizer, std::span<const int> head,
                                              const std::string& whole, bool add_bos) {
  KVASIR_TRY(const std::vector<int> ids, tokenizer.encode(whole, add_bos));
  if (ids.size() < head.size() || !std::equal(head.begin(), head.end(), ids.begin())) return std::nullopt;
  return std::vector<int>(ids.begin() + static_cast<std::ptrdiff_t>(head.size()), ids.end());
}

}  // namespace

Result<std::vector<int>> encode_after(const Tokenizer& tokenizer, std::span<const int> before, std::string_view text) {
  if (before.empty()) return tokenizer.encode(text);
  if (text.empty()) return std::vector<int>();
  // Spelled out, a first token of the file's own would take the place of the space that opens a text after it.
  const bool bos = before.front() == tokenizer.bos();
  if (const auto known = tokenizer.decode(before.subspan(bos ? 1 : 0))) {
    KVASIR_TRY(auto rest, after(tokenizer, before, *known + std::string(text), bos));
    if (rest) return std::move(*rest);
  }
  // A letter, a digit, an end: a token of one of them does not reach into `text`, in one vocabulary or another.
  for (const char* head : std::array{"a", "1", ".", "\n"}) {
    KVASIR_TRY(const std::vector<int> ids, tokenizer.encode(head, false));
    KVASIR_TRY(auto rest, after(tokenizer, ids, head + std::string(text), false));
    if (rest) return std::move(*rest);
  }
  return tokenizer.encode(text, false);
}

std::string visible_text(const std::shared_ptr<const Tokenizer>& tokenizer, std::span<const int> ids) {
  std::string text;
  StreamDecoder decoder(tokenizer);
  for (const int id : ids) {
    const std::string piece = decoder.push(id);
    if (!tokenizer->is_special(id)) text += piece;
  }
  return text;
}

}  // namespace kvasir
