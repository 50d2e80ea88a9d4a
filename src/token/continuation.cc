// Encodes a text that follows known ids.
#include <kvasir/tokenizer.h>

#include <algorithm>
#include <array>
#include <optional>

namespace kvasir {
namespace {

/// A text that follows another, and its spans of data.
struct Following {
  std::string_view text;
  std::span<const TextSpan> data;
};

// Encodes `head_text` and `more` together. Returns the ids after `head` if the ids begin with it, else nullopt.
Result<std::optional<std::vector<int>>> after(const Tokenizer& tokenizer, std::span<const int> head,
                                              const std::string& head_text, const Following& more, bool add_bos) {
  std::vector<TextSpan> data(more.data.begin(), more.data.end());
  for (TextSpan& span : data) span = {.begin = head_text.size() + span.begin, .end = head_text.size() + span.end};
  KVASIR_TRY(const std::vector<int> ids, tokenizer.encode(head_text + std::string(more.text), data, add_bos));
  if (ids.size() < head.size() || !std::equal(head.begin(), head.end(), ids.begin())) return std::nullopt;
  return std::vector<int>(ids.begin() + static_cast<std::ptrdiff_t>(head.size()), ids.end());
}

}  // namespace

Result<std::vector<int>> encode_after(const Tokenizer& tokenizer, std::span<const int> before, std::string_view text,
                                      std::span<const TextSpan> data) {
  if (before.empty()) return tokenizer.encode(text, data);
  if (text.empty()) return std::vector<int>();
  const Following more{.text = text, .data = data};
  // BOS is passed as `add_bos`, not as text: after a token in the text, some encoders do not add the space that opens a
  // text.
  const bool bos = before.front() == tokenizer.bos();
  if (const auto known = tokenizer.decode(before.subspan(bos ? 1 : 0))) {
    KVASIR_TRY(auto rest, after(tokenizer, before, *known, more, bos));
    if (rest) return std::move(*rest);
  }
  // Else encode `text` after a short head whose token does not join with it. Which head works depends on the
  // vocabulary.
  for (const char* head : std::array{"a", "1", ".", "\n"}) {
    KVASIR_TRY(const std::vector<int> ids, tokenizer.encode(head, false));
    KVASIR_TRY(auto rest, after(tokenizer, ids, head, more, false));
    if (rest) return std::move(*rest);
  }
  return tokenizer.encode(text, data, false);
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
