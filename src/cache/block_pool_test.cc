// Taking, returning and sharing blocks, and budgets that are asked before memory is allocated.
#include "cache/block_pool.h"

#include <gmock/gmock.h>

#include <thread>

namespace kvasir {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(BlockPool, WhatIsGivenBackIsTakenAgain) {
  const size_t before = live_bytes(Owner::kv);
  const auto pool = BlockPool::create();
  BlockPtr a = *pool->take(5000), b = *pool->take(5000);
  EXPECT_EQ(pool->used_bytes(), 10'000u);
  const std::byte* const memory = a->data();
  const BlockPtr shared = a;
  a.reset();
  EXPECT_EQ(pool->used_bytes(), 10'000u) << "somebody holds it";
  EXPECT_EQ(pool->waiting_bytes(), 0u);
  b.reset();
  EXPECT_EQ(pool->used_bytes(), 5000u);
  EXPECT_EQ(pool->waiting_bytes(), 5000u);
  EXPECT_EQ(live_bytes(Owner::kv), before + 10'000u);
  const BlockPtr c = *pool->take(5000);
  EXPECT_NE(c->data(), memory);
  EXPECT_EQ(pool->waiting_bytes(), 0u);
  EXPECT_EQ(live_bytes(Owner::kv), before + 10'000u);
}

TEST(BlockPool, ABlockIsUniqueAsLongAsOneHoldsIt) {
  const auto pool = BlockPool::create();
  BlockPtr a = *pool->take(5000);
  EXPECT_TRUE(a.unique());
  BlockPtr b = a;
  EXPECT_FALSE(a.unique() || b.unique());
  BlockPtr c = std::move(b);
  EXPECT_TRUE(b == nullptr);
  EXPECT_FALSE(a.unique() || c.unique());
  c = a;
  EXPECT_FALSE(a.unique());
  c.reset();
  EXPECT_TRUE(a.unique());
}

// The last holder may write to a block: reads by earlier holders happened before unique() returned true.
TEST(ThreadsBlockPool, AUniqueBlockMayBeWritten) {
  const auto pool = BlockPool::create();
  for (int round = 0; round < 200; ++round) {
    const BlockPtr mine = *pool->take(64);
    mine->data()[3] = std::byte{7};
    int seen = 0;
    std::thread reader([&seen, held = mine]() mutable {
      seen = static_cast<int>(held->data()[3]);
      held.reset();
    });
    while (!mine.unique()) std::this_thread::yield();
    mine->data()[3] = std::byte{9};
    reader.join();
    ASSERT_EQ(seen, 7);
  }
}

TEST(BlockPool, WithoutKeepingItGoesBackToTheSystem) {
  const size_t before = live_bytes(Owner::kv);
  const auto pool = BlockPool::create({}, false);
  BlockPtr a = *pool->take(4096), b = *pool->take(100);
  EXPECT_EQ(live_bytes(Owner::kv), before + 4196u);
  a.reset();
  EXPECT_EQ(live_bytes(Owner::kv), before + 100u);
  EXPECT_EQ(pool->waiting_bytes(), 0u);
}

TEST(BlockPool, ABudgetIsAskedBeforeMemoryIsTaken) {
  const auto budget = Budget::create(10'000, "ModelOptions::kv_ram");
  const auto pool = BlockPool::create({budget});
  BlockPtr a = *pool->take(4000), b = *pool->take(4000);
  const size_t live = live_bytes(Owner::kv);
  const auto refused = pool->take(4000);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(),
              AllOf(HasSubstr("ModelOptions::kv_ram"), HasSubstr("4000 B"), HasSubstr("2000 B of the 10000")));
  EXPECT_EQ(live_bytes(Owner::kv), live);
  EXPECT_EQ(pool->used_bytes(), 8000u);
  a.reset();
  EXPECT_EQ(budget->left(), 2000u) << "a block that waits is held";
  EXPECT_TRUE(pool->take(4000));
}

TEST(BlockPool, WaitingBlocksOfAnotherSizeMakeRoom) {
  const auto budget = Budget::create(10'000);
  const auto pool = BlockPool::create({budget});
  std::vector<BlockPtr> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(*pool->take(1000));
  blocks.clear();
  EXPECT_EQ(pool->waiting_bytes(), 10'000u);
  const BlockPtr large = *pool->take(9000);
  EXPECT_EQ(pool->waiting_bytes(), 0u);
  EXPECT_EQ(budget->left(), 1000u);
  EXPECT_TRUE(pool->take(1000)) << "sizes that were given up can be taken again";
}

TEST(BlockPool, ABlockOutlivesWhoeverMadeThePool) {
  auto pool = BlockPool::create({Budget::create(1 << 20)});
  BlockPtr block = *pool->take(100);
  pool.reset();
  block->data()[99] = std::byte{1};
  block.reset();
}

TEST(ThreadsBlockPool, ManySequencesTakeAndGiveBack) {
  const auto budget = Budget::create(64 * 512);
  const auto pool = BlockPool::create({budget});
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&pool, t] {
      std::vector<BlockPtr> held;
      for (int i = 0; i < 400; ++i) {
        if (auto block = pool->take(t % 2 == 0 ? 512 : 256)) {
          (*block)->data()[0] = static_cast<std::byte>(t);
          held.push_back(std::move(*block));
        }
        if (i % 7 == 0) held.clear();
      }
    });
  threads.clear();
  EXPECT_EQ(pool->used_bytes(), 0u);
  EXPECT_LE(pool->waiting_bytes(), size_t{64} * 512);
}

}  // namespace
}  // namespace kvasir
