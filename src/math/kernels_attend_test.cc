// The attention kernel: every table against the scalar one in bits, and the scalar one against softmax in double. Rows
// that must not be read (dead rows) are NaN, or not mapped at all.
#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>

#include "math/kernels.h"
#include "tests/support/kernel_inputs.h"

namespace kvasir {
namespace {

using math_test::close;
using math_test::GuardedBytes;
using math_test::Random;
using math_test::same_floats;
using math_test::simd_tables;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr size_t kPage = 4096;

struct Shape {
  int head_dim, group, tokens, first_pos;
  const Codec* k = &codec_f32();
  const Codec* v = &codec_f32();
  bool holes = false, extremes = false, own_pages = false;
  int window = 0, sinks = 0;
  bool own_first = false;   // the first tile replaces the stored one (first_k, first_v)
  bool odd_scales = false;  // scales of blocks: zeros, denormals, infinities, NaN
  float cap = 0;
  bool nulls = false;  // each head has a null score

  int end() const { return first_pos + tokens; }
  /// Whether token t may attend to `pos`: an independent definition, position by position.
  bool sees(int t, int pos) const {
    const int self = first_pos + t;
    return pos <= self && (window == 0 || pos > self - window || pos < sinks);
  }
  bool seen(int pos) const {
    for (int t = 0; t < tokens; ++t)
      if (sees(t, pos)) return true;
    return false;
  }
};

// Rows of K or V for the tiles of [0, end), with three KV heads and their own stride. A dead row is NaN, or lies on an
// unmapped page.
class StoredRows {
 public:
  StoredRows(const Codec& codec, const Shape& s, int tiles, Random& random)
      : codec_(codec),
        head_bytes_(codec.row_bytes(s.head_dim)),
        stride_(s.own_pages ? kPage : 3 * head_bytes_ + static_cast<size_t>(random.pick({0, 4, 64}))),
        rows_(tiles * kTilePositions),
        memory_(static_cast<size_t>(rows_) * stride_) {}

  std::byte* row(int pos) const { return memory_.data() + static_cast<size_t>(pos) * stride_; }
  size_t stride() const { return stride_; }
  size_t offset(int kv_head) const { return static_cast<size_t>(kv_head) * head_bytes_; }

  /// Pads each head to whole blocks with a value that shows if it is used.
  void store(int pos, const std::vector<float>& heads, int head_dim) {
    const int blocks = (head_dim + codec_.block_elems - 1) / codec_.block_elems;
    for (int h = 0; h < 3; ++h) {
      std::vector<float> head(static_cast<size_t>(blocks * codec_.block_elems), 1.5f);
      std::copy_n(heads.begin() + h * head_dim, head_dim, head.begin());
      codec_.encode(head.data(), row(pos) + offset(h), static_cast<int64_t>(head.size()));
    }
  }
  /// Replaces the scale of one block of each head, if the type has blocks.
  void set_scale(int pos, Random& random) {
    if (codec_.block_elems == 1) return;
    const auto blocks = static_cast<int>(head_bytes_) / codec_.block_bytes;
    for (int h = 0; h < 3; ++h) {
      const uint16_t scale = random.one_in(40) ? random.pick<uint16_t>({0x7c00, 0xfc00, 0x7e00, 0xfe01})
                                               : random.pick<uint16_t>({0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x8400,
                                                                        0x3c00, 0xbc00, 0x2e66, 0x7bff, 0xfbff});
      std::memcpy(row(pos) + offset(h) + random.between(0, blocks - 1) * codec_.block_bytes, &scale, sizeof scale);
    }
  }
  void kill(int pos, bool own_pages, int head_dim) {
    if (own_pages) {
      ASSERT_EQ(mprotect(row(pos), kPage, PROT_NONE), 0);
    } else {
      store(pos, std::vector<float>(static_cast<size_t>(3 * head_dim), kNaN), head_dim);
    }
  }
  std::vector<float> read(int pos, int kv_head, int head_dim) const {
    std::vector<float> out(static_cast<size_t>(head_dim));
    codec_.decode(row(pos) + offset(kv_head), out.data(), head_dim);
    return out;
  }

