// Layers with windows: every row that a query may see is there, every row is right, bytes stay constant, and a
// truncation that needs forgotten rows is refused. For every layout, since those that forget nothing must pass too.
#include <gmock/gmock.h>

#include <map>

#include "cache/block_pool.h"
#include "tests/support/layout_model.h"

namespace kvasir::conformance {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A model of a ring of the layout's documented size: the last position written to each row.
class RingModel {
 public:
  RingModel(const CacheShape& shape, int layer)
      : window_(shape.window(layer)),
        sinks_(shape.sinks),
        ring_((window_ - 1 + shape.lookahead + 63) / 64 * 64),
        forgets_(window_ > 0 && ring_ < shape.max_ctx) {}

  void write(int pos) { rows_[pos % ring_] = pos; }
  bool holds(int pos) const {
    if (!forgets_ || pos < sinks_) return true;
    const auto at = rows_.find(pos % ring_);
    return at != rows_.end() && at->second == pos;
  }
  bool holds_all_for(int query) const {
    for (int pos = 0; pos < query; ++pos)
      if (is_seen(query, pos, window_, sinks_) && !holds(pos)) return false;
    return true;
  }

 private:
  int window_, sinks_, ring_;
  bool forgets_;
  std::map<int, int> rows_;
};

class WindowedSequence {
 public:
  WindowedSequence(const LayoutInfo& info, const CacheShape& shape)
      : info_(info), seq_(make_layout(info, shape), distinct_values(shape)) {
    for (int layer = 0; layer < shape.layers; ++layer) rings_.emplace_back(shape, layer);
  }

  const CacheShape& shape() const { return seq_.layout->shape(); }
  Layout& layout() { return *seq_.layout; }
  int length() const { return seq_.length; }

  void append(int count) {
    for (int pos = seq_.length; pos < seq_.length + count; ++pos)
      for (RingModel& ring : rings_) ring.write(pos);
    seq_.append(count);
    reached_ = std::max(reached_, seq_.length);
  }
  /// Returns whether the truncation was done, which must agree with the model.
  bool truncate(int to) {
    bool possible = !info_.drops_old;
    if (info_.drops_old)
      possible = std::all_of(rings_.begin(), rings_.end(), [&](const RingModel& r) { return r.holds_all_for(to); });
    if (possible) {
      seq_.truncate(to);
      return true;
    }
    const State before = seq_.state();
    const auto refused = seq_.layout->truncate(to);
    EXPECT_FALSE(refused) << "to " << to << " of " << seq_.length;
    const std::string message = refused ? "" : refused.error().message();
    EXPECT_THAT(message, AllOf(HasSubstr(std::to_string(to)), HasSubstr("window")));
    EXPECT_EQ(seq_.state(), before);
    return false;
  }

  std::string wrong() const { return seq_.wrong_for_the_next(); }
  int reached() const { return reached_; }

