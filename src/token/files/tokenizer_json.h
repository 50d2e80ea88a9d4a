// Reads tokenizer.json without a tree in memory: vocabulary and merges go to an arena, the small rest becomes JSON
// values. tokenizer_byte_json.h and tokenizer_spm_json.h interpret the values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>
#include <nlohmann/json.hpp>

namespace kvasir {

/// A tokenizer.json, read but not yet interpreted. An 11 MB file takes about 6 MB here.
struct TokenizerJson {
  struct Piece {
    std::uint32_t begin;
    std::uint32_t length;
    std::int64_t id;
  };
  /// The right half follows the left one in the arena.
  struct Merge {
    std::uint32_t begin;
    std::uint32_t left_length;
    std::uint32_t right_length;
  };
  std::string arena;
  std::vector<Piece> vocab;    ///< model.vocab
  std::vector<Merge> merges;   ///< model.merges, in order
  bool vocab_is_list = false;  ///< model.vocab is not a map (Unigram); its content was skipped
  bool has_merges = false;
  nlohmann::json rest;  ///< the file without model.vocab and model.merges

  std::string_view text(std::uint32_t begin, std::uint32_t length) const {
    return std::string_view(arena).substr(begin, length);
  }
};

/// Fails on JSON that is invalid, nested over 64 deep, has over a million values outside vocabulary and merges, or
/// whose vocabulary or merges have the wrong shape.
Result<TokenizerJson> read_tokenizer_json(std::string_view bytes);

}  // namespace kvasir
