// Mappings: counters exact to the byte, contents of the pages, and residency according to the system.
#include "base/buffer.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace kvasir {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20, kHuge = size_t{2} << 20;

Buffer make(size_t bytes, Owner owner = Owner::activations, bool huge = false) {
  auto buffer = Buffer::allocate(bytes, owner, huge);
  EXPECT_TRUE(buffer) << buffer.error().message();
  return std::move(*buffer);
}

bool all_equal(const Buffer& buffer, int value) {
  return std::all_of(buffer.data(), buffer.data() + buffer.bytes(),
                     [value](std::byte b) { return b == static_cast<std::byte>(value); });
}

size_t resident_bytes() {
  size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

TEST(Buffer, EachOwnerIsChargedWhatWasAskedFor) {
  const size_t weights = live_bytes(Owner::weights), kv = live_bytes(Owner::kv);
  const size_t activations = live_bytes(Owner::activations);
  {
    const Buffer a = make(1, Owner::weights), b = make(4097, Owner::kv), c = make(5 * kMiB + 3, Owner::kv, true);
    EXPECT_EQ(a.bytes(), 1u);
    EXPECT_EQ(c.bytes(), 5 * kMiB + 3);
    EXPECT_EQ(live_bytes(Owner::weights), weights + 1);
    EXPECT_EQ(live_bytes(Owner::kv), kv + 4097 + 5 * kMiB + 3);
    EXPECT_EQ(live_bytes(Owner::activations), activations);
  }
  EXPECT_EQ(live_bytes(Owner::weights), weights);
  EXPECT_EQ(live_bytes(Owner::kv), kv);
}

TEST(Buffer, IsZeroFilledEvenWhereDirtyMemoryWas) {
  for (int round = 0; round < 3; ++round) {
    const Buffer buffer = make(3 * kMiB + 17, Owner::kv, round == 1);
    ASSERT_TRUE(all_equal(buffer, 0)) << "round " << round;
    std::memset(buffer.data(), 0xab, buffer.bytes());
    ASSERT_TRUE(all_equal(buffer, 0xab));
  }
}

TEST(Buffer, IsAligned) {
  std::vector<Buffer> held;  // all stay alive, so that no two get the same address
  for (const size_t bytes : {size_t{1}, size_t{63}, size_t{4096}, kMiB + 1, kHuge, kHuge + 1, 3 * kHuge}) {
    held.push_back(make(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(held.back().data()) % 64, 0u) << bytes;
    held.push_back(make(bytes, Owner::weights, true));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(held.back().data()) % kHuge, 0u) << bytes;
    std::memset(held.back().data(), 0x5a, bytes);  // shows that all bytes lie inside the mapping
  }
}

TEST(Buffer, OfZeroBytesIsEmpty) {
  const size_t before = live_bytes(Owner::kv);
  for (const bool huge : {false, true}) {
    Buffer buffer = make(0, Owner::kv, huge);
    EXPECT_EQ(buffer.data(), nullptr);
    EXPECT_EQ(buffer.bytes(), 0u);
    buffer.touch();
  }
  EXPECT_EQ(live_bytes(Owner::kv), before);
}

TEST(Buffer, RefusesAbsurdSizes) {
  constexpr size_t kMax = std::numeric_limits<size_t>::max();
  const size_t before = live_bytes(Owner::kv);
  for (const bool huge : {false, true}) {
    for (const size_t bytes : {kMax, kMax - 1, kMax - 4094, kMax - 4095, kMax - 4096, kMax - kHuge, kMax - kHuge - 4096,
                               kMax / 2, size_t{1} << 60}) {
      const auto buffer = Buffer::allocate(bytes, Owner::kv, huge);
      ASSERT_FALSE(buffer) << bytes;
      EXPECT_THAT(buffer.error().message(),
                  AllOf(HasSubstr("memory: cannot map " + std::to_string(bytes) + " bytes: Cannot allocate memory"),
                        HasSubstr("(try: ")));
    }
  }
  EXPECT_EQ(live_bytes(Owner::kv), before);
}

TEST(Buffer, ReservedSpaceCostsWhatIsCharged) {
  const size_t kv = live_bytes(Owner::kv), resident = resident_bytes();
  {
    auto space = Buffer::reserve(size_t{64} << 30, Owner::kv);  // more than the machine's memory
    ASSERT_TRUE(space) << space.error().message();
    EXPECT_EQ(space->bytes(), 0u);
    EXPECT_EQ(live_bytes(Owner::kv), kv);
    space->charge(8192);
    EXPECT_EQ(space->bytes(), 8192u);
    EXPECT_EQ(live_bytes(Owner::kv), kv + 8192);
    std::byte* const last = space->data() + (size_t{64} << 30) - 1;
    EXPECT_EQ(*last, std::byte{0});
    *last = std::byte{7};
    EXPECT_LT(resident_bytes(), resident + kMiB) << "a huge page was given for a byte";
    Buffer moved = std::move(*space);
    EXPECT_EQ(*last, std::byte{7});
    moved.charge(4096);
    EXPECT_EQ(live_bytes(Owner::kv), kv + 4096);
  }
  EXPECT_EQ(live_bytes(Owner::kv), kv);
}

TEST(Buffer, MovesItsMemoryAndItsCharge) {
  const size_t before = live_bytes(Owner::kv);
  {
    Buffer a = make(100, Owner::kv);
    a.data()[99] = std::byte{7};
    const std::byte* const at = a.data();
    Buffer b = std::move(a);
    EXPECT_EQ(b.data(), at);
    EXPECT_EQ(b.bytes(), 100u);
    EXPECT_EQ(live_bytes(Owner::kv), before + 100);

    Buffer c = make(50, Owner::activations);
    c = std::move(b);
    EXPECT_EQ(c.data(), at);
    EXPECT_EQ(c.data()[99], std::byte{7});
    EXPECT_EQ(live_bytes(Owner::kv), before + 100);
    Buffer& same = c;
    c = std::move(same);
    EXPECT_EQ(c.data(), at);
  }
  EXPECT_EQ(live_bytes(Owner::kv), before);
}

TEST(Buffer, AMovedFromOneIsEmptyAndReusable) {
  Buffer a = make(100, Owner::kv);
  const Buffer b = std::move(a);
  EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move): that it is empty is the contract
  EXPECT_EQ(a.bytes(), 0u);
  a = make(10, Owner::kv);
  EXPECT_EQ(a.bytes(), 10u);
  EXPECT_NE(a.data(), b.data());
}

TEST(Buffer, AssigningOverOneGivesItsBytesBack) {
  const size_t before = live_bytes(Owner::weights);
  Buffer a = make(100, Owner::weights);
  a = make(30, Owner::weights);
  EXPECT_EQ(live_bytes(Owner::weights), before + 30);
  a = Buffer();
  EXPECT_EQ(live_bytes(Owner::weights), before);
}

TEST(Buffer, TouchMakesAllOfItResidentAndTheEndGivesItBack) {
  constexpr size_t kBytes = 64 * kMiB, kNoise = 16 * kMiB;  // AddressSanitizer uses another 1/8 for its shadow
  const size_t before = resident_bytes();
  {
    Buffer buffer = make(kBytes, Owner::kv);
    EXPECT_LT(resident_bytes(), before + kNoise) << "untouched memory costs nothing";
    buffer.touch();
    EXPECT_GT(resident_bytes() + kNoise, before + kBytes);
    EXPECT_TRUE(all_equal(buffer, 0));
  }
  EXPECT_LT(resident_bytes(), before + kNoise);
}

}  // namespace
}  // namespace kvasir