 private:
  const Codec& codec_;
  size_t head_bytes_, stride_;
  int rows_;
  GuardedBytes memory_;
};

// One call of the kernel with all its memory. Positions that no token attends to are dead too, even if the tile marks
// some of them live.
class Attention {
 public:
  Attention(const Shape& shape, Random& random)
      : s(shape),
        tile_count_((shape.end() + kTilePositions - 1) / kTilePositions),
        kv_head_(random.between(0, 2)),
        q_stride_(s.group * s.head_dim + random.pick({0, 5, 16})),
        out_stride_(s.group * s.head_dim + random.pick({0, 5, 16})),
        k_(*s.k, s, tile_count_, random),
        v_(*s.v, s, tile_count_, random),
        q_(random.floats(static_cast<size_t>((s.tokens - 1) * q_stride_ + s.group * s.head_dim), s.extremes)),
        first_k_(random.floats(static_cast<size_t>(kTilePositions * s.head_dim))),
        first_v_(random.floats(static_cast<size_t>(kTilePositions * s.head_dim))) {
    for (int pos = 0; pos < tile_count_ * kTilePositions; ++pos) fill(pos, random);
    for (int j = 0; j < tile_count_; ++j) {
      Tile tile{j * kTilePositions,         0,           k_.row(j * kTilePositions),
                v_.row(j * kTilePositions), k_.stride(), v_.stride()};
      for (int i = 0; i < kTilePositions; ++i)
        if (!s.seen(tile.first + i) || live(tile.first + i)) tile.live |= uint64_t{1} << i;
      if (!(s.holes && tile.first + kTilePositions <= s.first_pos && random.one_in(4))) tiles_.push_back(tile);
    }
  }

  std::vector<float> run(const Kernels& kernels) const {
    std::vector<float> out(static_cast<size_t>(s.tokens * out_stride_), 777.0f);
    const GuardedBytes scratch(static_cast<size_t>(attend_scratch_floats(s.head_dim, s.group, s.tokens)) *
                               sizeof(float));
    kernels.attend(args(out.data(), scratch.floats()));
    return out;
  }
  /// The same with the tokens in any order, as rows, in two calls; the second begins at tile `cut`.
  std::vector<float> run_rows(const Kernels& kernels, const std::vector<int>& order, int cut) const {
    std::vector<float> out(static_cast<size_t>(s.tokens * out_stride_), 777.0f);
    std::vector<AttendRow> rows;
    for (const int t : order)
      rows.push_back({s.first_pos + t, q_.floats() + t * q_stride_, out.data() + t * out_stride_});
    const GuardedBytes scratch(static_cast<size_t>(attend_scratch_floats(s.head_dim, s.group, 0)) * sizeof(float));
    const GuardedBytes states(static_cast<size_t>(s.tokens * s.group * (s.head_dim + 2)) * sizeof(float));
    AttendArgs a = args(nullptr, scratch.floats());
    a.q = nullptr;
    a.rows = rows.data();
    a.states = states.floats();
    a.tile_count = cut;
    a.ends = false;
    kernels.attend(a);
    a.tiles += cut;
    a.tile_count = static_cast<int>(tiles_.size()) - cut;
    a.begun = a.ends = true;
    kernels.attend(a);
    return out;
  }
  int tile_count() const { return static_cast<int>(tiles_.size()); }
  /// The same for one token, tile by tile; dead tiles are skipped.
  std::vector<float> run_tiles(const Kernels& kernels) const {
    std::vector<float> out(static_cast<size_t>(out_stride_), 777.0f), states;
    if (s.nulls)
      for (int h = 0; h < s.group; ++h) {
        states.insert(states.end(), {null_score(h), 1.0f});
        states.resize(states.size() + static_cast<size_t>(s.head_dim));
      }
    const GuardedBytes scratch(static_cast<size_t>(attend_scratch_floats(s.head_dim, s.group, 1)) * sizeof(float));
    AttendArgs a = args(out.data(), scratch.floats());
    const auto floats = static_cast<size_t>(s.group * (s.head_dim + 2));
    int seen = s.nulls ? 1 : 0;
    for (const Tile& tile : tiles_) {
      if ((tile.live & seen_rows(tile.first, s.first_pos, s.first_pos, s.window, s.sinks)) == 0) continue;
      states.resize(++seen * floats);
      a.tiles = &tile;
      a.tile_count = 1;
      kernels.attend_tile(a, states.data() + (seen - 1) * floats);
    }
    kernels.merge_tiles({states.data(), seen, s.group, s.head_dim, out.data()});
    return out;
  }

