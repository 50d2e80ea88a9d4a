// Compares tiles by address.
#include "arch/shared_tiles.h"

#include <algorithm>

namespace kvasir {
namespace {

bool same_memory(const Tile& a, const Tile& b) {
  return a.k == b.k && a.v == b.v && a.first == b.first && a.live == b.live && a.k_stride == b.k_stride &&
         a.v_stride == b.v_stride;
}

int leading_in_common(std::span<const Tile> a, std::span<const Tile> b) {
  const size_t most = std::min(a.size(), b.size());
  size_t n = 0;
  while (n < most && same_memory(a[n], b[n])) ++n;
  return static_cast<int>(n);
}

}  // namespace

std::vector<SharedTiles> find_shared_tiles(std::span<const std::span<const Tile>> tiles) {
  std::vector<SharedTiles> groups;
  std::vector<bool> grouped(tiles.size());
  std::vector<int> common(tiles.size());
  for (size_t i = 0; i < tiles.size(); ++i) {
    if (grouped[i] || tiles[i].empty()) continue;
    int most = 0;
    for (size_t j = i + 1; j < tiles.size(); ++j) {
      common[j] = grouped[j] ? 0 : leading_in_common(tiles[i], tiles[j]);
      most = std::max(most, common[j]);
    }
    if (most == 0) continue;
    SharedTiles group{{i}, most};
    for (size_t j = i + 1; j < tiles.size(); ++j) {
      if (common[j] == 0 || 2 * common[j] < most) continue;
      grouped[j] = true;
      group.items.push_back(j);
      group.tiles = std::min(group.tiles, common[j]);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace kvasir
