// The registry of layouts and what all of them share.
#include "cache/layout.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kvasir {

#define KVASIR_ENTRY(name) extern const LayoutInfo layout_##name;
#include "generated/layouts.inc"
#undef KVASIR_ENTRY

std::vector<const Codec*> kv_codecs() {
  std::vector<const Codec*> types;
  for (const Codec* codec : codecs())
    if (codec->act == Act::f32) types.push_back(codec);
  return types;
}

std::span<const LayoutInfo* const> layouts() {
#define KVASIR_ENTRY(name) &layout_##name,
  static const LayoutInfo* const list[] = {
#include "generated/layouts.inc"
  };
#undef KVASIR_ENTRY
  return list;
}

Result<const LayoutInfo*> find_layout(std::string_view name) {
  std::vector<std::string_view> names;
  for (const LayoutInfo* info : layouts()) {
    if (info->name == name) return info;
    names.push_back(info->name);
  }
  return fail(fmt::format("\"{}\" is not a cache layout", name), "--cache", fmt::format("{}", fmt::join(names, ", ")));
}

namespace {

// Blocks run along channels within one head, so each head is encoded by itself, padded with zeros to whole blocks.
int64_t encode_row(const Codec& codec, int kv_heads, int head_dim, const float* src, std::byte* dst) {
  if (codec.block_elems == 1) return codec.encode(src, dst, int64_t{kv_heads} * head_dim);
  const int padded = (head_dim + codec.block_elems - 1) / codec.block_elems * codec.block_elems;
  std::vector<float> head(static_cast<size_t>(padded), 0.0f);
  int64_t saturated = 0;
  for (int h = 0; h < kv_heads; ++h) {
    std::copy_n(src + int64_t{h} * head_dim, head_dim, head.begin());
    saturated += codec.encode(head.data(), dst + static_cast<size_t>(h) * codec.row_bytes(head_dim), padded);
  }
  return saturated;
}

}  // namespace

void Layout::write(int layer, int pos, const float* k, const float* v) {
  const Row at = row(layer, pos);
  const int64_t lost = encode_row(*shape_.k, shape_.kv_heads, shape_.head_dim, k, at.k) +
                       encode_row(*shape_.v, shape_.kv_heads, shape_.head_dim, v, at.v);
  if (lost != 0) saturated_ += lost;
}

void append_contiguous_tiles(const std::byte* k, size_t k_stride, const std::byte* v, size_t v_stride, int end,
                             std::vector<Tile>* out) {
  for (int first = 0; first < end; first += kTilePositions) {
    const size_t at = static_cast<size_t>(first);
    out->push_back(Tile{first, live_below(first, end), k + at * k_stride, v + at * v_stride, k_stride, v_stride});
  }
}

}  // namespace kvasir