  /// softmax(cap(q k^T * scale)) v in double, over the positions that head h of token t may attend to.
  std::vector<double> expected(int t, int h) const {
    std::vector<double> weights, out(static_cast<size_t>(s.head_dim), 0.0);
    std::vector<int> seen;
    for (const Tile& tile : tiles_)
      for (int i = 0; i < kTilePositions; ++i)
        if ((tile.live >> i & 1) != 0 && s.sees(t, tile.first + i)) seen.push_back(tile.first + i);
    const float* q = q_.floats() + t * q_stride_ + h * s.head_dim;
    for (int pos : seen) {
      const std::vector<float> k = read(k_, first_k_, pos);
      double score = 0;
      for (size_t d = 0; d < k.size(); ++d) score += static_cast<double>(q[d]) * static_cast<double>(k[d]);
      score *= static_cast<double>(scale());
      weights.push_back(s.cap > 0 ? static_cast<double>(s.cap) * std::tanh(score / static_cast<double>(s.cap)) : score);
    }
    if (s.nulls) weights.push_back(static_cast<double>(null_score(h)));
    const double most = *std::max_element(weights.begin(), weights.end());
    double total = 0;
    for (double& w : weights) total += w = std::exp(w - most);
    for (size_t i = 0; i < seen.size(); ++i) {
      const std::vector<float> v = read(v_, first_v_, seen[i]);
      for (size_t d = 0; d < v.size(); ++d) out[d] += weights[i] / total * static_cast<double>(v[d]);
    }
    return out;
  }
  int64_t out_stride() const { return out_stride_; }
  std::string text() const {
    return "head_dim " + std::to_string(s.head_dim) + ", group " + std::to_string(s.group) + ", " +
           std::to_string(s.tokens) + " tokens at " + std::to_string(s.first_pos) + ", K " + s.k->name + ", V " +
           s.v->name;
  }

  const Shape s;

 private:
  AttendArgs args(float* out, float* scratch) const {
    AttendArgs a;
    a.tiles = tiles_.data();
    a.tile_count = static_cast<int>(tiles_.size());
    a.head_dim = s.head_dim;
    a.group = s.group;
    a.tokens = s.tokens;
    a.first_pos = s.first_pos;
    a.window = s.window;
    a.sinks = s.sinks;
    if (s.own_first) a.first_k = first_k_.floats(), a.first_v = first_v_.floats();
    a.scale = scale();
    a.cap = s.cap;
    if (s.nulls) a.null_scores = kNullScores;
    a.k_offset = k_.offset(kv_head_);
    a.v_offset = v_.offset(kv_head_);
    a.k_form = s.k->form;
    a.v_form = s.v->form;
    a.decode_k = s.k->decode;
    a.decode_v = s.v->decode;
    a.q = q_.floats();
    a.out = out;
    a.q_stride = q_stride_;
    a.out_stride = out_stride_;
    a.scratch = scratch;
    return a;
  }
  std::vector<float> read(const StoredRows& stored, const GuardedBytes& first, int pos) const {
    if (!s.own_first || pos >= kTilePositions) return stored.read(pos, kv_head_, s.head_dim);
    return {first.floats() + pos * s.head_dim, first.floats() + (pos + 1) * s.head_dim};
  }
  static constexpr float kNullScores[] = {0.75f, -1.5f, 2.25f, 0.0f, -0.25f};
  static float null_score(int h) { return kNullScores[h]; }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(s.head_dim)); }
  bool live(int pos) const { return live_[static_cast<size_t>(pos)]; }

