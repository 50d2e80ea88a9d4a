// Damaged snapshots: every flipped bit, every length, and files that never were snapshots.
#include "cache/share/snapshot.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <bit>
#include <cstring>

#include <xxhash.h>

#include <kvasir/version.h>

#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

using namespace format_test;
using testing::HasSubstr;

const CacheShape kShape{1, 1, 2, 100, kv_type_of(codec_f16()), kv_type_of(codec_f32())};
constexpr int kPositions = 66;  // one whole block and two positions

std::unique_ptr<Layout> cache_of(const char* layout = "dense") {
  return std::move(*(*find_layout(layout))->make(kShape));
}

// A different value at every index.
std::unique_ptr<Layout> filled(int positions) {
  auto cache = cache_of();
  for (int pos = 0; pos < positions; ++pos) {
    const float base = static_cast<float>(4 * pos);
    const float k[] = {base, base + 1}, v[] = {base + 2, base + 3};
    cache->write(0, pos, k, v);
  }
  cache->commit(positions);
  return cache;
}

std::vector<int> tokens_of(int n) {
  std::vector<int> ids;
  for (int i = 0; i < n; ++i) ids.push_back(7 * i + 1);
  return ids;
}

class SnapshotFile : public testing::Test {
 protected:
  void write(int positions) {
    const auto saved =
        save_snapshot(path_, *filled(positions), tokens_of(positions), "00112233445566778899aabbccddeeff");
    ASSERT_TRUE(saved) << saved.error().message();
    bytes_ = slurp(path_);
  }
  // The error text, or empty. open(), check() and load() must agree, and a refused load leaves the cache empty.
  std::string refusal(const std::string& bytes) {
    put(path_, bytes);
    return refusal();
  }
  std::string refusal() {
    const auto snapshot = Snapshot::open(path_);
    if (!snapshot) return snapshot.error().message();
    const auto checked = snapshot->check();
    auto cache = cache_of();
    const auto loaded = snapshot->load(cache.get());
    EXPECT_EQ(checked.has_value(), loaded.has_value());
    if (loaded) return {};
    EXPECT_EQ(cache->coverage(), 0);
    EXPECT_EQ(checked.error().message(), loaded.error().message());
    return loaded.error().message();
  }

  TempFolder folder_;
  const std::filesystem::path path_ = folder_ / "snapshot";
  std::string bytes_;
};

TEST_F(SnapshotFile, ComesBack) {
  write(kPositions);
  const auto snapshot = Snapshot::open(path_);
  ASSERT_TRUE(snapshot) << snapshot.error().message();
  const SnapshotHeader& h = snapshot->header();
  EXPECT_EQ(h.tokens, tokens_of(kPositions));
  EXPECT_EQ(h.positions, kPositions);
  EXPECT_EQ(h.fingerprint, "00112233445566778899aabbccddeeff");
  EXPECT_EQ(h.shape.k, *find_kv_type("f16"));
  EXPECT_EQ(h.shape.v, *find_kv_type("f32"));
  EXPECT_EQ(h.shape.window_policy(), "none");
  EXPECT_EQ(h.numerics_version, static_cast<uint32_t>(kNumericsVersion));
  EXPECT_EQ(refusal(bytes_), "");
}

// The format written a second time, from docs/formats/snapshot.md.
TEST_F(SnapshotFile, HasTheDocumentedBytes) {
  write(kPositions);
  const auto u32 = [&](size_t at) {
    uint32_t x;
    std::memcpy(&x, bytes_.data() + at, 4);
    return x;
  };
  const auto u64 = [&](size_t at) {
    uint64_t x;
    std::memcpy(&x, bytes_.data() + at, 8);
    return x;
  };
  EXPECT_EQ(bytes_.substr(0, 8), "KVASIRKV");
  EXPECT_EQ(u32(8), 1u);
  EXPECT_EQ(u64(16), 0x0011223344556677u);
  EXPECT_EQ(u64(24), 0x8899aabbccddeeffu);
  EXPECT_EQ(bytes_.substr(32, 16), std::string("f16") + std::string(13, '\0'));
  EXPECT_EQ(bytes_.substr(48, 4), std::string("f32") + '\0');
  const uint32_t numbers[] = {1, 1, 2, 0, kPositions, kPositions};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(u32(64 + 4 * i), numbers[i]) << i;
  const size_t tokens = 88 + 8, sum = tokens + kPositions * 4, blocks = sum + 8;
  EXPECT_EQ(u32(tokens + 4 * 65), 7u * 65 + 1);
  EXPECT_EQ(u64(sum), XXH3_64bits_withSeed(bytes_.data(), sum, 0));
  // A position has 4 bytes of K and 8 of V.
  const size_t first = 64 * 12, second = 2 * 12;
  EXPECT_EQ(u64(blocks + first), XXH3_64bits_withSeed(bytes_.data() + blocks, first, 1));
  const size_t next = blocks + first + 8;
  EXPECT_EQ(u64(next + second), XXH3_64bits_withSeed(bytes_.data() + next, second, 2));
  ASSERT_EQ(bytes_.size(), next + second + 8 + 16);
  const uint64_t sums[] = {u64(sum), u64(blocks + first), u64(next + second)};
  const XXH128_hash_t all = XXH3_128bits(sums, sizeof sums);
  EXPECT_EQ(u64(next + second + 8), all.low64);
  EXPECT_EQ(u64(next + second + 16), all.high64);
  // Position 65: V after the 2 rows of K.
  float v;
  std::memcpy(&v, bytes_.data() + next + 2 * 4 + 8 + 4, 4);
  EXPECT_EQ(v, 4 * 65 + 3);
}

