// The Law at the level of a layout: attention over its tiles equals, in bits, attention over a plain array of the same
// rows, however the sequence was written, truncated and rewritten.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "cache/grow.h"
#include "math/targets.h"
#include "tests/support/layout_model.h"

namespace kvasir::conformance {
namespace {

constexpr int kGroup = 2, kMaxTokens = 7;
constexpr int kPoison = 1 << 20;  // rows of versions from here on must never be read

float noise(int64_t id) {
  uint64_t x = static_cast<uint64_t>(id + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 31)) * 0xd6e8feb86659fd93u;
  return static_cast<float>(static_cast<int32_t>(x >> 40) - (1 << 23)) * 0x1p-22f;  // [-2, 2)
}

ValueAt attention_values(const CacheShape& s) {
  const float poison = s.k->codec->block_elems == 1 ? std::numeric_limits<float>::quiet_NaN() : 1e4f;
  return [s, poison](const Place& p) { return p.version >= kPoison ? poison : noise(place_id(s, p)); };
}

// K and V of one layer as a plain array of rows, and the tiles over it.
struct PlainRows {
  std::vector<std::byte> k, v;
  std::vector<Tile> tiles;

  PlainRows(const Sequence& seq, int layer, int end) {
    const size_t k_row = seq.layout->shape().k_row_bytes(), v_row = seq.layout->shape().v_row_bytes();
    k.assign(seq.k_rows(layer), seq.k_rows(layer) + static_cast<size_t>(end) * k_row);
    v.assign(seq.v_rows(layer), seq.v_rows(layer) + static_cast<size_t>(end) * v_row);
    for (int first = 0; first < end; first += 64) {
      uint64_t live = 0;
      for (int i = 0; i < 64 && first + i < end; ++i) live |= uint64_t{1} << i;
      const size_t at = static_cast<size_t>(first);
      tiles.push_back({first, live, k.data() + at * k_row, v.data() + at * v_row, k_row, v_row});
    }
  }
};

// Attention of the last `tokens` positions of [0, end), every KV head with its group. Returns [tokens][heads * group *
// head_dim].
std::vector<float> attend(const Kernels& kernels, const CacheShape& s, const std::vector<Tile>& tiles, int end,
                          int tokens) {
  const int64_t cols = int64_t{s.kv_heads} * kGroup * s.head_dim;
  std::vector<float> q, out(static_cast<size_t>(tokens * cols), -1.0f);
  for (int64_t i = 0; i < tokens * cols; ++i) q.push_back(noise(i * 7919 + end));
  std::vector<float> scratch(static_cast<size_t>(attend_scratch_floats(s.head_dim, kGroup, tokens)));
  for (int head = 0; head < s.kv_heads; ++head) {
    AttendArgs a;
    a.tiles = tiles.data();
    a.tile_count = static_cast<int>(tiles.size());
    a.head_dim = s.head_dim;
    a.group = kGroup;
    a.tokens = tokens;
    a.first_pos = end - tokens;
    a.scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim));
    a.k_offset = static_cast<size_t>(head) * s.k->codec->row_bytes(s.head_dim);
    a.v_offset = static_cast<size_t>(head) * s.v->codec->row_bytes(s.head_dim);
    a.k_form = s.k->codec->form;
    a.v_form = s.v->codec->form;
    a.decode_k = s.k->codec->decode;
    a.decode_v = s.v->codec->decode;
    a.q = q.data() + int64_t{head} * kGroup * s.head_dim;
    a.out = out.data() + int64_t{head} * kGroup * s.head_dim;
    a.q_stride = a.out_stride = cols;
    a.scratch = scratch.data();
    kernels.attend(a);
  }
  return out;
}

std::vector<const Kernels*> tables() {
  std::vector<const Kernels*> all{&kScalarKernels};
  const auto target = choose_cpu_target();
  EXPECT_TRUE(target) << target.error().message();
  if (target && &kernels_for(*target) != all[0]) all.push_back(&kernels_for(*target));
  return all;
}