  // The tokens' own positions are live, so every query attends to something.
  void fill(int pos, Random& random) {
    live_.push_back(s.seen(pos) && (pos >= s.first_pos || !s.holes || !random.one_in(3)));
    const size_t n = static_cast<size_t>(3 * s.head_dim);
    if (!live_.back()) {
      k_.kill(pos, s.own_pages, s.head_dim);
      v_.kill(pos, s.own_pages, s.head_dim);
      return;
    }
    k_.store(pos, random.floats(n, s.extremes), s.head_dim);
    v_.store(pos, random.floats(n, s.extremes), s.head_dim);
    if (!s.odd_scales || !random.one_in(8)) return;
    k_.set_scale(pos, random);
    v_.set_scale(pos, random);
  }

  int tile_count_, kv_head_;
  int64_t q_stride_, out_stride_;
  StoredRows k_, v_;
  GuardedBytes q_, first_k_, first_v_;
  std::vector<bool> live_;
  std::vector<Tile> tiles_;
};

constexpr int kHeadDims[] = {8, 16, 24, 64, 80, 128};

/// The types that kernels have loaders for, and one that they decode through the codec.
std::vector<const Codec*> types() {
  std::vector<const Codec*> out;
  for (const char* name : {"f32", "f16", "bf16", "q8_0", "q4_0", "q5_1"}) out.push_back(find_codec(name));
  return out;
}
void any_types(Shape& s, Random& random) {
  const std::vector<const Codec*> all = types();
  s.k = all[static_cast<size_t>(random.between(0, static_cast<int>(all.size()) - 1))];
  s.v = all[static_cast<size_t>(random.between(0, static_cast<int>(all.size()) - 1))];
}

void expect_tables_equal(const Attention& attention) {
  const std::vector<float> expected = attention.run(kScalarKernels);
  for (const Kernels* table : simd_tables())
    ASSERT_TRUE(same_floats(attention.run(*table), expected)) << table->name << ": " << attention.text();
}

// Sequences that begin on both sides of tile borders; some cross one.
Shape random_shape(int head_dim, Random& random) {
  Shape s{head_dim, random.between(1, 5), random.one_in(3) ? random.pick({1, 16, 31, 32}) : random.between(1, 12), 0};
  s.first_pos = random.one_in(2) ? random.pick({0, 1, 62, 63, 64, 65, 120, 127, 128, 190}) : random.between(0, 200);
  return s;
}

TEST(KernelsAttend, EveryTableEqualsTheScalarOneInBits) {
  Random random(11);
  for (int head_dim : kHeadDims)
    for (int i = 0; i < 12; ++i) {
      Shape s = random_shape(head_dim, random);
      s.extremes = i % 4 == 0;
      expect_tables_equal(Attention(s, random));
    }
}

TEST(KernelsAttend, DeadRowsAreSkippedWhateverTheyHold) {
  Random random(12);
  for (int head_dim : kHeadDims)
    for (int i = 0; i < 12; ++i) {
      Shape s = random_shape(head_dim, random);
      s.holes = true;
      s.first_pos += i % 2 == 0 ? 0 : 70;
      if (i % 3 != 0) any_types(s, random);
      const Attention attention(s, random);
      expect_tables_equal(attention);
      for (float x : attention.run(kScalarKernels)) ASSERT_FALSE(std::isnan(x)) << attention.text();
    }
}

TEST(KernelsAttend, DeadRowsMayBeUnmapped) {
  if (sysconf(_SC_PAGESIZE) != static_cast<long>(kPage)) GTEST_SKIP() << "pages of another size";
  Random random(13);
  for (int head_dim : kHeadDims)
    for (int i = 0; i < 8; ++i) {
      Shape s = random_shape(head_dim, random);
      s.holes = s.own_pages = true;
      s.first_pos = std::min(s.first_pos, 100);
      if (i > 1) any_types(s, random);
      expect_tables_equal(Attention(s, random));
    }
}

TEST(KernelsAttend, NarrowRowsAreDecodedTheSame) {
  Random random(14);
  for (int head_dim : kHeadDims)
    for (const Codec* k : types())
      for (const Codec* v : types()) {
        Shape s = random_shape(head_dim, random);
        s.k = k;
        s.v = v;
        s.holes = random.one_in(2);
        s.extremes = random.one_in(4);
        expect_tables_equal(Attention(s, random));
      }
}

