// The plain model with which every layout is compared: rows in a std::vector, encoded head by head. It knows the
// codec's contract, not layouts. A Sequence drives a layout and its model side by side.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/buffer.h"
#include "cache/kv_type.h"
#include "cache/layout.h"

namespace kvasir::conformance {

// ---- cases ------------------------------------------------------------------------------------------------------

struct Case {
  const LayoutInfo* layout;
  const KvType* type;

  std::string name() const { return fmt::format("{}_{}", layout->name, type->name); }
};

/// The types that store heads unrotated: a layout sees no rotation.
inline std::vector<const KvType*> plain_kv_types() {
  std::vector<const KvType*> all;
  for (const KvType& type : kv_types())
    if (!type.rotated) all.push_back(&type);
  return all;
}

inline std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name(); }

/// Every layout of the build with every type that K and V may have.
inline std::vector<Case> cases() {
  std::vector<Case> all;
  for (const LayoutInfo* layout : layouts())
    for (const KvType* type : plain_kv_types()) all.push_back({layout, type});
  return all;
}

/// Uniform in [0, n), the same on every standard library.
inline int below(std::mt19937& random, int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); }

// ---- values -----------------------------------------------------------------------------------------------------

/// The place of a channel. `version` counts how often its position was rewritten.
struct Place {
  int version, layer, pos, head, channel;
  bool is_v;
};
using ValueAt = std::function<float(const Place&)>;

inline int64_t place_id(const CacheShape& s, const Place& p) {
  const int64_t row = (int64_t{p.version} * s.layers + p.layer) * s.max_ctx + p.pos;
  return ((row * s.kv_heads + p.head) * s.head_dim + p.channel) * 2 + (p.is_v ? 1 : 0);
}

/// Values of one codec that differ for every id and stay different when stored: all finite codes of a 16-bit type in a
/// scattered order, whole numbers for wider ones. A block type cannot hold them, so its values are noise in [-1, 1).
class DistinctValues {
 public:
  explicit DistinctValues(const Codec& codec) {
    noise_ = codec.block_elems != 1 || codec.block_bytes < 2;
    if (codec.block_elems != 1 || codec.block_bytes != 2) return;
    for (uint32_t code = 0; code < 0x10000; ++code) {
      const uint16_t bits = static_cast<uint16_t>(code);
      float x = 0;
      codec.decode(reinterpret_cast<const std::byte*>(&bits), &x, 1);
      if (std::isfinite(x) && !(x == 0 && std::signbit(x))) table_.push_back(x);
    }
    while (std::gcd(stride_, static_cast<int64_t>(table_.size())) != 1) ++stride_;
  }

  float operator()(int64_t id) const {
    if (!table_.empty()) return table_[static_cast<size_t>(id * stride_ % static_cast<int64_t>(table_.size()))];
    if (!noise_) return static_cast<float>(id + 1);
    uint64_t x = static_cast<uint64_t>(id + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return static_cast<float>(static_cast<int32_t>(x >> 40) - (1 << 23)) * 0x1p-23f;
  }
  /// Number of ids that have a value of their own.
  int64_t count() const { return !table_.empty() ? static_cast<int64_t>(table_.size()) : int64_t{1} << 24; }

 private:
  bool noise_ = false;
  int64_t stride_ = 25'033;
  std::vector<float> table_;
};

inline ValueAt distinct_values(const CacheShape& shape) {
  return [shape, k = DistinctValues(*shape.k->codec), v = DistinctValues(*shape.v->codec)](const Place& p) {
    return (p.is_v ? v : k)(place_id(shape, p));
  };
}

inline constexpr int kMaxRow = 256;  // upper bound on the floats of a row in these tests, padding included

// ---- rows -------------------------------------------------------------------------------------------------------

inline int padded(const Codec& codec, int n) {
  return (n + codec.block_elems - 1) / codec.block_elems * codec.block_elems;
}

/// Writes a row of heads as stored: each head on its own, zero-padded to whole blocks.
inline void encode_heads(const Codec& codec, const CacheShape& s, const float* row, std::byte* dst) {
  std::array<float, kMaxRow> head{};
  for (int h = 0; h < s.kv_heads; ++h) {
    std::copy_n(row + int64_t{h} * s.head_dim, s.head_dim, head.begin());
    codec.encode_kv(head.data(), dst + static_cast<size_t>(h) * codec.row_bytes(s.head_dim), padded(codec, s.head_dim));
  }
}

/// Decodes a stored row to kv_heads * head_dim floats.
inline void decode_heads(const Codec& codec, const CacheShape& s, const std::byte* row, float* dst) {
  std::array<float, kMaxRow> head{};
  for (int h = 0; h < s.kv_heads; ++h) {
    codec.decode(row + static_cast<size_t>(h) * codec.row_bytes(s.head_dim), head.data(), padded(codec, s.head_dim));
    std::copy_n(head.begin(), s.head_dim, dst + int64_t{h} * s.head_dim);
  }
}

/// True if two stored rows decode to the same bits.
inline bool same_rows(const Codec& codec, const CacheShape& s, const std::byte* a, const std::byte* b) {
  std::array<float, kMaxRow> x, y;
  decode_heads(codec, s, a, x.data());
  decode_heads(codec, s, b, y.data());
  return std::memcmp(x.data(), y.data(), static_cast<size_t>(s.kv_heads * s.head_dim) * sizeof(float)) == 0;
}

/// True if the query sees the position. An independent definition, for one position at a time.
inline bool is_seen(int query, int pos, int window, int sinks) {
  return pos <= query && (window == 0 || pos > query - window || pos < sinks);
}

// ---- a layout and its model side by side --------------------------------------------------------------------------

/// Everything that a refused or dropped request must leave unchanged.
struct State {
  int coverage, capacity, growths;
  size_t bytes, peak_bytes, copied_rows, live;
  std::vector<float> rows;
  bool operator==(const State&) const = default;
};

class Sequence {
 public:
  Sequence(std::unique_ptr<Layout> made, ValueAt value) : layout(std::move(made)), value_(std::move(value)) {}

