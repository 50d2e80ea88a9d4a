// Reading tokenizer.json without a tree in memory: vocabulary and merges go to arenas, the small rest becomes JSON
// values. What the values mean is for tokenizer_byte_json.h and
// tokenizer_spm_json.h to say.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>
#include <nlohmann/json.hpp>

namespace kvasir {

/// A tokenizer.json, read but not yet understood. An 11 MB file takes about 6 MB here.
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

/// Fails on JSON that is wrong, nested over 64 deep, with over a million values outside the vocabulary, or whose
/// vocabulary or merges have another shape.
Result<TokenizerJson> read_tokenizer_json(std::string_view bytes);

}  // namespace kvasir
