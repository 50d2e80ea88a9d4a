// The trie of added tokens, their white-space and word rules. Source: huggingface/tokenizers, added_vocabulary.rs.
#include "token/added_tokens.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include "token/text_spans.h"
#include "token/utf8.h"

namespace kvasir {
namespace {

std::uint64_t edge(std::uint32_t node, char byte) {
  return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
}

// Returns the character that ends at `end` and begins at or after `floor`; if there is none, its kind is not kChar.
Utf8Step char_before(std::string_view text, std::size_t floor, std::size_t end) {
  if (end <= floor) return {Utf8Kind::kInvalid, 0, 0};
  std::size_t begin = end - 1;
  while (begin > floor && end - begin < 4 && utf8_is_continuation(text[begin])) --begin;
  Utf8Step step = utf8_step(text.substr(begin, end - begin));
  if (begin + step.length != end) step.kind = Utf8Kind::kInvalid;
  return step;
}

// Returns the start, at or after `floor`, of the white space that ends at `end`.
std::size_t space_start(std::string_view text, std::size_t floor, std::size_t end) {
  while (true) {
    const Utf8Step step = char_before(text, floor, end);
    if (step.kind != Utf8Kind::kChar || !unicode_is_space(step.code)) return end;
    end -= step.length;
  }
}

std::size_t space_end(std::string_view text, std::size_t begin) {
  while (begin < text.size()) {
    const Utf8Step step = utf8_step(text.substr(begin));
    if (step.kind != Utf8Kind::kChar || !unicode_is_space(step.code)) break;
    begin += step.length;
  }
  return begin;
}

// \w of Unicode's Technical Standard 18, annex C: alphabetic (its symbols are the circled and squared letters), marks,
// decimal digits, connectors and joiners.
bool is_word(const Utf8Step& step) {
  if (step.kind != Utf8Kind::kChar) return false;
  const char32_t code = step.code;
  const auto within = [code](char32_t low, char32_t high) { return code >= low && code <= high; };
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return within(0x24B6, 0x24E9) || within(0x1F130, 0x1F149) || within(0x1F150, 0x1F169) ||
             within(0x1F170, 0x1F189) || within(0x200C, 0x200D);
  }
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  if (is_word(char_before(text, 0, begin))) return false;
  return end == text.size() || !is_word(utf8_step(text.substr(end)));
}

}  // namespace

void AddedTokenFinder::add(const AddedToken& token, std::string_view content) {
  std::uint32_t node = 0;
  for (const char byte : content) {
    const auto fresh = static_cast<std::uint32_t>(entry_of_node_.size());
    const auto [it, inserted] = children_.emplace(edge(node, byte), fresh);
    if (inserted) entry_of_node_.push_back(-1);
    node = it->second;
  }
  starts_[static_cast<unsigned char>(content[0])] = true;
  entry_of_node_[node] = static_cast<int>(tokens_.size());
  tokens_.push_back({token.id, token.lstrip, token.rstrip, token.single_word});
}

int AddedTokenFinder::entry_at(std::string_view text, std::size_t at, std::size_t& length) const {
  if (!starts_[static_cast<unsigned char>(text[at])]) return -1;
  int found = -1;
  std::uint32_t node = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    const auto it = children_.find(edge(node, text[i]));
    if (it == children_.end()) break;
    node = it->second;
    if (entry_of_node_[node] >= 0) {
      found = entry_of_node_[node];
      length = i + 1 - at;
    }
  }
  return found;
}

std::optional<AddedTokenFinder::Found> AddedTokenFinder::next(std::string_view text, std::size_t from,
                                                              std::span<const TextSpan> data) const {
  if (tokens_.empty()) return std::nullopt;
  auto span = span_after(data, from);
  for (std::size_t at = from; at < text.size(); ++at) {
    if (span != data.end() && at >= span->begin) {
      at = span->end - 1;
      from = span->end;
      ++span;
      continue;
    }
    const std::string_view before_data = span != data.end() ? text.substr(0, span->begin) : text;
    std::size_t length = 0;
    const int entry = entry_at(before_data, at, length);
    if (entry < 0) continue;
    const Entry& token = tokens_[static_cast<std::size_t>(entry)];
    const std::size_t end = at + length;
    if (token.single_word && !stands_alone(text, at, end)) {
      at = end - 1;
      continue;
    }
    return Found{token.lstrip ? space_start(text, from, at) : at, token.rstrip ? space_end(before_data, end) : end,
                 token.id};
  }
  return std::nullopt;
}

std::optional<AddedTokenFinder::Found> AddedTokenFinder::longest_at(std::string_view text, std::size_t at) const {
  std::size_t length = 0;
  const int entry = entry_at(text, at, length);
  if (entry < 0) return std::nullopt;
  return Found{at, at + length, tokens_[static_cast<std::size_t>(entry)].id};
}

Result<AddedTokens> AddedTokens::make(const std::vector<AddedToken>& tokens, int vocab_size,
                                      const std::function<Result<std::string>(std::string_view)>& normalize) {
  AddedTokens made;
  made.flags_.resize(static_cast<std::size_t>(vocab_size), 0);
  for (const AddedToken& token : tokens) {
    if (token.content.empty() || token.content.size() > AddedTokenFinder::kMaxContentBytes) {
      return fail(Error::unsupported, fmt::format("added token {} has {} bytes; 1 to {} are possible", token.id,
                                                  token.content.size(), AddedTokenFinder::kMaxContentBytes));
    }
    made.flags_[static_cast<std::size_t>(token.id)] = token.special ? kSpecial : kAdded;
    if (token.normalized) {
      KVASIR_TRY(const std::string content, normalize(token.content));
      made.normalized_.add(token, content);
    } else {
      made.raw_.add(token, token.content);
    }
  }
  return made;
}

}  // namespace kvasir
