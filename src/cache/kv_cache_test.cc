// The KV store that grows on demand: capacities, addresses, what growth preserves, what it costs, and what is refused.
#include <gmock/gmock.h>
#include <unistd.h>

#include <climits>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <kvasir/kv_cache.h>

#include "base/buffer.h"
#include "dtype/codec.h"

namespace kvasir {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// ---- a different value at every index ---------------------------------------------------------------------------

// T: the type that a channel is stored as, float or the 16 bits of a narrow type.
template <class T>
T value(const KVCache& cache, bool is_v, int layer, int pos, int b, int channel) {
  const int64_t rows = (int64_t{layer} * cache.max_len() + pos) * cache.batch() + b;
  return static_cast<T>((rows * cache.kv_dim() + channel) * 2 + (is_v ? 1 : 0) + 1);
}

template <class T>
void write_position(KVCache& cache, int pos) {
  for (int layer = 0; layer < cache.layers(); ++layer)
    for (int b = 0; b < cache.batch(); ++b) {
      T* const k = cache.k<T>(layer, pos, b);
      T* const v = cache.v<T>(layer, pos, b);
      for (int c = 0; c < cache.kv_dim(); ++c) {
        k[c] = value<T>(cache, false, layer, pos, b, c);
        v[c] = value<T>(cache, true, layer, pos, b, c);
      }
    }
}

// Number of values of positions [0, end) that differ from what write_position() wrote; -1 if they exceed the capacity.
template <class T>
int wrong_values(const KVCache& cache, int end) {
  if (end > cache.capacity()) return -1;
  int wrong = 0;
  for (int layer = 0; layer < cache.layers(); ++layer)
    for (int pos = 0; pos < end; ++pos)
      for (int b = 0; b < cache.batch(); ++b)
        for (int c = 0; c < cache.kv_dim(); ++c) {
          wrong += cache.k<T>(layer, pos, b)[c] != value<T>(cache, false, layer, pos, b, c);
          wrong += cache.v<T>(layer, pos, b)[c] != value<T>(cache, true, layer, pos, b, c);
        }
  return wrong;
}

// One token at a time, as decoding does: all layers write position `pos`, then the length advances once.
template <class T>
void type_positions(KVCache& cache, int from, int to) {
  const int64_t values = int64_t{2} * cache.layers() * cache.max_len() * cache.batch() * cache.kv_dim();
  constexpr int kExactBits = std::is_same_v<T, float> ? 24 : 16;
  ASSERT_LT(values, int64_t{1} << kExactBits) << "no two indices may share a value";
  for (int pos = from; pos < to; ++pos) {
    const int growths = cache.growths();
    write_position<T>(cache, pos);
    ASSERT_TRUE(cache.set_seq_len(pos + 1));
    const bool grew = cache.growths() != growths;
    ASSERT_EQ(grew ? wrong_values<T>(cache, pos + 1) : 0, 0) << "after the growth at " << pos;
  }
}

size_t product_of(const KVCache& c) {
  return static_cast<size_t>(c.layers()) * static_cast<size_t>(c.capacity()) * static_cast<size_t>(c.batch()) *
         (c.k_row_bytes() + c.v_row_bytes());
}

// ---- capacity ---------------------------------------------------------------------------------------------------

class KVCacheOf : public testing::TestWithParam<int> {};

// The capacity for n positions: the least of 64, 128, 256, ... that holds them, at most max_len.
int expected_capacity(int n, int max_len) {
  int cap = 64;
  while (cap < n) cap += cap;
  return cap < max_len ? cap : max_len;
}

TEST_P(KVCacheOf, CapacityStartsAt64DoublesAndNeverPassesMaxLen) {
  const int max_len = GetParam();
  KVCache cache(2, 1, 3, max_len);
  EXPECT_EQ(cache.capacity(), max_len < 64 ? max_len : 64);
  EXPECT_EQ(cache.seq_len(), 0);
  EXPECT_EQ(cache.growths(), 0);
  for (int n = 1; n <= max_len; ++n) {
    ASSERT_TRUE(cache.set_seq_len(n));
    ASSERT_EQ(cache.seq_len(), n);
    ASSERT_EQ(cache.capacity(), expected_capacity(n, max_len)) << n;
    ASSERT_EQ(KVCache::capacity_for(n, max_len), cache.capacity());
    ASSERT_EQ(cache.bytes(), product_of(cache));
  }
  EXPECT_EQ(cache.growths(), max_len <= 64 ? 0 : static_cast<int>(std::ceil(std::log2(max_len / 64.0))));
  EXPECT_FALSE(cache.set_seq_len(max_len + 1));
}

TEST_P(KVCacheOf, EveryValueSurvivesEveryGrowth) {
  const int max_len = GetParam();
  KVCache cache(3, 2, 3, max_len);
  type_positions<float>(cache, 0, max_len);
  EXPECT_EQ(wrong_values<float>(cache, max_len), 0);
}

TEST_P(KVCacheOf, GrowthCopiesTheLiveLengthEachTime) {
  const int max_len = GetParam();
  KVCache cache(2, 1, 2, max_len);
  size_t copied = 0;
  for (int n = 1; n <= max_len; ++n) {
    if (n > cache.capacity()) copied += static_cast<size_t>(n - 1);
    ASSERT_TRUE(cache.set_seq_len(n));
    ASSERT_EQ(cache.copied_rows(), copied) << n;
  }
  EXPECT_LE(copied, static_cast<size_t>(2 * max_len)) << "doubling copies less than twice what it holds";
}

INSTANTIATE_TEST_SUITE_P(MaxLen, KVCacheOf, testing::Values(1, 2, 63, 64, 65, 100, 127, 128, 129, 200, 500, 512, 1000),
                         [](const auto& of) { return std::to_string(of.param); });

TEST(KVCache, GrowsAheadInOneStep) {
  KVCache cache(2, 1, 2, 5000);
  type_positions<float>(cache, 0, 30);
  ASSERT_TRUE(cache.grow_to(1025));
  EXPECT_EQ(cache.capacity(), 2048);
  EXPECT_EQ(cache.growths(), 1);
  EXPECT_EQ(cache.copied_rows(), 30u);
  EXPECT_EQ(cache.seq_len(), 30) << "room is not length";
  EXPECT_EQ(wrong_values<float>(cache, 30), 0);
  ASSERT_TRUE(cache.grow_to(2048));
  ASSERT_TRUE(cache.grow_to(1));
  EXPECT_EQ(cache.growths(), 1) << "what fits is no growth";
  ASSERT_TRUE(cache.grow_to(2049));
  EXPECT_EQ(cache.capacity(), 4096);
  ASSERT_TRUE(cache.grow_to(4097));
  EXPECT_EQ(cache.capacity(), 5000);
}

TEST(KVCache, CapacityForIsSafeAtTheEndsOfInt) {
  EXPECT_EQ(KVCache::capacity_for(0, 1000), 64);
  EXPECT_EQ(KVCache::capacity_for(0, 10), 10);
  EXPECT_EQ(KVCache::capacity_for(INT_MAX, INT_MAX), INT_MAX);
  EXPECT_EQ(KVCache::capacity_for((1 << 30) + 1, INT_MAX), INT_MAX);
  EXPECT_EQ(KVCache::capacity_for(1 << 30, INT_MAX), 1 << 30);
}

// ---- addresses --------------------------------------------------------------------------------------------------

TEST(KVCache, OffsetIsLayerTimesCapacityPlusPositionTimesKvDim) {
  KVCache cache(3, 2, 5, 300);
  ASSERT_EQ(cache.kv_dim(), 10);
  for (const int room : {1, 65, 129, 257}) {
    ASSERT_TRUE(cache.grow_to(room));
    const size_t cap = static_cast<size_t>(cache.capacity());
    for (int layer = 0; layer < 3; ++layer)
      for (int pos = 0; pos < cache.capacity(); ++pos) {
        const size_t expected = (static_cast<size_t>(layer) * cap + static_cast<size_t>(pos)) * 10;
        ASSERT_EQ(cache.offset(layer, pos), expected);
        ASSERT_EQ(cache.k(layer, pos), cache.k(0, 0) + expected);
        ASSERT_EQ(cache.v(layer, pos), cache.v(0, 0) + expected);
      }
  }
  EXPECT_NE(cache.k(0, 0), cache.v(0, 0));
}

TEST(KVCache, OffsetsPastFourGiBAreExact) {
  const KVCache cache(1, 1024, 1024, 64);  // 256 MiB each of K and V, mapped and never touched
  ASSERT_EQ(cache.capacity(), 64);
  EXPECT_EQ(cache.offset(4095, 63), (4095u * size_t{64} + 63) * 1024 * 1024);
  EXPECT_EQ(reinterpret_cast<const char*>(cache.k(0, 63)) - reinterpret_cast<const char*>(cache.k(0, 0)),
            int64_t{63} * 1024 * 1024 * 4);
}

TEST(KVCache, ABatchLiesInsideThePosition) {
  KVCache cache(2, 2, 2, 200, 3);
  EXPECT_EQ(cache.offset(1, 5, 2), ((size_t{64} + 5) * 3 + 2) * 4);
  EXPECT_EQ(cache.k(1, 5, 2), cache.k(0, 0) + cache.offset(1, 5, 2));
  EXPECT_EQ(cache.bytes(), size_t{2} * 64 * 3 * (16 + 16));
  type_positions<float>(cache, 0, 200);
  EXPECT_EQ(cache.growths(), 2);
  EXPECT_EQ(cache.capacity(), 200);
  EXPECT_EQ(wrong_values<float>(cache, 200), 0);
  EXPECT_EQ(cache.bytes(), size_t{2} * 200 * 3 * (16 + 16));
  EXPECT_EQ(cache.copied_rows(), 64u + 128u);
}

TEST(KVCache, NarrowTypesTakeTheirOwnBytes) {
  for (const char* type : {"f16", "bf16"}) {
    KVCache cache(2, 1, 7, 300, 2, type, type);
    EXPECT_EQ(cache.k_row_bytes(), 14u);
    EXPECT_EQ(cache.v_row_bytes(), 14u);
    type_positions<uint16_t>(cache, 0, 300);
    EXPECT_EQ(cache.bytes(), size_t{2} * 300 * 2 * 28);
    EXPECT_EQ(wrong_values<uint16_t>(cache, 300), 0);
  }
}

TEST(KVCache, AnUnknownTypeIsReportedByTheFirstGrowth) {
  KVCache cache(2, 1, 7, 300, 2, "f32", "q6");
  EXPECT_EQ(cache.capacity(), 0);
  const auto grown = cache.grow_to(1);
  ASSERT_FALSE(grown);
  EXPECT_EQ(grown.error().kind, Error::bad_argument);
  EXPECT_THAT(grown.error().message(), testing::HasSubstr("q6"));
}

TEST(KVCache, KAndVMayDifferInType) {
  KVCache cache(2, 1, 3, 130, 1, "f32", "f16");
  EXPECT_EQ(cache.k_row_bytes(), 12u);
  EXPECT_EQ(cache.v_row_bytes(), 6u);
  EXPECT_EQ(cache.bytes(), size_t{2} * 64 * 18);
  for (int pos = 0; pos < 130; ++pos) {
    for (int layer = 0; layer < 2; ++layer) {
      for (int c = 0; c < 3; ++c) cache.k(layer, pos)[c] = static_cast<float>((layer * 130 + pos) * 3 + c);
      for (int c = 0; c < 3; ++c) cache.v<uint16_t>(layer, pos)[c] = static_cast<uint16_t>((layer * 130 + pos) * 3 + c);
    }
    ASSERT_TRUE(cache.set_seq_len(pos + 1));
  }
  for (int layer = 0; layer < 2; ++layer)
    for (int pos = 0; pos < 130; ++pos)
      for (int c = 0; c < 3; ++c) {
        ASSERT_EQ(std::as_const(cache).k(layer, pos)[c], static_cast<float>((layer * 130 + pos) * 3 + c));
        ASSERT_EQ(std::as_const(cache).v<uint16_t>(layer, pos)[c], (layer * 130 + pos) * 3 + c);
      }
}

// ---- who grows --------------------------------------------------------------------------------------------------

TEST(KVCache, OnlyTheNonConstRowsGrow) {
  static_assert(std::is_same_v<decltype(std::declval<KVCache&>().k(0, 0)), float*>);
  static_assert(std::is_same_v<decltype(std::declval<const KVCache&>().k(0, 0)), const float*>);
  static_assert(std::is_same_v<decltype(std::declval<const KVCache&>().v(0, 0)), const float*>);
  KVCache cache(2, 1, 2, 1000);
  const KVCache& reader = cache;
  type_positions<float>(cache, 0, 64);
  EXPECT_EQ(reader.k(1, 63), cache.k(1, 63));
  EXPECT_EQ(reader.v(1, 63), cache.v(1, 63));
  EXPECT_EQ(cache.capacity(), 64);
  ASSERT_NE(cache.k(0, 64), nullptr);
  EXPECT_EQ(cache.capacity(), 128);
  EXPECT_EQ(cache.seq_len(), 64);
  ASSERT_NE(cache.v(1, 128), nullptr);
  EXPECT_EQ(cache.capacity(), 256);
  EXPECT_EQ(cache.growths(), 2);
  EXPECT_EQ(wrong_values<float>(cache, 64), 0);
}

TEST(KVCache, ClearKeepsTheCapacity) {
  KVCache cache(2, 1, 2, 1000);
  type_positions<float>(cache, 0, 200);
  const float* const at = cache.k(0, 0);
  const size_t bytes = cache.bytes(), copied = cache.copied_rows();
  cache.clear();
  EXPECT_EQ(cache.seq_len(), 0);
  EXPECT_EQ(cache.capacity(), 256);
  EXPECT_EQ(cache.bytes(), bytes);
  EXPECT_EQ(cache.k(0, 0), at);
  ASSERT_TRUE(cache.grow_to(257));
  EXPECT_EQ(cache.copied_rows(), copied) << "nothing is live after clear()";
  type_positions<float>(cache, 0, 300);
  EXPECT_EQ(wrong_values<float>(cache, 300), 0);
}

TEST(KVCache, ShorteningKeepsTheCapacityAndTheRows) {
  KVCache cache(2, 1, 2, 1000);
  type_positions<float>(cache, 0, 200);
  ASSERT_TRUE(cache.set_seq_len(100));
  EXPECT_EQ(cache.capacity(), 256);
  ASSERT_TRUE(cache.grow_to(300));
  EXPECT_EQ(cache.copied_rows(), 64u + 128u + 100u);
  EXPECT_EQ(wrong_values<float>(cache, 100), 0);
}

// ---- bytes ------------------------------------------------------------------------------------------------------

TEST(KVCache, BytesAreWhatTheCountersSay) {
  const size_t before = live_bytes(Owner::kv);
  {
    KVCache cache(3, 2, 5, 500, 2);
    size_t peak = cache.bytes();
    EXPECT_EQ(cache.peak_bytes(), peak);
    for (int n = 1; n <= 500; ++n) {
      const size_t old = cache.bytes();
      ASSERT_TRUE(cache.set_seq_len(n));
      if (cache.bytes() != old) peak = old + cache.bytes();
      ASSERT_EQ(cache.bytes(), product_of(cache));
      ASSERT_EQ(live_bytes(Owner::kv), before + cache.bytes());
      ASSERT_EQ(cache.peak_bytes(), peak) << "old and new, for a moment";
    }
    EXPECT_EQ(cache.bytes(), size_t{3} * 500 * 2 * 2 * 40);
  }
  EXPECT_EQ(live_bytes(Owner::kv), before);
}

TEST(KVCache, KnownModelsCostTheirKnownBytes) {
  KVCache gpt2(12, 12, 64, 1024);
  EXPECT_EQ(static_cast<size_t>(gpt2.layers()) * (gpt2.k_row_bytes() + gpt2.v_row_bytes()), 73'728u);
  ASSERT_TRUE(gpt2.set_seq_len(1024));
  EXPECT_EQ(gpt2.bytes(), 75'497'472u);
  KVCache smol(30, 3, 64, 8192);
  EXPECT_EQ(static_cast<size_t>(smol.layers()) * (smol.k_row_bytes() + smol.v_row_bytes()), 46'080u);
  EXPECT_EQ(smol.bytes(), 2'949'120u);
  ASSERT_TRUE(smol.set_seq_len(64));
  EXPECT_EQ(smol.bytes(), 2'949'120u);
  ASSERT_TRUE(smol.set_seq_len(8192));
  EXPECT_EQ(smol.bytes(), 377'487'360u);
  EXPECT_EQ(smol.growths(), 1) << "grown ahead in one step";
}

size_t resident_bytes() {
  size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

TEST(KVCache, FreedMemoryGoesBackToTheSystem) {
  constexpr size_t kMiB = size_t{1} << 20, kNoise = 3 * kMiB;
  const size_t before = resident_bytes();
  {
    KVCache cache(4, 8, 128, 256);  // 32 KiB a position: 2 MiB at 64, 4 at 128, 8 at 256
    for (int pos = 0; pos < 256; ++pos) {
      for (int layer = 0; layer < 4; ++layer) {
        std::memset(cache.k(layer, pos), 1 + layer, cache.k_row_bytes());
        std::memset(cache.v(layer, pos), 5 + layer, cache.v_row_bytes());
      }
      ASSERT_TRUE(cache.set_seq_len(pos + 1));
    }
    ASSERT_EQ(cache.bytes(), 8 * kMiB);
    EXPECT_GT(resident_bytes() + kNoise, before + 8 * kMiB);
    EXPECT_LT(resident_bytes(), before + 8 * kMiB + kNoise) << "the 2 and 4 MiB before it are gone";
  }
  EXPECT_LT(resident_bytes(), before + kNoise);
}

// ---- refusals ---------------------------------------------------------------------------------------------------

TEST(KVCache, ARefusalChangesNothing) {
  KVCache cache(2, 2, 3, 100);
  type_positions<float>(cache, 0, 100);
  const float* const k = cache.k(0, 0);
  const size_t live = live_bytes(Owner::kv), peak = cache.peak_bytes();
  for (const int n : {101, 128, INT_MAX}) {
    for (const auto& refused : {cache.grow_to(n), cache.set_seq_len(n)}) {
      ASSERT_FALSE(refused);
      EXPECT_THAT(refused.error().message(),
                  AllOf(HasSubstr(std::to_string(n) + " positions"), HasSubstr("may hold 100"), HasSubstr("max_len")));
    }
  }
  EXPECT_FALSE(cache.set_seq_len(-1));
  EXPECT_FALSE(cache.set_seq_len(INT_MIN));
  EXPECT_EQ(cache.k(0, 100), nullptr);
  EXPECT_EQ(cache.v(1, 100), nullptr);
  EXPECT_EQ(cache.capacity(), 100);
  EXPECT_EQ(cache.seq_len(), 100);
  EXPECT_EQ(cache.growths(), 1);
  EXPECT_EQ(cache.k(0, 0), k);
  EXPECT_EQ(cache.peak_bytes(), peak);
  EXPECT_EQ(live_bytes(Owner::kv), live);
  EXPECT_EQ(wrong_values<float>(cache, 100), 0);
}

TEST(KVCache, WithoutMemoryTheFirstGrowthSaysSo) {
  const size_t before = live_bytes(Owner::kv);
  // 2^58 bytes, and a product above 2^64 that would wrap around to 0 bytes.
  for (const int heads : {1 << 10, 1 << 18}) {
    KVCache cache(1 << 20, heads, 1 << 18, 1 << 20);
    EXPECT_EQ(cache.capacity(), 0) << heads;
    EXPECT_EQ(cache.bytes(), 0u);
    EXPECT_EQ(cache.k(0, 0), nullptr);
    const auto refused = cache.set_seq_len(1);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("cannot map"));
    EXPECT_EQ(cache.seq_len(), 0);
  }
  EXPECT_EQ(live_bytes(Owner::kv), before);
}

TEST(KVCache, APlanThatIsDroppedLeavesNoTrace) {
  KVCache cache(2, 1, 4, 1000);
  type_positions<float>(cache, 0, 64);
  const size_t live = live_bytes(Owner::kv);
  {
    const auto growth = cache.prepare(65);
    ASSERT_TRUE(growth);
    ASSERT_NE(*growth, nullptr);
    EXPECT_EQ(live_bytes(Owner::kv), live + 2 * cache.bytes());
    EXPECT_EQ(cache.capacity(), 64);
    EXPECT_EQ(cache.growths(), 0);
  }
  EXPECT_EQ(live_bytes(Owner::kv), live);
  EXPECT_EQ(*cache.prepare(64), nullptr) << "nothing to do";
  EXPECT_FALSE(cache.prepare(1001));
  auto growth = cache.prepare(65);
  ASSERT_TRUE(growth);
  cache.apply(std::move(*growth));
  EXPECT_EQ(cache.capacity(), 128);
  EXPECT_EQ(wrong_values<float>(cache, 64), 0);
}

TEST(KVCache, MovesWithItsRows) {
  const size_t before = live_bytes(Owner::kv);
  {
    KVCache a(2, 1, 3, 200);
    type_positions<float>(a, 0, 150);
    const float* const at = a.k(0, 0);
    KVCache b = std::move(a);
    EXPECT_EQ(b.k(0, 0), at);
    EXPECT_EQ(b.seq_len(), 150);
    EXPECT_EQ(wrong_values<float>(b, 150), 0);
    KVCache c(1, 1, 1, 10);
    c = std::move(b);
    type_positions<float>(c, 150, 200);
    EXPECT_EQ(wrong_values<float>(c, 200), 0);
    EXPECT_EQ(live_bytes(Owner::kv), before + c.bytes());
  }
  EXPECT_EQ(live_bytes(Owner::kv), before);
}

}  // namespace
}  // namespace kvasir
