// Seams are places where a text can be split without changing the result of merging: between two characters that no
// piece of the vocabulary has side by side. Short runs merge within the CPU's cache; one run of a megabyte would not.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "token/utf8.h"

namespace kvasir {

/// A filter over pairs of adjacent characters: may_join() has false positives, never false negatives. Thread-safe once
/// filled.
class Seams {
 public:
  /// The first character of a text; an ill-formed byte counts as one character.
  struct Char {
    std::uint32_t code;
    std::uint32_t length;
  };
  static Char first(std::string_view text) {
    const Utf8Step step = utf8_step(text);
    if (step.kind == Utf8Kind::kChar) return {step.code, static_cast<std::uint32_t>(step.length)};
    return {0x110000u + static_cast<unsigned char>(text[0]), 1};
  }

  void add(std::string_view piece) {
    for (std::uint32_t left = kNone; !piece.empty();) {
      const Char right = first(piece);
      if (left != kNone) bits_[slot(left, right.code) / 64] |= std::uint64_t{1} << slot(left, right.code) % 64;
      left = right.code;
      piece.remove_prefix(right.length);
    }
  }

  bool may_join(std::uint32_t left, std::uint32_t right) const {
    return (bits_[slot(left, right) / 64] >> slot(left, right) % 64 & 1) != 0;
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr int kBits = 20;  // 128 KB; the largest vocabularies have a tenth as many pairs

  static std::size_t slot(std::uint32_t left, std::uint32_t right) {
    const std::uint64_t pair = std::uint64_t{left} << 32 | right;
    return static_cast<std::size_t>(pair * 0x9E3779B97F4A7C15u >> (64 - kBits));  // Knuth's multiplicative hash
  }

  std::vector<std::uint64_t> bits_ = std::vector<std::uint64_t>((std::size_t{1} << kBits) / 64);
};

}  // namespace kvasir
