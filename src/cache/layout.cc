// The registry of layouts, and the parts of Layout that all of them share.
#include "cache/layout.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cache/kv_slab.h"

namespace kvasir {

#define KVASIR_ENTRY(name) extern const LayoutInfo layout_##name;
#include "generated/layouts.inc"
#undef KVASIR_ENTRY

std::span<const LayoutInfo* const> layouts() {
#define KVASIR_ENTRY(name) &layout_##name,
  static const LayoutInfo* const list[] = {
#include "generated/layouts.inc"
  };
#undef KVASIR_ENTRY
  return list;
}

namespace {

std::vector<const LayoutInfo*>& added_layouts() {
  static std::vector<const LayoutInfo*> list;
  return list;
}

}  // namespace

void add_layout(const LayoutInfo& info) { added_layouts().push_back(&info); }

Result<const LayoutInfo*> find_layout(std::string_view name) {
  for (const LayoutInfo* info : added_layouts())
    if (info->name == name) return info;
  std::vector<std::string_view> names;
  for (const LayoutInfo* info : layouts()) {
    if (info->name == name) return info;
    names.push_back(info->name);
  }
  return fail(Error::bad_argument, fmt::format("\"{}\" is not a cache layout", name), "SessionOptions::layout",
              fmt::format("{}", fmt::join(names, ", ")));
}

namespace {

// Quantisation blocks never cross heads: a head whose size is not a multiple of the block is padded with zeros.
int64_t encode_row(const Codec& codec, int kv_heads, int head_dim, const float* src, std::byte* dst) {
  if (head_dim % codec.block_elems == 0) return codec.encode_kv(src, dst, int64_t{kv_heads} * head_dim);
  const int padded = (head_dim + codec.block_elems - 1) / codec.block_elems * codec.block_elems;
  std::vector<float> head(static_cast<size_t>(padded), 0.0f);
  int64_t saturated = 0;
  for (int h = 0; h < kv_heads; ++h) {
    std::copy_n(src + int64_t{h} * head_dim, head_dim, head.begin());
    saturated += codec.encode_kv(head.data(), dst + static_cast<size_t>(h) * codec.row_bytes(head_dim), padded);
  }
  return saturated;
}

}  // namespace

void Layout::write(int layer, int pos, const float* k, const float* v) {
  const Row at = row(layer, pos);
  const int64_t lost = encode_row(*shape_.k->codec, shape_.kv_heads, shape_.head_dim, k, at.k) +
                       encode_row(*shape_.v->codec, shape_.kv_heads, shape_.head_dim, v, at.v);
  if (lost != 0) saturated_ += lost;
}

std::string CacheShape::window_policy() const {
  const std::string_view kind = long_rope ? " long_rope" : "";
  if (std::all_of(windows.begin(), windows.end(), [](int window) { return window == 0; }))
    return std::string("none").append(kind);
  const bool same = std::all_of(windows.begin(), windows.end(), [&](int window) { return window == windows[0]; });
  std::string text = same ? std::to_string(windows[0]) : fmt::format("{}", fmt::join(windows, ","));
  return (sinks > 0 ? fmt::format("{} sinks {}", text, sinks) : text).append(kind);
}

int CacheShape::most_seen() const {
  int most = windows.empty() ? max_ctx : 0;
  for (const int window : windows) most = std::max(most, window == 0 ? max_ctx : std::min(window + sinks, max_ctx));
  return most;
}

bool CacheShape::goes_on_from(int layer, int length, int oldest) const {
  const int seen = window(layer) == 0 ? 0 : std::max(sinks, length - window(layer) + 1);
  return seen >= length || oldest <= seen;
}

size_t bytes_of_positions(const CacheShape& shape, int64_t positions) {
  return Slab::product(static_cast<size_t>(positions), shape.position_bytes());
}

tl::unexpected<Error> past_context(int end, int max_ctx) {
  return fail(Error::too_long, fmt::format("{} positions asked for, the cache may hold {}", end, max_ctx), "KV cache",
              "a larger SessionOptions::ctx or a shorter prompt");
}

Result<void> Layout::check_length(int length) const {
  if (length < 0 || length > coverage())
    return fail(Error::bad_argument, fmt::format("cannot truncate to {} positions, {} are held", length, coverage()),
                "KV cache", fmt::format("0..{}", coverage()));
  for (int layer = 0; layer < shape_.layers; ++layer)
    if (!shape_.goes_on_from(layer, length, oldest(layer)))
      return fail(Error::bad_argument,
                  fmt::format("cannot truncate to {} positions: those before {} are forgotten, and the window of {} "
                              "needs them",
                              length, oldest(layer), shape_.window(layer)),
                  "KV cache", "an empty sequence, or another SessionOptions::layout");
  return {};
}

Result<void> Layout::truncate(int length) {
  KVASIR_CHECK(check_length(length));
  for (int layer = 0; layer < shape_.layers; ++layer)
    floors_[static_cast<size_t>(layer)] = std::min(length, oldest(layer));
  cut(length);
  return {};
}

Result<void> Layout::restore(int length, std::span<const int> oldest,
                             const std::function<Result<void>(Layout&)>& fill) {
  KVASIR_TRY(auto room, prepare(length));
  apply(std::move(room));
  if (auto filled = fill(*this); !filled) {
    cut(0);
    return filled;
  }
  hold(length, oldest);
  return {};
}

void Layout::hold(int length, std::span<const int> oldest) {
  for (size_t layer = 0; layer < floors_.size(); ++layer) floors_[layer] = std::min(length, oldest[layer]);
  commit(length);
}

namespace {

// Copies the rows of the first `length` positions. Requires: `to` has room for them.
void copy_rows(const Layout& from, int length, Layout* to) {
  const CacheShape& shape = from.shape();
  std::vector<Tile> tiles;
  for (int layer = 0; layer < shape.layers; ++layer) {
    tiles.clear();
    from.tiles(layer, length, &tiles);
    for (const Tile& tile : tiles)
      for (uint64_t live = tile.live; live != 0; live &= live - 1) {
        const int i = std::countr_zero(live);
        const Layout::Row row = to->row(layer, tile.first + i);
        std::memcpy(row.k, tile.k + static_cast<size_t>(i) * tile.k_stride, shape.k_row_bytes());
        std::memcpy(row.v, tile.v + static_cast<size_t>(i) * tile.v_stride, shape.v_row_bytes());
      }
  }
}

}  // namespace

Result<void> Layout::adopt(const Layout& from, int length) {
  KVASIR_CHECK(from.check_length(length));
  if (length > shape_.max_ctx) return past_context(length, shape_.max_ctx);
  std::vector<int> oldest;
  for (int layer = 0; layer < shape_.layers; ++layer) oldest.push_back(from.oldest(layer));
  if (share(from, length)) {
    hold(length, oldest);
  } else {
    KVASIR_CHECK(restore(length, oldest, [&](Layout& self) -> Result<void> {
      copy_rows(from, length, &self);
      return {};
    }));
  }
  saturated_ += from.saturated();
  return {};
}

void append_contiguous_tiles(const std::byte* k, size_t k_stride, const std::byte* v, size_t v_stride, int end,
                             std::vector<Tile>* out) {
  for (int first = 0; first < end; first += kTilePositions) {
    const size_t at = static_cast<size_t>(first);
    out->push_back(Tile{first, live_below(first, end), k + at * k_stride, v + at * v_stride, k_stride, v_stride});
  }
}

}  // namespace kvasir
