// Parses tokenizer.bin.
#include "token/files/llama2c_vocab.h"

#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

namespace kvasir {
namespace {

static_assert(std::endian::native == std::endian::little);

// run.c starts its search for the best pair here: a pair at or below it is never merged.
constexpr float kWorstScore = -1e10f;
constexpr int kMaxVocab = 1 << 24;
constexpr int kUnk = 0;
constexpr int kBos = 1;
constexpr int kFirstByte = 3;

constexpr const char* kWrongTokenizer = "check that this tokenizer belongs to the model";

template <class Value>
bool take(std::string_view& bytes, Value& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

PieceKind kind_of(int id, std::string_view piece) {
  if (id == kUnk) return PieceKind::kUnknown;
  if (id < kFirstByte) return PieceKind::kControl;
  const auto byte = spelled_byte(piece);
  return byte && kFirstByte + *byte == id ? PieceKind::kByte : PieceKind::kNormal;
}

}  // namespace

Result<SpmTables> read_llama2c_vocab(std::string_view bytes, int vocab_size) {
  if (vocab_size <= kFirstByte || vocab_size > kMaxVocab) {
    return fail(Error::unsupported,
                fmt::format("a vocabulary of {} tokens is not in {}..{}", vocab_size, kFirstByte + 1, kMaxVocab));
  }
  const std::size_t size = bytes.size();
  const auto cut_short = [&](int id) {
    return fail(Error::damaged, fmt::format("the file of {} bytes ends inside token {} of {}", size, id, vocab_size),
                {}, kWrongTokenizer);
  };
  SpmTables tables;
  std::uint32_t longest = 0;  // run.c's buffer size, which is not needed here
  if (!take(bytes, longest)) return cut_short(0);
  for (int id = 0; id < vocab_size; ++id) {
    float score = 0;
    std::uint32_t length = 0;
    if (!take(bytes, score) || !take(bytes, length) || length > bytes.size()) return cut_short(id);
    if (!std::isfinite(score)) return fail(Error::damaged, fmt::format("the score of token {} is not finite", id));
    const std::string_view piece = bytes.substr(0, length);
    tables.scores.push_back(score);
    tables.kinds.push_back(kind_of(id, piece));
    KVASIR_CHECK(tables.vocabulary.add_shadowed(piece, id, vocab_size));
    bytes.remove_prefix(length);
  }
  if (!bytes.empty()) {
    return fail(Error::damaged, fmt::format("{} bytes follow the last of {} tokens", bytes.size(), vocab_size), {},
                kWrongTokenizer);
  }
  tables.floor = kWorstScore;
  tables.unk = kUnk;
  tables.fuse_unk = true;
  tables.prefix = {kBos};
  tables.space_before = SpaceBefore::kEvery;
  tables.marks_spaces = false;
  tables.byte_fallback = true;
  return tables;
}

}  // namespace kvasir
