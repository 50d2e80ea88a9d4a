// The codebooks: every entry is the one of ggml's table, entries ascend, and magnitudes are of the levels.
#include "dtype/codebook.h"

#include <algorithm>
#include <functional>
#include <span>

#include <gtest/gtest.h>

#include "dtype/iq2_grids.h"
#include "dtype/iq3_grids.h"

namespace kvasir::codebook {
namespace {

// FNV-1a over the magnitudes' bytes, in the order of ggml's tables.
template <size_t kLevelCount>
uint64_t digest(std::span<const uint16_t> grid, const int (&levels)[kLevelCount]) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint16_t entry : grid) {
    int32_t w[8] = {};
    unpack(entry, levels, 0, 1, w);
    for (int j = 0; j < (kLevelCount == 3 ? 8 : 4); ++j) hash = (hash ^ static_cast<uint64_t>(w[j])) * 0x100000001b3;
  }
  return hash;
}

// The digests were computed from ggml-common.h of ggml-org/llama.cpp, commit de3ff81, by another program.
TEST(Codebook, EntriesAreThoseOfGgml) {
  constexpr int kOf3xxs[] = {4, 12, 20, 28, 36, 44, 52, 62}, kOf3s[] = {1, 3, 5, 7, 9, 11, 13, 15};
  EXPECT_EQ(digest(kGrid256, kLevels2), 0xbb4ee025b5ac6e8eu);
  EXPECT_EQ(digest(kGrid512, kLevels2), 0xc9b1ee61e79909bdu);
  EXPECT_EQ(digest(kGrid1024, kLevels2), 0x123edd38a3b62b90u);
  EXPECT_EQ(digest(kGrid256of3, kOf3xxs), 0xdfa5dc83d6a155d5u);
  EXPECT_EQ(digest(kGrid512of3, kOf3s), 0xfa37020c25b44829u);
}

TEST(Codebook, EntriesAscendAndHaveValidDigits) {
  const auto ascends = [](std::span<const uint16_t> grid) {
    return std::ranges::adjacent_find(grid, std::greater_equal<>()) == grid.end();
  };
  for (const std::span<const uint16_t> grid : {std::span<const uint16_t>(kGrid256), {kGrid512}, {kGrid1024}}) {
    EXPECT_TRUE(ascends(grid));
    for (const unsigned entry : grid) EXPECT_EQ(entry & entry >> 1 & 0x5555u, 0u) << "a digit of 3";
  }
  for (const std::span<const uint16_t> grid : {std::span<const uint16_t>(kGrid256of3), {kGrid512of3}}) {
    EXPECT_TRUE(ascends(grid));
    for (const unsigned entry : grid) EXPECT_LT(entry, 1u << 12);
  }
}

TEST(Codebook, SignsAreEven) {
  for (unsigned seven = 0; seven < 128; ++seven) {
    const auto signs = static_cast<unsigned>(even_signs(seven));
    EXPECT_EQ(std::popcount(signs) % 2, 0);
    EXPECT_EQ(signs & 127, seven);
  }
}

}  // namespace
}  // namespace kvasir::codebook