// Expects the same bits over all layers, kernel tables and token counts.
void expect_plain_bits(const Sequence& seq, int end) {
  const CacheShape& s = seq.layout->shape();
  for (int layer = 0; layer < s.layers; ++layer) {
    const PlainRows plain(seq, layer, end);
    std::vector<Tile> tiles;
    seq.layout->tiles(layer, end, &tiles);
    for (const int tokens : {1, std::min(end, kMaxTokens)}) {
      const std::vector<float> expected = attend(kScalarKernels, s, plain.tiles, end, tokens);
      for (const float x : expected) ASSERT_TRUE(std::isfinite(x));
      for (const Kernels* table : tables()) {
        const auto name = fmt::format("{} layer {} end {} tokens {}", table->name, layer, end, tokens);
        const std::vector<float> over_plain = attend(*table, s, plain.tiles, end, tokens);
        const std::vector<float> over_layout = attend(*table, s, tiles, end, tokens);
        const size_t bytes = expected.size() * sizeof(float);
        ASSERT_EQ(std::memcmp(over_layout.data(), over_plain.data(), bytes), 0) << name;
        ASSERT_EQ(std::memcmp(over_layout.data(), expected.data(), bytes), 0) << name << ", against the scalar oracle";
      }
    }
  }
}

class LayoutAttention : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Every, LayoutAttention, testing::ValuesIn(cases()),
                         [](const auto& of) { return of.param.name(); });

// Appends up to `end` in chunks; after each chunk appends some poisoned rows and truncates them.
void type_with_detours(Sequence& seq, int end, std::mt19937& random) {
  while (seq.length < end) {
    seq.append(std::min(end - seq.length, 1 + below(random, 80)));
    const int right = seq.length, version = seq.version;
    seq.version = kPoison;
    seq.append(std::min(seq.layout->shape().max_ctx - right, 1 + below(random, 70)));
    seq.truncate(right);
    seq.version = version + 1;
  }
}

TEST_P(LayoutAttention, EqualsAPlainArrayInBits) {
  const KvType* type = GetParam().type;
  for (const int head_dim : {64, padded(*type->codec, 20)}) {
    const CacheShape s{2, 2, head_dim, 250, type, type};
    std::mt19937 random(11);
    Sequence seq(make_layout(*GetParam().layout, s), attention_values(s));
    for (const int end : {1, 2, 63, 64, 65, 127, 129, 200}) {
      type_with_detours(seq, end, random);
      expect_plain_bits(seq, end);
    }
  }
}

TEST_P(LayoutAttention, DoesNotDependOnHowTheSequenceWasTyped) {
  const KvType* type = GetParam().type;
  const CacheShape s{1, 2, padded(*type->codec, 24), 250, type, type};
  std::vector<std::vector<float>> results;
  for (const int chunk : {1, 3, 64, 100, 200}) {
    Sequence seq(make_layout(*GetParam().layout, s), attention_values(s));
    while (seq.length < 200) seq.append(std::min(200 - seq.length, chunk));
    std::vector<Tile> tiles;
    seq.layout->tiles(0, 200, &tiles);
    results.push_back(attend(*tables().back(), s, tiles, 200, 1));
    ASSERT_EQ(std::memcmp(results.back().data(), results[0].data(), results[0].size() * sizeof(float)), 0) << chunk;
  }
}

// ---- several sequences in one store ------------------------------------------------------------------------------

TEST(GrowView, SequencesOfOneStoreStayApart) {
  constexpr int kBatch = 3;
  for (const KvType* type : plain_kv_types()) {
    const CacheShape s{2, 2, padded(*type->codec, 8), 200, type, type};
    KVCache store(s.layers, s.kv_heads, s.head_dim, s.max_ctx, kBatch, type->name, type->name);
    std::vector<Sequence> sequences;
    for (int b = 0; b < kBatch; ++b) {
      sequences.emplace_back(make_grow_view(store, s, b), attention_values(s));
      sequences.back().version = b;  // different rows in each
    }
    for (const int end : {5, 64, 65, 140, 200}) {
      const int first = store.seq_len();
      ASSERT_TRUE(store.grow_to(end));
      for (Sequence& seq : sequences) {
        seq.room(end);
        seq.write(first, end);
      }
      for (Sequence& seq : sequences) seq.layout->commit(end);
      for (const Sequence& seq : sequences) {
        ASSERT_EQ(seq.layout->coverage(), end);
        ASSERT_EQ(seq.wrong(end), "") << "sequence " << seq.version << " of " << type->name;
        expect_plain_bits(seq, end);
      }
    }
    EXPECT_EQ(store.bytes(), size_t{200} * kBatch * s.position_bytes());
  }
}

}  // namespace
}  // namespace kvasir::conformance
