// The split of resident memory: of a hand-made text, of buffers touched page by page, and compared with the kernel's
// own counter.
#include "base/rss.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "base/buffer.h"

namespace kvasir {
namespace {

constexpr size_t kMiB = size_t{1} << 20, kHuge = size_t{2} << 20;

size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

Buffer make(size_t bytes, Owner owner, bool huge = false) {
  auto buffer = Buffer::allocate(bytes, owner, huge);
  EXPECT_TRUE(buffer) << buffer.error().message();
  return std::move(*buffer);
}

RssByOwner now(size_t tokenizer_heap = 0) {
  const auto rss = rss_by_owner(tokenizer_heap);
  EXPECT_TRUE(rss);
  return rss.value_or(RssByOwner{});
}

bool agrees(const RssByOwner& rss) {
  const size_t total = rss.total(), apart = std::max(total, rss.kernel) - std::min(total, rss.kernel);
  return apart <= std::max(2 * kMiB, rss.kernel / 100 * 3);
}

OwnedRange range(size_t begin, size_t end, Owner owner) {
  return {reinterpret_cast<const std::byte*>(begin), reinterpret_cast<const std::byte*>(end), owner};
}

TEST(RssSplit, EveryMappingHasOneOwner) {
  std::istringstream smaps(
      "55d000000000-55d000040000 r-xp 00000000 08:01 77 /usr/bin/a program\nSize: 900 kB\nRss:   3 kB\nPss: 1 kB\n"
      "55d000040000-55d000080000 rw-p 00040000 08:01 77 /usr/bin/a program\nRss: 5 kB\nVmFlags: rd wr\n"
      "55d001000000-55d002000000 rw-p 00000000 00:00 0                    [heap]\nRss: 700 kB\nAnonymous: 700 kB\n"
      "7f0000000000-7f0000001000 ---p 00000000 00:00 0 \nRss: 0 kB\n"
      "7f0000001000-7f0000009000 rw-p 00000000 00:00 0 \nRss: 11 kB\n"
      "7f0000009000-7f000000b000 rw-p 00000000 00:00 0 \nRss: 13 kB\n"
      "7f000000b000-7f000000c000 rw-p 00000000 00:00 0 \nRss: 17 kB\n"
      "7f000000c000-7f000000d000 rw-p 00000000 00:00 0 \nRss: 19 kB\n"
      "7f0000010000-7f0000020000 r--p 00000000 08:01 9  /data/model.gguf\nRss: 23 kB\n"
      "7f0000020000-7f0000030000 r--p 00010000 08:01 9  /data/model.gguf\nRss: 29 kB\n"
      "7f0000030000-7f0000040000 r--p 00000000 08:01 8  /usr/lib/locale\nRss: 31 kB\n"
      "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                    [stack]\nRss: 37 kB\n");
  const std::array ranges{
      range(0x7f0000000000, 0x7f000000a000, Owner::kv),  // ends inside a mapping; the mapping counts whole
      range(0x7f000000b000, 0x7f000000c000, Owner::activations), range(0x7f000000c000, 0x7f000000d000, Owner::weights),
      range(0x7f0000010000, 0x7f0000030000, Owner::weights)};
  const RssByOwner rss = split_rss(smaps, ranges, 300 * 1024);
  EXPECT_EQ(rss.kv, (11u + 13) * 1024);
  EXPECT_EQ(rss.activations, 17u * 1024);
  EXPECT_EQ(rss.weights, (19u + 23 + 29) * 1024);
  EXPECT_EQ(rss.code, (3u + 5 + 31) * 1024);
  EXPECT_EQ(rss.tokenizer, 300u * 1024);
  EXPECT_EQ(rss.other, (700u + 37 - 300) * 1024);
  EXPECT_EQ(rss.total(), (3u + 5 + 700 + 11 + 13 + 17 + 19 + 23 + 29 + 31 + 37) * 1024);
}

TEST(RssSplit, ATokenizerIsNoMoreThanWhatIsResident) {
  std::istringstream smaps("55d001000000-55d002000000 rw-p 00000000 00:00 0 [heap]\nRss: 8 kB\n");
  const RssByOwner rss = split_rss(smaps, {}, 9 * 1024);
  EXPECT_EQ(rss.tokenizer, 8u * 1024);
  EXPECT_EQ(rss.other, 0u);
}

TEST(RssSplit, WhatIsNoSmapsIsNothing) {
  for (const char* text : {"", "\n", "Rss: 4 kB\n", "cat: no such file\nRss: 4 kB\n"}) {
    std::istringstream smaps(text);
    EXPECT_EQ(split_rss(smaps, {}, 5).total(), 0u) << text;
  }
}

TEST(Rss, CountsThePagesThatWereWritten) {
  const Buffer kv = make(64 * page(), Owner::kv), weights = make(100 * page() + 1, Owner::weights);
  const Buffer activations = make(3 * page(), Owner::activations);
  const RssByOwner before = now();
  for (const size_t i : {0, 1, 7, 31, 63}) kv.data()[i * page() + i] = std::byte{1};
  std::memset(weights.data(), 2, 100 * page() + 1);
  activations.data()[page()] = std::byte{3};
  const RssByOwner after = now();
  EXPECT_EQ(after.kv, before.kv + 5 * page());
  EXPECT_EQ(after.weights, before.weights + 101 * page());
  EXPECT_EQ(after.activations, before.activations + page());
}

// Without guard pages the kernel would merge neighbours into one mapping.
TEST(Rss, NeighboursAreNotMixed) {
  constexpr size_t kEach = 20;
  const RssByOwner before = now();
  std::vector<Buffer> held;
  std::vector<void*> foreign;
  for (size_t i = 0; i < kEach; ++i) {
    for (const Owner owner : {Owner::kv, Owner::weights, Owner::activations})
      held.push_back(make((static_cast<size_t>(owner) + 1) * page(), owner));
    foreign.push_back(mmap(nullptr, 5 * page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(foreign.back(), MAP_FAILED);
    std::memset(foreign.back(), 1, 5 * page());
  }
  for (Buffer& buffer : held) buffer.touch();
  const RssByOwner after = now();
  for (void* memory : foreign) munmap(memory, 5 * page());
  EXPECT_EQ(after.weights, before.weights + kEach * page());
  EXPECT_EQ(after.kv, before.kv + kEach * 2 * page());
  EXPECT_EQ(after.activations, before.activations + kEach * 3 * page());
  EXPECT_GE(after.other, before.other + kEach * 5 * page());
}

TEST(Rss, OfAHugeBufferIsAtMostItsLastPageMore) {
  const RssByOwner before = now();
  constexpr size_t kBytes = 2 * kHuge + kMiB + 3;
  Buffer buffer = make(kBytes, Owner::weights, true);
  EXPECT_EQ(now().weights, before.weights);
  buffer.touch();
  const size_t held = now().weights - before.weights;
  EXPECT_GE(held, kBytes);
  EXPECT_LE(held, 3 * kHuge);
}

TEST(Rss, FollowsWhatIsMovedAndGivenBack) {
  const RssByOwner before = now();
  Buffer a = make(9 * page(), Owner::kv);
  a.touch();
  Buffer b = std::move(a);
  EXPECT_EQ(now().kv, before.kv + 9 * page());
  madvise(b.data(), 4 * page(), MADV_DONTNEED);
  EXPECT_EQ(now().kv, before.kv + 5 * page());
  b = Buffer();
  EXPECT_EQ(now().kv, before.kv);
}

TEST(Rss, SumAgreesWithTheKernel) {
  EXPECT_TRUE(agrees(now())) << now().total() << " and " << now().kernel;
  Buffer kv = make(48 * kMiB, Owner::kv), weights = make(32 * kMiB + 5, Owner::weights, true);
  kv.touch();
  weights.touch();
  const RssByOwner rss = now();
  EXPECT_TRUE(agrees(rss)) << rss.total() << " and " << rss.kernel;
  EXPECT_GT(rss.kernel, 78 * kMiB);
}

TEST(Rss, TheHeapInUseIsCounted) {
  const size_t before = heap_bytes();
  const auto small = std::make_unique<std::byte[]>(50'000), large = std::make_unique<std::byte[]>(5 * kMiB);
  if (before == 0) GTEST_SKIP() << "this C library, or the sanitizer in its place, does not count";
  EXPECT_GE(heap_bytes(), before + 5 * kMiB + 50'000);
  EXPECT_LT(heap_bytes(), before + 6 * kMiB);
  const RssByOwner without = now(), with = now(100'000);
  EXPECT_EQ(without.tokenizer, 0u);
  EXPECT_EQ(with.tokenizer, 100'000u);
}

TEST(ThreadsRss, IsReadWhileBuffersComeAndGo) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 3; ++t)
    threads.emplace_back([&stop, t] {
      for (size_t i = 1; !stop; ++i) make((i % 7 + t + 1) * page(), static_cast<Owner>(t)).touch();
    });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(rss_by_owner(0));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (const OwnedRange& r : owned_ranges()) EXPECT_LT(r.begin, r.end);
}

}  // namespace
}  // namespace kvasir
