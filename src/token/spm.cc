// Encoding by best score, and the layout of tokenizer.bin.
#include "token/spm.h"

#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "token/utf8.h"

namespace kvasir {
namespace {

static_assert(std::endian::native == std::endian::little);

// run.c starts its search for the best pair here: a pair at or below it is never merged.
constexpr float kWorstScore = -1e10f;
constexpr int kMaxVocab = 1 << 24;

// The best score gets the smallest priority: IEEE bits made monotone, then turned round.
std::uint32_t priority_of(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0f);  // -0 and +0 are one score
  const std::uint32_t ascending = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

template <class Value>
bool take(std::string_view& bytes, Value& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

// "<0x0A>" spells the byte 10.
std::optional<char> raw_byte(std::string_view piece) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  if (digit(piece[3]) < 0 || digit(piece[4]) < 0) return std::nullopt;
  return static_cast<char>(digit(piece[3]) * 16 + digit(piece[4]));
}

}  // namespace

Result<std::unique_ptr<const TokenModel>> SpmModel::from_llama2c(std::string_view bytes, int vocab_size) {
  if (vocab_size <= kFirstByte || vocab_size > kMaxVocab) {
    return fail(fmt::format("a vocabulary of {} tokens is not in {}..{}", vocab_size, kFirstByte + 1, kMaxVocab));
  }
  const std::size_t size = bytes.size();
  const auto cut_short = [&](int id) {
    return fail(fmt::format("the file of {} bytes ends inside token {} of {}", size, id, vocab_size), {},
                "check that this tokenizer belongs to the model");
  };
  auto model = std::make_unique<SpmModel>();
  std::uint32_t longest = 0;  // run.c's buffer size, which is not needed here
  if (!take(bytes, longest)) return cut_short(0);
  for (int id = 0; id < vocab_size; ++id) {
    float score = 0;
    std::uint32_t length = 0;
    if (!take(bytes, score) || !take(bytes, length) || length > bytes.size()) return cut_short(id);
    if (!std::isfinite(score)) return fail(fmt::format("the score of token {} is not finite", id));
    model->scores_.push_back(score);
    KVASIR_CHECK(model->vocabulary_.add_shadowed(bytes.substr(0, length), id, vocab_size));
    bytes.remove_prefix(length);
  }
  if (!bytes.empty()) {
    return fail(fmt::format("{} bytes follow the last of {} tokens", bytes.size(), vocab_size), {},
                "check that this tokenizer belongs to the model");
  }
  return std::unique_ptr<const TokenModel>(std::move(model));
}

Result<std::vector<int>> SpmModel::encode(std::string_view text, bool add_bos) const {
  std::vector<int> symbols;
  if (!text.empty()) KVASIR_CHECK(append_symbols(" ", 0, symbols));
  for (std::size_t at = 0; at < text.size();) {
    // A lead byte and what continuation bytes follow, at most 4 in all, valid or not.
    std::size_t length = 1;
    while (length < 4 && at + length < text.size() && utf8_is_continuation(text[at + length])) ++length;
    KVASIR_CHECK(append_symbols(text.substr(at, length), at, symbols));
    at += length;
  }
  std::vector<int> ids;
  if (add_bos) ids.push_back(kBos);
  std::string whole;
  MergeQueue queue;
  queue.merge(
      symbols, [&](int left, int right) { return find_merge(left, right, whole); }, ids);
  return ids;
}

Result<void> SpmModel::append_symbols(std::string_view character, std::size_t offset, std::vector<int>& symbols) const {
  if (const auto id = vocabulary_.find(character)) {
    symbols.push_back(*id);
    return {};
  }
  for (std::size_t i = 0; i < character.size(); ++i) {
    const auto byte = static_cast<unsigned char>(character[i]);
    const int id = kFirstByte + byte;
    if (raw_byte(vocabulary_.piece(id)) != character[i]) {
      return fail(fmt::format("byte 0x{:02X} at offset {} has no token in this vocabulary", byte, offset + i), "text",
                  "leave the character out or use another model");
    }
    symbols.push_back(id);
  }
  return {};
}

std::optional<MergeTarget> SpmModel::find_merge(int left, int right, std::string& whole) const {
  whole.assign(vocabulary_.piece(left)).append(vocabulary_.piece(right));
  const auto id = vocabulary_.find(whole);
  if (!id) return std::nullopt;
  const float score = scores_[static_cast<std::size_t>(*id)];
  if (!(score > kWorstScore)) return std::nullopt;
  return MergeTarget{priority_of(score), *id};
}

std::string SpmModel::text(int id) const {
  if (id == kBos || id == kBos + 1) return {};
  const std::string_view piece = vocabulary_.piece(id);
  if (const auto byte = raw_byte(piece)) return std::string(1, *byte);
  return std::string(piece);
}

}  // namespace kvasir