  /// Appends `count` positions in one pass: prepare, apply, write all layers, commit.
  void append(int count) {
    const int first = layout->coverage(), end = first + count;
    room(end);
    write(first, end);
    layout->commit(end);
    length = end;
  }
  void room(int end) {
    auto growth = layout->prepare(end);
    ASSERT_TRUE(growth) << growth.error().message();
    layout->apply(std::move(*growth));
    ASSERT_GE(layout->capacity(), end);
  }
  void write(int first, int end) {
    const CacheShape& s = layout->shape();
    resize(end);
    std::vector<float> k, v;
    for (int layer = 0; layer < s.layers; ++layer)
      for (int pos = first; pos < end; ++pos) {
        floats(layer, pos, false, &k);
        floats(layer, pos, true, &v);
        layout->write(layer, pos, k.data(), v.data());
        encode_heads(*s.k->codec, s, k.data(),
                     k_[static_cast<size_t>(layer)].data() + static_cast<size_t>(pos) * s.k_row_bytes());
        encode_heads(*s.v->codec, s, v.data(),
                     v_[static_cast<size_t>(layer)].data() + static_cast<size_t>(pos) * s.v_row_bytes());
      }
  }
  /// Rows written after this differ from those removed. Requires: 0 <= n <= length.
  void truncate(int n) {
    const auto done = layout->truncate(n);
    ASSERT_TRUE(done) << done.error().message();
    length = n;
    resize(n);
    ++version;
  }
  void end_step() {
    layout->end_step();
    if (layout->info().recomputes) length = 0;
    resize(length);
  }

  /// Fills `row` with the values to write at a position.
  void floats(int layer, int pos, bool is_v, std::vector<float>* row) const {
    const CacheShape& s = layout->shape();
    row->clear();
    for (int h = 0; h < s.kv_heads; ++h)
      for (int c = 0; c < s.head_dim; ++c) row->push_back(value_({version, layer, pos, h, c, is_v}));
  }
  /// The model's rows from position 0 on, contiguous, as they must be stored.
  const std::byte* k_rows(int layer) const { return k_[static_cast<size_t>(layer)].data(); }
  const std::byte* v_rows(int layer) const { return v_[static_cast<size_t>(layer)].data(); }

  /// Describes what is wrong with the tiles of [0, end); "" if they hold exactly the model's rows.
  std::string wrong(int layer, int end) const {
    std::vector<Tile> tiles(1);  // tiles() appends
    layout->tiles(layer, end, &tiles);
    if (tiles.size() != 1 + static_cast<size_t>((end + 63) / 64)) return fmt::format("{} tiles", tiles.size() - 1);
    for (size_t j = 1; j < tiles.size(); ++j) {
      if (const std::string text = wrong_tile(layer, end, static_cast<int>(j - 1) * 64, tiles[j]); !text.empty())
        return text;
    }
    return {};
  }
  std::string wrong(int end) const {
    std::string text;
    for (int layer = 0; layer < layout->shape().layers && text.empty(); ++layer) text = wrong(layer, end);
    return text;
  }

  /// Returns "" if the tiles hold every row that the next query sees, and no wrong row.
  std::string wrong_for_the_next() const {
    for (int layer = 0; layer < layout->shape().layers; ++layer)
      if (const std::string text = wrong_for_the_next(layer); !text.empty())
        return fmt::format("layer {}: {}", layer, text);
    return {};
  }
  /// Adopts the first n positions into another cache, which continues with other values.
  Sequence adopted(std::unique_ptr<Layout> other, int n) const {
    const auto done = other->adopt(*layout, n);
    EXPECT_TRUE(done) << done.error().message();
    return copied(std::move(other), n);
  }
  /// A Sequence for `other`, which already holds the first n positions; it continues with other values.
  Sequence copied(std::unique_ptr<Layout> other, int n) const {
    Sequence copy(std::move(other), value_);
    copy.k_ = k_;
    copy.v_ = v_;
    copy.resize(n);
    copy.length = n;
    copy.version = version + 1;
    return copy;
  }