TEST(KernelsAttend, BlocksMayHaveAnyScale) {
  Random random(20);
  for (int head_dim : kHeadDims)
    for (int i = 0; i < 16; ++i) {
      Shape s = random_shape(head_dim, random);
      s.k = find_codec(i % 2 == 0 ? "q8_0" : "q4_0");
      s.v = find_codec(i % 4 < 2 ? "q8_0" : "q4_0");
      s.odd_scales = true;
      expect_tables_equal(Attention(s, random));
    }
}

TEST(KernelsAttend, CapsAndScoresForNothing) {
  Random random(21);
  for (int head_dim : kHeadDims)
    for (int i = 0; i < 24; ++i) {
      Shape s = random_shape(head_dim, random);
      s.cap = i % 3 == 0 ? 0.0f : 0.5f * static_cast<float>(i % 5 + 1);
      s.nulls = i % 2 == 0;
      s.window = i % 4 == 1 ? 70 : 0;
      if (i % 4 == 3) any_types(s, random);
      const Attention attention(s, random);
      expect_tables_equal(attention);
      const std::vector<float> out = attention.run(kScalarKernels);
      for (int t = 0; t < s.tokens; ++t)
        for (int h = 0; h < s.group; ++h) {
          const std::vector<double> want = attention.expected(t, h);
          for (int d = 0; d < head_dim; ++d)
            ASSERT_NEAR(out[static_cast<size_t>(t * attention.out_stride() + h * head_dim + d)],
                        want[static_cast<size_t>(d)], 2e-5)
                << attention.text();
        }
      if (s.tokens != 1) continue;
      const std::vector<float> whole = attention.run(kScalarKernels);
      for (const Kernels* table : simd_tables())
        ASSERT_TRUE(same_floats(attention.run_tiles(*table), whole)) << table->name << ": " << attention.text();
      ASSERT_TRUE(same_floats(attention.run_tiles(kScalarKernels), whole)) << attention.text();
    }
}

TEST(KernelsAttend, WindowsAndSinks) {
  Random random(19);
  for (int head_dim : kHeadDims)
    for (int i = 0; i < 24; ++i) {
      Shape s = random_shape(head_dim, random);
      s.window = random.pick({1, 2, 15, 63, 64, 65, 100, 300});
      s.sinks = random.pick({0, 0, 1, 4, 64});
      s.own_first = random.one_in(2);
      s.holes = i % 3 == 0;
      if (i % 2 == 0) any_types(s, random);
      const Attention attention(s, random);
      expect_tables_equal(attention);
      for (float x : attention.run(kScalarKernels)) ASSERT_FALSE(std::isnan(x)) << attention.text();
    }
}

TEST(KernelsAttend, EveryGroupAndTokenCount) {
  Random random(15);
  for (int group = 1; group <= 5; ++group)
    for (int tokens = 1; tokens <= kMaxAttendTokens; ++tokens) {
      Shape s{.head_dim = 24, .group = group, .tokens = tokens, .first_pos = 60};
      expect_tables_equal(Attention(s, random));
      s.k = find_codec("q8_0");
      s.v = find_codec("q4_0");
      if (tokens % 2 == 0) std::swap(s.k, s.v);
      expect_tables_equal(Attention(s, random));
    }
}

TEST(KernelsAttend, OneTokenTileByTileIsTheSame) {
  Random random(18);
  std::vector<const Kernels*> tables = simd_tables();
  tables.push_back(&kScalarKernels);
  for (int head_dim : kHeadDims)
    for (int i = 0; i < 12; ++i) {
      Shape s = random_shape(head_dim, random);
      s.group = random.pick({1, 3, 4, 9});
      s.tokens = 1;
      s.first_pos += i % 2 == 0 ? 0 : 150;
      s.holes = i % 3 == 0;
      if (i % 2 == 0) any_types(s, random);
      if (i % 5 == 0) s.window = 70;
      const Attention attention(s, random);
      const std::vector<float> expected = attention.run(kScalarKernels);
      for (const Kernels* table : tables)
        ASSERT_TRUE(same_floats(attention.run_tiles(*table), expected)) << table->name << ": " << attention.text();
    }
}

