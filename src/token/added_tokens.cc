// The trie of added tokens and their white-space rules. Source: huggingface/tokenizers, added_vocabulary.rs.
#include "token/added_tokens.h"

#include "token/utf8.h"

namespace kvasir {
namespace {

std::uint64_t edge(std::uint32_t node, char byte) {
  return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
}

// Where the white space that ends at `end` begins, not before `floor`.
std::size_t space_start(std::string_view text, std::size_t floor, std::size_t end) {
  while (end > floor) {
    std::size_t begin = end - 1;
    while (begin > floor && end - begin < 4 && utf8_is_continuation(text[begin])) --begin;
    const Utf8Step step = utf8_step(text.substr(begin, end - begin));
    if (step.kind != Utf8Kind::kChar || begin + step.length != end || !unicode_is_space(step.code)) break;
    end = begin;
  }
  return end;
}

std::size_t space_end(std::string_view text, std::size_t begin) {
  while (begin < text.size()) {
    const Utf8Step step = utf8_step(text.substr(begin));
    if (step.kind != Utf8Kind::kChar || !unicode_is_space(step.code)) break;
    begin += step.length;
  }
  return begin;
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
  tokens_.push_back({token.id, token.lstrip, token.rstrip});
}

int AddedTokenFinder::longest_at(std::string_view text, std::size_t at, std::size_t& length) const {
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

std::optional<AddedTokenFinder::Found> AddedTokenFinder::next(std::string_view text, std::size_t from) const {
  if (tokens_.empty()) return std::nullopt;
  for (std::size_t at = from; at < text.size(); ++at) {
    if (!starts_[static_cast<unsigned char>(text[at])]) continue;
    std::size_t length = 0;
    const int entry = longest_at(text, at, length);
    if (entry < 0) continue;
    const Entry& token = tokens_[static_cast<std::size_t>(entry)];
    const std::size_t end = at + length;
    return Found{token.lstrip ? space_start(text, from, at) : at, token.rstrip ? space_end(text, end) : end, token.id};
  }
  return std::nullopt;
}

}  // namespace kvasir