 private:
  const LayoutInfo& info_;
  Sequence seq_;
  std::vector<RingModel> rings_;
  int reached_ = 0;
};

class WindowConformance : public testing::TestWithParam<Case> {
 protected:
  const LayoutInfo& info() const { return *GetParam().layout; }
  CacheShape shape(std::vector<int> windows, int sinks, int lookahead, int max_ctx = 700) const {
    CacheShape s{static_cast<int>(windows.size()), 2, 3, max_ctx, GetParam().type, GetParam().type};
    s.windows = std::move(windows);
    s.sinks = sinks;
    s.lookahead = lookahead;
    return s;
  }
};

// The place of a row does not depend on its type, so one scalar type and one block type stand for all; the other suites
// run all types.
std::vector<Case> window_cases() {
  std::vector<Case> some = cases();
  std::erase_if(some, [](const Case& c) { return c.type->name != "f32" && c.type->name != "q4_0"; });
  return some;
}

INSTANTIATE_TEST_SUITE_P(Every, WindowConformance, testing::ValuesIn(window_cases()),
                         [](const auto& of) { return of.param.name(); });

TEST_P(WindowConformance, WhatTheWindowSeesIsThereHoweverItWasTyped) {
  if (info().recomputes) GTEST_SKIP() << "it holds nothing between steps";
  for (const int lookahead : {1, 64, 100})
    for (const int sinks : {0, 4, 64}) {
      WindowedSequence seq(info(), shape({50, 50}, sinks, lookahead));
      std::mt19937 random(3);
      while (seq.length() < 700) {
        seq.append(std::min(700 - seq.length(), 1 + below(random, lookahead)));
        if (lookahead == 1 && seq.length() % 31 != 0) continue;
        ASSERT_EQ(seq.wrong(), "") << lookahead << " " << sinks << " " << seq.length();
      }
    }
}

TEST_P(WindowConformance, BytesAreKnownBeforehandAndEqualEveryCounter) {
  if (info().recomputes) GTEST_SKIP() << "holds nothing between steps";
  const size_t before = live_bytes(Owner::kv);
  for (const int sinks : {0, 5}) {
    const CacheShape s = shape(sinks > 0 ? std::vector{40, 40} : std::vector{0, 40, 1, 300}, sinks, 30);
    WindowedSequence seq(info(), s);
    while (seq.length() < s.max_ctx) {
      seq.append(std::min(s.max_ctx - seq.length(), 10));
      ASSERT_EQ(seq.layout().bytes(), info().bytes(s, seq.length()));
      ASSERT_EQ(seq.layout().bytes(), live_bytes(Owner::kv) - before);
      ASSERT_LE(seq.layout().peak_bytes(), info().peak_bytes(s, seq.length()));
    }
  }
  EXPECT_EQ(live_bytes(Owner::kv), before);
}

TEST_P(WindowConformance, ForksGoTheirOwnWay) {
  if (info().recomputes) GTEST_SKIP() << "it holds nothing between steps";
  const CacheShape s = shape({0, 40}, 0, 30, 300);
  Sequence seq(make_layout(info(), s), distinct_values(s));
  for (int i = 0; i < 9; ++i) seq.append(23);
  const std::vector<float> rows = seq.state().rows;
  Sequence other(forked(*seq.layout), distinct_values(s));
  ASSERT_EQ(other.layout->coverage(), seq.length);
  ASSERT_EQ(other.state().rows, rows);
  other.version = 1;  // different rows from here on
  for (int i = 0; i < 3; ++i) other.append(17);
  EXPECT_EQ(seq.state().rows, rows) << "what one writes the other does not see";
  for (int i = 0; i < 2; ++i) seq.append(30);
  const std::vector<float> others = other.state().rows;
  seq.layout.reset();
  EXPECT_EQ(other.state().rows, others);
}

TEST_P(WindowConformance, RandomOperationsEqualThePlainModel) {
  if (info().recomputes) GTEST_SKIP() << "it holds nothing between steps";
  int done = 0, refused = 0;
  for (uint32_t seed = 0; seed < 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    const int sinks = seed % 3 == 0 ? 1 + below(random, 64) : 0, window = 1 + below(random, 90);
    const std::vector<int> windows = sinks > 0 ? std::vector{window} : std::vector{window, 0, 1 + below(random, 200)};
    WindowedSequence seq(info(), shape(windows, sinks, 1 + below(random, 70), 200 + below(random, 300)));
    for (int i = 0; i < 14 && !HasFailure(); ++i) {
      const int room = std::min(seq.shape().max_ctx - seq.length(), seq.shape().lookahead);
      if (below(random, 4) == 0)
        (seq.truncate(below(random, 3) == 0 ? below(random, seq.length() + 1)
                                            : std::max(0, seq.length() - below(random, seq.shape().lookahead)))
             ? done
             : refused) += 1;
      else if (room > 0)
        seq.append(1 + below(random, room));
      ASSERT_EQ(seq.wrong(), "");
    }
  }
  EXPECT_GT(done, 50);
  EXPECT_TRUE(!info().drops_old || refused > 10) << refused;
}

TEST(Windowed, AFullRingIsWhatTheWindowAndAPassNeed) {
  const LayoutInfo& windowed = **find_layout("windowed");
  CacheShape s{3, 2, 64, 1 << 20, kv_type_of(codec_f32()), kv_type_of(codec_f32())};
  s.windows = {1000, 1000, 1000};
  s.sinks = 4;
  s.lookahead = 256;
  // 999 + 256 = 1255 positions, in whole tiles 1280; and 4 sinks; rows of 512 bytes, in whole pages.
  const size_t rows = 1280 + 4, pages = (rows * 512 + 4095) / 4096 * 4096;
  EXPECT_EQ(windowed.bytes(s, 1 << 20), 3 * 2 * pages);
  EXPECT_EQ(windowed.bytes(s, 1 << 20), windowed.bytes(s, 1280));
  EXPECT_LT(windowed.bytes(s, 100), windowed.bytes(s, 1280));
}

TEST(Paged, AForkCopiesTheBlockThatItWritesAndNoOther) {
  const CacheShape s{2, 2, 8, 1000, kv_type_of(codec_f32()), kv_type_of(codec_f32())};
  const auto pool = BlockPool::create();
  Sequence seq((*(*find_layout("paged"))->make(s, pool)), distinct_values(s));
  seq.append(200);  // 3 whole blocks and 8 positions
  const size_t block = 64 * s.position_bytes();
  EXPECT_EQ(pool->used_bytes(), 4 * block);
  std::vector<Sequence> forks;
  for (int i = 0; i < 8; ++i) {
    forks.emplace_back(forked(*seq.layout, pool), distinct_values(s));
    forks.back().version = i + 1;
  }
  EXPECT_EQ(pool->used_bytes(), 4 * block);
  for (Sequence& fork : forks) fork.append(1);
  EXPECT_EQ(pool->used_bytes(), (4 + 8) * block) << "each has the last block for itself";
  EXPECT_EQ(forks[0].layout->copied_rows(), 8u);
  seq.append(1);
  EXPECT_EQ(pool->used_bytes(), (4 + 8) * block) << "and so has the first, which had nothing to copy";
  EXPECT_EQ(seq.layout->copied_rows(), 0u);
  EXPECT_EQ(seq.wrong(201), "");
  forks.clear();
  seq.truncate(0);
  EXPECT_EQ(pool->used_bytes(), 0u);
}

TEST(Paged, ARefusedBlockChangesNothing) {
  const CacheShape s{2, 2, 8, 1000, kv_type_of(codec_f32()), kv_type_of(codec_f32())};
  const size_t block = 64 * s.position_bytes();
  const auto budget = Budget::create(3 * block, "ModelOptions::kv_ram");
  const auto pool = BlockPool::create({budget});
  Sequence a(*(*find_layout("paged"))->make(s, pool), distinct_values(s)),
      b(*(*find_layout("paged"))->make(s, pool), distinct_values(s));
  a.append(100);
  b.append(64);
  const State before = b.state();
  const auto refused = b.layout->prepare(65);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("ModelOptions::kv_ram"));
  EXPECT_EQ(b.state(), before);
  a.truncate(10);
  b.append(1);
  EXPECT_EQ(b.wrong(65), "");
  EXPECT_EQ(a.wrong(10), "");
}

}  // namespace
}  // namespace kvasir::conformance
