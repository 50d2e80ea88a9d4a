// Sums, and a binary search for the largest context.
#include "engine/budget_fit.h"

#include <algorithm>

#include "base/buffer.h"

namespace kvasir {

size_t session_activation_bytes(const ModelConfig& config, const CacheShape& shape) {
  const auto angles = static_cast<size_t>(shape.sinks) * static_cast<size_t>(shape.lookahead * config.head_dim);
  return sequence_bytes(config, shape.most_seen()) + angles * sizeof(float);
}

size_t session_bytes(const ModelConfig& config, const LayoutInfo& layout, const CacheShape& shape) {
  return layout.peak_bytes(shape, shape.max_ctx) + session_activation_bytes(config, shape);
}

int positions_that_fit(const ModelConfig& config, const LayoutInfo& layout, CacheShape shape, size_t bytes,
                       size_t kv_bytes) {
  int fits = 0, too_many = shape.max_ctx + 1;
  while (too_many - fits > 1) {
    shape.max_ctx = fits + (too_many - fits) / 2;
    const bool fit =
        session_bytes(config, layout, shape) <= bytes && layout.peak_bytes(shape, shape.max_ctx) <= kv_bytes;
    (fit ? fits : too_many) = shape.max_ctx;
  }
  return fits;
}

int budgeted_chunk(const Footprint& footprint, int asked, int threads, size_t budget, size_t left) {
  constexpr int kLeast = 16;
  const size_t limit = std::min(budget / 8, left / 2);
  int chunk = asked;
  while (budget != 0 && chunk > kLeast && footprint.activation_bytes(chunk, threads) > limit) chunk /= 2;
  return chunk;
}

size_t bytes_in_memory(WeightsMode mode, const WeightSizes& sizes) {
  constexpr size_t kBetween = size_t{64} << 10;
  const auto on_huge_pages = [](size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; };
  if (mode == WeightsMode::mapped) return sizes.all;
  if (mode == WeightsMode::resident) return on_huge_pages(sizes.all);
  const size_t expert = sizes.experts_used == 0 ? 0 : whole_pages(sizes.expert + kBetween);
  return 2 * on_huge_pages(sizes.largest_layer + kBetween) + 2 * static_cast<size_t>(sizes.experts_used) * expert;
}

WeightsMode budgeted_mode(size_t resident_bytes, size_t left) {
  return resident_bytes <= left / 3 * 2 ? WeightsMode::resident : WeightsMode::streamed;
}

}  // namespace kvasir
