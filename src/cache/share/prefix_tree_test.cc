// The prefix tree against a plain list of sequences: what it finds, what it holds, what it evicts first.
#include "cache/share/prefix_tree.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include "base/budget.h"
#include "cache/block_pool.h"

namespace kvasir {
namespace {

const CacheShape kShape{1, 1, 64, 2000, kv_type_of(codec_f32()), kv_type_of(codec_f32())};
const size_t kBlock = 64 * kShape.position_bytes();
const size_t kIndex = kBlock / 2;  // room for the tree itself, in limits counted in blocks

class Prefixes : public testing::Test {
 protected:
  // A cache of these tokens: K of a position is its token, V the token before it.
  std::shared_ptr<Layout> cache_of(const std::vector<int>& tokens, const PrefixTree::Hit& from = {}) {
    std::shared_ptr<Layout> cache = std::move(*(*find_layout("paged"))->make(kShape, pool_));
    if (from.cache != nullptr) {
      EXPECT_TRUE(cache->adopt(*from.cache, from.length));
    }
    cache->apply(std::move(*cache->prepare(static_cast<int>(tokens.size()))));
    for (size_t i = static_cast<size_t>(from.length); i < tokens.size(); ++i) {
      const float x = static_cast<float>(tokens[i]), y = i > 0 ? static_cast<float>(tokens[i - 1]) : -1;
      const std::vector<float> k(64, x), v(64, y);
      cache->write(0, static_cast<int>(i), k.data(), v.data());
    }
    cache->commit(static_cast<int>(tokens.size()));
    return cache;
  }
  // Whether the hit's cache holds the first `hit.length` of these tokens.
  static bool is_right(const PrefixTree::Hit& hit, std::span<const int> tokens) {
    std::vector<Tile> tiles;
    hit.cache->tiles(0, hit.length, &tiles);
    for (int i = 0; i < hit.length; ++i) {
      const Tile& tile = tiles[static_cast<size_t>(i / 64)];
      const auto row = static_cast<size_t>(i % 64);
      if ((tile.live >> row & 1) == 0) return false;
      const float k = *reinterpret_cast<const float*>(tile.k + row * tile.k_stride);
      const float v = *reinterpret_cast<const float*>(tile.v + row * tile.v_stride);
      const auto at = static_cast<size_t>(i);
      if (k != static_cast<float>(tokens[at]) || v != (i > 0 ? static_cast<float>(tokens[at - 1]) : -1)) return false;
    }
    return hit.length <= hit.cache->coverage();
  }
  std::vector<int> run(int n, int first, int step = 1) {
    std::vector<int> ids;
    for (int i = 0; i < n; ++i) ids.push_back(first + step * i);
    return ids;
  }
  static std::vector<int> joined(std::vector<int> a, const std::vector<int>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  std::shared_ptr<BlockPool> pool_ = BlockPool::create({}, false);
};

TEST_F(Prefixes, EverySplitPointIsFound) {
  PrefixTree tree(SIZE_MAX);
  const std::vector<int> text = run(200, 10);
  tree.insert("a", text, cache_of(text));
  for (int n = 0; n <= 200; ++n) {
    const std::vector<int> asked = joined({text.begin(), text.begin() + n}, {5, 6, 7});
    const auto hit = tree.find("a", asked);
    ASSERT_EQ(hit.length, n);
    ASSERT_TRUE(n == 0 || is_right(hit, asked)) << n;
  }
  EXPECT_EQ(tree.find("a", std::span(text).first(77)).length, 77);
  EXPECT_EQ(tree.find("b", text).length, 0) << "another space";
  EXPECT_EQ(tree.stats().bytes, 4 * kBlock);
}

TEST_F(Prefixes, WhatSeveralShareCountsOnce) {
  PrefixTree tree(SIZE_MAX);
  const std::vector<int> common = run(130, 10), a = joined(common, run(70, 1000)), b = joined(common, run(300, 5000));
  tree.insert("s", a, cache_of(a));
  const auto hit = tree.find("s", b);
  EXPECT_EQ(hit.length, 130);
  tree.insert("s", b, cache_of(b, hit));
  // a has 4 blocks. b has 7: the first two are a's, the third is a copy.
  EXPECT_EQ(tree.stats().bytes, (4 + 5) * kBlock);
  EXPECT_EQ(pool_->used_bytes(), (4 + 5) * kBlock);
  EXPECT_EQ(tree.find("s", a).length, 200);
  EXPECT_EQ(tree.find("s", b).length, 430);
}

TEST_F(Prefixes, ALongerOneStandsForWhatItBeginsWith) {
  PrefixTree tree(SIZE_MAX);
  const std::vector<int> text = run(300, 10);
  for (const int n : {100, 200, 300, 150}) {
    const std::vector<int> part(text.begin(), text.begin() + n);
    tree.insert("s", part, cache_of(part));
  }
  EXPECT_EQ(tree.stats().entries, 1u);
  EXPECT_EQ(tree.stats().bytes, 5 * kBlock);
  EXPECT_EQ(pool_->used_bytes(), 5 * kBlock);
}

TEST_F(Prefixes, WhatWasUsedLongestAgoGoesFirstAndFromItsEnd) {
  PrefixTree tree(7 * kBlock + kIndex);
  const std::vector<int> common = run(128, 10), a = joined(common, run(128, 1000)), b = joined(common, run(128, 5000));
  const std::vector<int> c = run(192, 9000);
  tree.insert("s", a, cache_of(a));
  tree.insert("s", b, cache_of(b, tree.find("s", b)));
  EXPECT_EQ(tree.stats().bytes, 6 * kBlock);
  EXPECT_EQ(tree.find("s", a).length, 256) << "now b is older";
  tree.insert("s", c, cache_of(c));
  EXPECT_EQ(tree.stats().evicted_tokens, 128);
  EXPECT_EQ(tree.find("s", b).length, 128) << "what a begins with too";
  EXPECT_EQ(tree.find("s", a).length, 256);
  EXPECT_EQ(tree.find("s", c).length, 192);
  EXPECT_EQ(tree.stats().bytes, 7 * kBlock);
  // a is older than c, but its prefix has been used since.
  EXPECT_EQ(tree.find("s", std::span(a).first(128)).length, 128);
  EXPECT_TRUE(tree.give_back(1));
  EXPECT_EQ(tree.stats().evicted_tokens, 128 + 64) << "one block is enough";
  EXPECT_TRUE(tree.give_back(1));
  EXPECT_EQ(tree.find("s", a).length, 128);
}

TEST_F(Prefixes, WhatIsHeldIsNotGivenUp) {
  PrefixTree tree(3 * kBlock + kIndex);
  const std::vector<int> a = run(128, 10), b = run(128, 1000), c = run(128, 5000);
  tree.insert("s", a, cache_of(a));
  auto lease = tree.find("s", a);
  tree.insert("s", b, cache_of(b));
  EXPECT_EQ(tree.find("s", b).length, 64) << "its end had to go itself";
  EXPECT_EQ(tree.find("s", a).length, 128);
  EXPECT_TRUE(tree.give_back(SIZE_MAX));
  EXPECT_EQ(tree.find("s", b).length, 0);
  EXPECT_FALSE(tree.give_back(1));
  lease = {};
  tree.insert("s", c, cache_of(c));
  EXPECT_EQ(tree.find("s", a).length, 64);
  EXPECT_EQ(tree.find("s", c).length, 128);
  EXPECT_TRUE(tree.give_back(SIZE_MAX));
  EXPECT_EQ(tree.stats().bytes, 0u);
  EXPECT_EQ(pool_->used_bytes(), 0u);
}

TEST_F(Prefixes, GiveWayWhenABudgetRefuses) {
  const auto budget = Budget::create(5 * kBlock, "ModelOptions::kv_ram");
  pool_ = BlockPool::create({budget});
  const auto shared = std::make_shared<PrefixTree>(SIZE_MAX);
  PrefixTree& tree = *shared;
  pool_->add_holder(shared);
  const std::vector<int> a = run(150, 10), b = run(100, 1000), c = run(256, 5000);
  tree.insert("s", a, cache_of(a));
  tree.insert("s", b, cache_of(b));
  const auto cache = cache_of(c);  // needs 4 of 5 blocks
  EXPECT_EQ(cache->coverage(), 256);
  EXPECT_LE(tree.stats().bytes, kBlock);
  EXPECT_FALSE(pool_->take(2 * kBlock)) << "when all is given up, it is refused";
}

// Random sequences over few tokens, so that they share prefixes, against the list of all of them.
TEST_F(Prefixes, RandomTextsEqualAList) {
  for (uint32_t seed = 0; seed < 25; ++seed) {
    std::mt19937 random(seed);
    PrefixTree tree(SIZE_MAX);
    std::map<std::string, std::vector<std::vector<int>>> known;
    for (int i = 0; i < 40; ++i) {
      const std::string space = random() % 4 == 0 ? "a" : "b";
      std::vector<int> text;
      const auto& list = known[space];
      if (!list.empty() && random() % 2 == 0) {
        text = list[random() % list.size()];
        text.resize(random() % (text.size() + 1));
      }
      for (auto more = random() % 90; more > 0; --more) text.push_back(static_cast<int>(random() % 3));
      size_t best = 0;
      for (const auto& other : known[space])
        best = std::max(best,
                        static_cast<size_t>(std::mismatch(text.begin(), text.end(), other.begin(), other.end()).first -
                                            text.begin()));
      auto hit = tree.find(space, text);
      ASSERT_EQ(static_cast<size_t>(hit.length), best) << seed << " " << i;
      ASSERT_TRUE(best == 0 || is_right(hit, text));
      if (!text.empty() && random() % 3 != 0) {
        tree.insert(space, text, cache_of(text, hit));
        known[space].push_back(text);
      }
      hit = {};
      ASSERT_EQ(tree.stats().bytes, pool_->used_bytes());
    }
    while (tree.give_back(1)) {
    }
    ASSERT_EQ(tree.stats().bytes, 0u);
    ASSERT_EQ(tree.stats().entries, 0u);
    ASSERT_EQ(pool_->used_bytes(), 0u);
  }
}

// With a limit, a hit may be shorter, but is never wrong.
TEST_F(Prefixes, UnderALimitNothingIsWrong) {
  for (uint32_t seed = 0; seed < 25; ++seed) {
    std::mt19937 random(seed);
    PrefixTree tree((2 + random() % 8) * kBlock + kIndex);
    std::vector<std::vector<int>> texts;
    std::vector<PrefixTree::Hit> leases;
    for (int i = 0; i < 60; ++i) {
      std::vector<int> text;
      if (!texts.empty() && random() % 2 == 0) {
        text = texts[random() % texts.size()];
        text.resize(random() % (text.size() + 1));
      }
      for (auto more = 1 + random() % 120; more > 0; --more) text.push_back(static_cast<int>(random() % 3));
      auto hit = tree.find("s", text);
      ASSERT_TRUE(hit.length == 0 || is_right(hit, text));
      tree.insert("s", text, cache_of(text, hit));
      texts.push_back(text);
      if (random() % 3 == 0) leases.push_back(std::move(hit));
      if (random() % 5 == 0) leases.clear();
      if (leases.empty()) hit = {};
    }
    leases.clear();
    while (tree.give_back(1)) {
    }
    ASSERT_EQ(pool_->used_bytes(), 0u);
    ASSERT_EQ(tree.stats().bytes, 0u);
  }
}

// Named so that the thread sanitizer runs it.
using ThreadsPrefixes = Prefixes;

TEST_F(ThreadsPrefixes, FindInsertAndGiveUpAtOnce) {
  const auto tree = std::make_shared<PrefixTree>(20 * kBlock + kIndex);
  pool_->add_holder(tree);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 60; ++i) {
        std::vector<int> text(1 + random() % 300);
        for (size_t at = 0; at < text.size(); ++at) text[at] = static_cast<int>(at / 40 * (random() % 50 == 0 ? 2 : 1));
        const auto hit = tree->find("s", text);
        ASSERT_TRUE(hit.length == 0 || is_right(hit, text));
        tree->insert("s", text, cache_of(text, hit));
        if (i % 10 == 0) pool_->shrink(kBlock);
      }
    });
  for (std::thread& thread : threads) thread.join();
  while (tree->give_back(1)) {
  }
  EXPECT_EQ(pool_->used_bytes(), 0u);
}

}  // namespace
}  // namespace kvasir