TEST(KernelsAttend, RowsInAnyOrderAndInTwoCallsAreTheSame) {
  Random random(22);
  std::vector<const Kernels*> tables = simd_tables();
  tables.push_back(&kScalarKernels);
  for (int head_dim : kHeadDims)
    for (int i = 0; i < 24; ++i) {
      Shape s = random_shape(head_dim, random);
      s.first_pos += i % 2 == 0 ? 0 : 100;
      s.nulls = i % 3 == 0;
      s.window = i % 4 < 2 ? 0 : random.pick({1, 15, 64, 65, 100});
      s.sinks = s.window != 0 ? random.pick({0, 4}) : 0;
      s.cap = i % 5 == 0 ? 1.5f : 0.0f;
      if (i % 3 != 0) any_types(s, random);
      const Attention attention(s, random);
      std::vector<int> order(static_cast<size_t>(s.tokens));
      std::iota(order.begin(), order.end(), 0);
      for (size_t n = order.size(); n > 1; --n)
        std::swap(order[n - 1], order[static_cast<size_t>(random.between(0, static_cast<int>(n) - 1))]);
      const std::vector<float> expected = attention.run(kScalarKernels);
      const int cut = random.between(0, attention.tile_count());
      for (const Kernels* table : tables)
        ASSERT_TRUE(same_floats(attention.run_rows(*table, order, cut), expected))
            << table->name << ": " << attention.text();
    }
}

TEST(KernelsAttend, ScalarIsSoftmaxWithinRounding) {
  Random random(16);
  for (int head_dim : kHeadDims)
    for (int i = 0; i < 4; ++i) {
      Shape s = random_shape(head_dim, random);
      s.tokens = std::min(s.tokens, 6);
      s.holes = i % 2 == 0;
      if (i > 1) any_types(s, random);
      if (i % 2 == 1) s.window = 50, s.sinks = 3, s.own_first = i == 1;
      const Attention attention(s, random);
      const std::vector<float> out = attention.run(kScalarKernels);
      for (int t = 0; t < s.tokens; ++t)
        for (int h = 0; h < s.group; ++h) {
          const std::vector<double> expected = attention.expected(t, h);
          for (size_t d = 0; d < expected.size(); ++d)
            ASSERT_TRUE(
                close(out[static_cast<size_t>(t * attention.out_stride() + h * head_dim) + d], expected[d], 4e-6))
                << attention.text();
        }
    }
}

// The order of sums depends on absolute positions only: single tiles, dead tiles in between, and tokens divided among
// several calls change nothing.
TEST(KernelsAttend, TokensAloneEqualTokensTogetherInBits) {
  Random random(17);
  std::vector<const Kernels*> tables = simd_tables();
  tables.push_back(&kScalarKernels);
  for (const Kernels* table : tables) {
    const int head_dim = 64, tokens = 9, first = 60;
    const std::vector<float> rows = random.floats(2 * 128 * 64), q = random.floats(64 * 9);
    std::vector<Tile> tiles;
    const size_t stride = 64 * sizeof(float);
    const std::byte* k = reinterpret_cast<const std::byte*>(rows.data());
    for (int j = 0; j < 2; ++j) {
      const size_t at = static_cast<size_t>(j) * 64 * stride;
      tiles.push_back({j * 64, live_below(j * 64, first + tokens), k + at, k + 128 * stride + at, stride, stride});
    }
    std::vector<float> scratch(static_cast<size_t>(attend_scratch_floats(head_dim, 1, tokens)));
    const auto run = [&](int from, int count, float* out) {
      AttendArgs a{.tiles = tiles.data(),
                   .tile_count = 2,
                   .head_dim = head_dim,
                   .group = 1,
                   .tokens = count,
                   .first_pos = first + from,
                   .scale = 0.125f,
                   .decode_k = codec_f32().decode,
                   .decode_v = codec_f32().decode,
                   .q = q.data() + from * 64,
                   .out = out,
                   .q_stride = 64,
                   .out_stride = 64,
                   .scratch = scratch.data()};
      table->attend(a);
    };
    std::vector<float> together(64 * 9), alone(64 * 9);
    run(0, tokens, together.data());
    for (int t = 0; t < tokens; ++t) run(t, 1, alone.data() + t * 64);
    EXPECT_TRUE(same_floats(alone, together)) << table->name;
  }
}

}  // namespace
}  // namespace kvasir