  State state() const {
    State s{layout->coverage(),   layout->capacity(),    layout->growths(),     layout->bytes(),
            layout->peak_bytes(), layout->copied_rows(), live_bytes(Owner::kv), {}};
    const CacheShape& shape = layout->shape();
    std::vector<Tile> tiles;
    for (int layer = 0; layer < shape.layers; ++layer) layout->tiles(layer, s.coverage, &tiles);
    for (const Tile& tile : tiles)
      for (size_t i = 0; i < 64; ++i) {
        if ((tile.live >> i & 1) == 0) continue;
        std::array<float, kMaxRow> row;
        const auto end = row.begin() + int64_t{shape.kv_heads} * shape.head_dim;
        decode_heads(*shape.k->codec, shape, tile.k + i * tile.k_stride, row.data());
        s.rows.insert(s.rows.end(), row.begin(), end);
        decode_heads(*shape.v->codec, shape, tile.v + i * tile.v_stride, row.data());
        s.rows.insert(s.rows.end(), row.begin(), end);
      }
    return s;
  }

  std::unique_ptr<Layout> layout;
  int length = 0, version = 0;

 private:
  std::string wrong_for_the_next(int layer) const {
    const CacheShape& s = layout->shape();
    std::vector<Tile> tiles;
    layout->tiles(layer, length, &tiles);
    std::set<int> live;
    for (const Tile& tile : tiles)
      for (int i = 0; i < 64; ++i) {
        if ((tile.live >> i & 1) == 0) continue;
        const size_t at = static_cast<size_t>(i), pos = static_cast<size_t>(tile.first + i);
        if (tile.first + i >= length) return fmt::format("position {} does not exist", pos);
        if (!live.insert(tile.first + i).second) return fmt::format("position {} is there twice", pos);
        if (!is_seen(length, tile.first + i, s.window(layer), s.sinks)) continue;
        if (!same_rows(*s.k->codec, s, tile.k + at * tile.k_stride, k_rows(layer) + pos * s.k_row_bytes()) ||
            !same_rows(*s.v->codec, s, tile.v + at * tile.v_stride, v_rows(layer) + pos * s.v_row_bytes()))
          return fmt::format("position {} of {} is not what was written", pos, length);
      }
    for (int pos = 0; pos < length; ++pos)
      if (is_seen(length, pos, s.window(layer), s.sinks) && !live.contains(pos))
        return fmt::format("position {} of {} is missing", pos, length);
    return {};
  }
  std::string wrong_tile(int layer, int end, int first, const Tile& tile) const {
    const CacheShape& s = layout->shape();
    if (tile.first != first) return fmt::format("layer {}: a tile at {}, expected {}", layer, tile.first, first);
    for (int i = 0; i < 64; ++i) {
      const bool live = (tile.live >> i & 1) != 0;
      if (live != (first + i < end)) return fmt::format("position {} of {} live: {}", first + i, end, live);
      if (!live) continue;
      const size_t at = static_cast<size_t>(i), pos = static_cast<size_t>(first + i);
      if (!same_rows(*s.k->codec, s, tile.k + at * tile.k_stride, k_rows(layer) + pos * s.k_row_bytes()))
        return fmt::format("layer {} position {} of {}: another K", layer, pos, end);
      if (!same_rows(*s.v->codec, s, tile.v + at * tile.v_stride, v_rows(layer) + pos * s.v_row_bytes()))
        return fmt::format("layer {} position {} of {}: another V", layer, pos, end);
    }
    return {};
  }

  void resize(int n) {
    const CacheShape& s = layout->shape();
    k_.resize(static_cast<size_t>(s.layers));
    v_.resize(static_cast<size_t>(s.layers));
    for (auto& rows : k_) rows.resize(static_cast<size_t>(n) * s.k_row_bytes());
    for (auto& rows : v_) rows.resize(static_cast<size_t>(n) * s.v_row_bytes());
  }

  ValueAt value_;
  std::vector<std::vector<std::byte>> k_, v_;  // [layer][pos * row bytes]
};

/// Returns another layout that adopted all positions of `from`.
inline std::unique_ptr<Layout> forked(const Layout& from, std::shared_ptr<BlockPool> pool = {}) {
  auto copy = from.info().make(from.shape(), std::move(pool));
  EXPECT_TRUE(copy) << copy.error().message();
  const auto done = (*copy)->adopt(from, from.coverage());
  EXPECT_TRUE(done) << done.error().message();
  return std::move(*copy);
}

/// Returns a new layout. If it cannot be made, the test fails and this returns nullptr.
inline std::unique_ptr<Layout> make_layout(const LayoutInfo& info, const CacheShape& shape) {
  auto layout = info.make(shape);
  if (!layout) {
    ADD_FAILURE() << layout.error().message();
    return nullptr;
  }
  return std::move(*layout);
}

}  // namespace kvasir::conformance
