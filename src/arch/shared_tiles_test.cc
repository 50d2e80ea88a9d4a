// Grouping of made-up tiles.
#include "arch/shared_tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvasir {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Finds groups among sequences of tiles; each tile is given as the number of its block.
std::vector<SharedTiles> find(const std::vector<std::vector<int>>& sequences) {
  static const std::vector<std::byte> memory(1000);
  std::vector<std::vector<Tile>> tiles;
  for (const std::vector<int>& blocks : sequences) {
    tiles.emplace_back();
    for (const int block : blocks)
      tiles.back().push_back({static_cast<int>(tiles.back().size()) * kTilePositions, ~uint64_t{0},
                              memory.data() + 2 * block, memory.data() + 2 * block + 1, 8, 8});
  }
  const std::vector<std::span<const Tile>> spans(tiles.begin(), tiles.end());
  return find_shared_tiles(spans);
}

TEST(SharedTiles, NothingInCommonIsNoGroup) {
  EXPECT_THAT(find({}), IsEmpty());
  EXPECT_THAT(find({{1, 2, 3}}), IsEmpty());
  EXPECT_THAT(find({{1, 2}, {3, 2}, {}, {}}), IsEmpty()) << "the first tile differs";
}

TEST(SharedTiles, AGroupHasWhatAllOfItHave) {
  const auto groups = find({{1, 2, 3, 4}, {1, 2, 3, 5}, {9}, {1, 2, 6}, {1, 2, 3}});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_THAT(groups[0].items, ElementsAre(0, 1, 3, 4));
  EXPECT_EQ(groups[0].tiles, 2);
}

TEST(SharedTiles, AFewTilesInCommonDoNotPartThoseWithMany) {
  const auto groups = find({{1, 2, 3, 4, 5}, {1, 7, 8, 9}, {1, 2, 3, 4, 6}, {1, 7, 8}, {1}});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(groups[0].items, ElementsAre(0, 2));
  EXPECT_EQ(groups[0].tiles, 4);
  EXPECT_THAT(groups[1].items, ElementsAre(1, 3));
  EXPECT_EQ(groups[1].tiles, 3);
}

TEST(SharedTiles, EverythingAboutATileMustBeTheSame) {
  static const std::byte memory[8]{};
  const Tile tile{0, 7, memory, memory + 1, 8, 16};
  for (int field = 0; field < 7; ++field) {
    Tile other = tile;
    if (field == 1) other.first = 64;
    if (field == 2) other.live = 3;
    if (field == 3) other.k = memory + 2;
    if (field == 4) other.v = memory + 2;
    if (field == 5) other.k_stride = 16;
    if (field == 6) other.v_stride = 8;
    const std::vector<std::span<const Tile>> spans{{&tile, 1}, {&other, 1}};
    EXPECT_EQ(find_shared_tiles(spans).size(), field == 0 ? 1u : 0u) << field;
  }
}

}  // namespace
}  // namespace kvasir