TEST_F(SnapshotFile, EveryFlippedBitIsRefused) {
  write(kPositions);
  const int fd = ::open(path_.c_str(), O_WRONLY);
  for (size_t bit = 0; bit < bytes_.size() * 8; ++bit) {
    const auto at = static_cast<off_t>(bit / 8);
    const char good = bytes_[bit / 8], bad = static_cast<char>(good ^ (1 << bit % 8));
    ASSERT_EQ(::pwrite(fd, &bad, 1, at), 1);
    ASSERT_NE(refusal(), "") << "bit " << bit;
    ASSERT_EQ(::pwrite(fd, &good, 1, at), 1);
  }
  ::close(fd);
  EXPECT_EQ(refusal(), "");
}

TEST_F(SnapshotFile, EveryOtherLengthIsRefused) {
  write(kPositions);
  const std::string good = bytes_;
  for (size_t n = 0; n < good.size(); ++n) ASSERT_NE(refusal(good.substr(0, n)), "") << n;
  EXPECT_THAT(refusal(good + '\0'), HasSubstr("bytes, its header says"));
  EXPECT_EQ(refusal(good), "");
}

TEST_F(SnapshotFile, BlocksOfAnotherAreRefused) {
  write(kPositions);
  const std::string good = bytes_;
  auto other = filled(kPositions);
  const float k[] = {1, 2}, v[] = {3, 4};
  other->write(0, 3, k, v);
  ASSERT_TRUE(save_snapshot(path_, *other, tokens_of(kPositions), "00112233445566778899aabbccddeeff"));
  std::string mixed = slurp(path_);
  ASSERT_EQ(mixed.size(), good.size());
  const size_t blocks = 88 + 8 + kPositions * 4 + 8, block = 64 * 12 + 8;
  std::copy_n(good.begin() + static_cast<std::ptrdiff_t>(blocks), block,
              mixed.begin() + static_cast<std::ptrdiff_t>(blocks));
  EXPECT_THAT(refusal(mixed), HasSubstr("do not belong together"));
}

// Right checksums are not enough: a layer without a window must have every position.
TEST_F(SnapshotFile, WhatTheNextQuerySeesMustBeThere) {
  write(kPositions);
  std::string bad = bytes_;
  const uint32_t oldest = 1;
  std::memcpy(bad.data() + 88 + 4, &oldest, 4);
  const size_t sum_at = 88 + 8 + kPositions * 4;
  const uint64_t sum = XXH3_64bits_withSeed(bad.data(), sum_at, 0);
  std::memcpy(bad.data() + sum_at, &sum, 8);
  EXPECT_THAT(refusal(bad), HasSubstr("lacks what its window sees"));
}

TEST_F(SnapshotFile, OfNothingIsASnapshotToo) {
  write(0);
  EXPECT_EQ(refusal(bytes_), "");
  EXPECT_EQ(Snapshot::open(path_)->header().tokens.size(), 0u);
}

TEST_F(SnapshotFile, AnotherFormatIsNamed) {
  write(5);
  std::string later = bytes_;
  later[8] = 2;
  EXPECT_THAT(refusal(later), HasSubstr("format 2, this build reads 1"));
  EXPECT_THAT(refusal("GGUF" + std::string(1000, 'x')), HasSubstr("not a snapshot"));
  EXPECT_THAT(refusal(""), HasSubstr("too short"));
  EXPECT_THAT(Snapshot::open(folder_ / "nothing").error().message(), HasSubstr("No such file"));
}

TEST_F(SnapshotFile, AFailedSaveLeavesTheOldOne) {
  write(5);
  const auto failed = save_snapshot(folder_ / "no" / "s", *filled(3), tokens_of(3), std::string(32, '0'));
  EXPECT_FALSE(failed);
  EXPECT_EQ(slurp(path_), bytes_);
}

}  // namespace
}  // namespace kvasir
