// Rings, whole pages, and which rows have been overwritten.
#include "cache/reserved.h"

#include <algorithm>

#include "cache/kv_slab.h"

namespace kvasir {
namespace {

int64_t whole_tiles(int64_t positions) { return (positions + kTilePositions - 1) / kTilePositions * kTilePositions; }

size_t pages_of(int rows, size_t row_bytes) {
  const size_t bytes = Slab::product(static_cast<size_t>(rows), row_bytes);
  return bytes > SIZE_MAX / 4 ? SIZE_MAX / 4 : whole_pages(bytes);
}

// a + b, or SIZE_MAX on overflow, which no system can reserve.
size_t sum(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

}  // namespace

int ReservedLayout::Lane::rows(int positions) const {
  return ring == 0 ? positions : std::min(positions, sinks) + std::min(positions, ring);
}

// The ring holds what the oldest query of a pass sees, and the pass itself.
ReservedLayout::Lane ReservedLayout::lane_of(const CacheShape& s, int layer, bool rings) {
  const int window = s.window(layer);
  if (!rings || window == 0) return {};
  const int64_t ring = whole_tiles(int64_t{window} - 1 + s.lookahead);
  if (ring >= s.max_ctx) return {};  // the ring would never wrap
  return {.ring = static_cast<int>(ring), .sinks = s.sinks};
}

size_t ReservedLayout::bytes_for(const CacheShape& s, int positions, bool rings) {
  size_t bytes = 0;
  for (int layer = 0; layer < s.layers; ++layer) {
    const int rows = lane_of(s, layer, rings).rows(positions);
    bytes = sum(bytes, sum(pages_of(rows, s.k_row_bytes()), pages_of(rows, s.v_row_bytes())));
  }
  return bytes;
}

Result<std::unique_ptr<Layout>> ReservedLayout::make(const LayoutInfo& info, const CacheShape& shape) {
  std::unique_ptr<ReservedLayout> layout(new ReservedLayout(info, shape));
  KVASIR_TRY(layout->memory_, Buffer::reserve(bytes_for(shape, shape.max_ctx, info.drops_old), Owner::kv));
  size_t at = 0;
  for (int layer = 0; layer < shape.layers; ++layer) {
    Lane& lane = layout->lanes_.emplace_back(lane_of(shape, layer, info.drops_old));
    lane.k = at;
    lane.v = lane.k + pages_of(lane.rows(shape.max_ctx), shape.k_row_bytes());
    at = lane.v + pages_of(lane.rows(shape.max_ctx), shape.v_row_bytes());
  }
  return layout;
}

Result<std::unique_ptr<Layout::Growth>> ReservedLayout::prepare(int end) const {
  if (end > shape().max_ctx) return past_context(end, shape().max_ctx);
  if (end <= capacity_) return std::unique_ptr<Growth>();
  auto extent = std::make_unique<Extent>();
  extent->end = end;
  return extent;
}

void ReservedLayout::apply(std::unique_ptr<Growth> growth) {
  if (growth == nullptr) return;
  capacity_ = static_cast<Extent&>(*growth).end;
  const size_t before = memory_.bytes();
  memory_.charge(bytes_for(shape(), capacity_, info_.drops_old));
  growths_ += memory_.bytes() != before ? 1 : 0;
}

Layout::Row ReservedLayout::row(int layer, int pos) {
  const Lane& at = lane(layer);
  int before = written_.load(std::memory_order_relaxed);
  while (at.ring != 0 && before <= pos && !written_.compare_exchange_weak(before, pos + 1, std::memory_order_relaxed)) {
  }
  const auto index = static_cast<size_t>(at.row_of(pos));
  return {memory_.data() + at.k + index * shape().k_row_bytes(), memory_.data() + at.v + index * shape().v_row_bytes()};
}

Tile ReservedLayout::tile_at(const Lane& at, int first, int row, uint64_t live) const {
  const size_t k_row = shape().k_row_bytes(), v_row = shape().v_row_bytes(), index = static_cast<size_t>(row);
  return {first, live, memory_.data() + at.k + index * k_row, memory_.data() + at.v + index * v_row, k_row, v_row};
}

// Old and new tile may map to the same ring rows; each tile's mask marks only the rows that still hold its own
// positions.
void ReservedLayout::tiles(int layer, int end, std::vector<Tile>* out) const {
  const Lane& at = lane(layer);
  if (at.sinks > 0 && end > 0) out->push_back(tile_at(at, 0, 0, live_below(0, std::min(at.sinks, end))));
  const int from = at.ring == 0 ? 0 : oldest(layer, std::max(end, written_.load(std::memory_order_relaxed)));
  for (int first = from / kTilePositions * kTilePositions; first < end; first += kTilePositions)
    if (const uint64_t live = live_below(first, end) & ~live_below(first, from); live != 0)
      out->push_back(tile_at(at, first, at.tile_row(first), live));
}

int ReservedLayout::oldest(int layer, int written) const {
  const Lane& at = lane(layer);
  return at.ring == 0 ? floor(layer) : std::max({at.sinks, floor(layer), written - at.ring});
}

int ReservedLayout::oldest(int layer) const { return oldest(layer, written_.load(std::memory_order_relaxed)); }

void ReservedLayout::cut(int length) { length_ = written_ = length; }

}  // namespace kvasir
