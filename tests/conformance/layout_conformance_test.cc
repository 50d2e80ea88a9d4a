// The contract of every layout, for every layout and storage type of the build. A new file in layouts/ or dtype/ is
// tested without an edit here.
#include <gmock/gmock.h>

#include <climits>
#include <cmath>
#include <map>
#include <set>

#include "base/thread_pool.h"
#include "tests/support/layout_model.h"

namespace kvasir::conformance {
namespace {

using testing::HasSubstr;

class LayoutConformance : public testing::TestWithParam<Case> {
 protected:
  const LayoutInfo& info() const { return *GetParam().layout; }
  // Odd numbers, and a ceiling that is neither a power of two nor a multiple of 64.
  CacheShape shape(int max_ctx = 300) const { return {2, 2, 5, max_ctx, GetParam().type, GetParam().type}; }
  Sequence sequence(const CacheShape& s) const { return {make_layout(info(), s), distinct_values(s)}; }

  // Fills to `length` in chunks of 1 to 90 positions.
  static void fill(Sequence& seq, int length, std::mt19937& random) {
    while (seq.length < length) seq.append(std::min(length - seq.length, 1 + below(random, 90)));
  }
};

INSTANTIATE_TEST_SUITE_P(Every, LayoutConformance, testing::ValuesIn(cases()),
                         [](const auto& of) { return of.param.name(); });

// ---- the values of the tests ------------------------------------------------------------------------------------

TEST_P(LayoutConformance, TheTestsValuesStayDifferentWhenStored) {
  const Codec& codec = *GetParam().type->codec;
  if (codec.block_elems != 1) GTEST_SKIP() << "a block type cannot hold them; its rows differ as wholes";
  const CacheShape s = shape();
  const DistinctValues values(codec);
  const int64_t ids = place_id(s, {2, 0, 0, 0, 0, false});  // two versions of everything
  ASSERT_LE(ids, values.count());
  std::set<float> seen;
  for (int64_t id = 0; id < ids; ++id) {
    std::vector<std::byte> stored(codec.row_bytes(1));
    const float x = values(id);
    float back = 0;
    codec.encode_kv(&x, stored.data(), 1);
    codec.decode(stored.data(), &back, 1);
    seen.insert(back);
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(ids));
}

// ---- rows -------------------------------------------------------------------------------------------------------

TEST_P(LayoutConformance, HoldsWhatWasWrittenInAnyChunks) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    std::mt19937 random(seed);
    const CacheShape s = shape();
    Sequence seq = sequence(s);
    while (seq.length < s.max_ctx) {
      seq.append(std::min(s.max_ctx - seq.length, 1 + below(random, 90)));
      ASSERT_EQ(seq.layout->coverage(), seq.length);
      ASSERT_EQ(seq.wrong(seq.length), "");
    }
  }
}

TEST_P(LayoutConformance, HoldsWhatWasWrittenInOnePass) {
  const CacheShape s = shape();
  Sequence seq = sequence(s);
  seq.append(s.max_ctx);
  EXPECT_EQ(seq.wrong(s.max_ctx), "");
}

TEST_P(LayoutConformance, TilesAreExactForEveryEnd) {
  const CacheShape s = shape(200);
  Sequence seq = sequence(s);
  seq.append(200);
  for (int end = 0; end <= 200; ++end) ASSERT_EQ(seq.wrong(end), "") << end;
}

TEST_P(LayoutConformance, KAndVMayDifferInType) {
  for (const KvType* other : plain_kv_types()) {
    CacheShape s = shape(150);
    s.v = other;
    Sequence seq = sequence(s);
    for (const int count : {70, 1, 79}) seq.append(count);
    EXPECT_EQ(seq.wrong(150), "") << other->name;
    EXPECT_TRUE(info().recomputes || seq.layout->bytes() == info().bytes(s, 150)) << other->name;
  }
}

// Number of values that saturate if a block starts with x: 0 or 1 for a scalar type.
int64_t lost_of(const Codec& codec, float x) {
  std::vector<float> block(static_cast<size_t>(codec.block_elems), 0.0f);
  block[0] = x;
  std::vector<std::byte> stored(static_cast<size_t>(codec.block_bytes));
  return codec.encode_kv(block.data(), stored.data(), codec.block_elems);
}

TEST_P(LayoutConformance, CountsTheValuesThatSaturate) {
  const CacheShape s = shape(3);
  const auto layout = make_layout(info(), s);
  auto growth = layout->prepare(2);
  ASSERT_TRUE(growth);
  layout->apply(std::move(*growth));
  std::vector<float> k(10, 0.25f), v(10, 0.25f);
  layout->write(1, 0, k.data(), v.data());
  EXPECT_EQ(layout->saturated(), 0);
  k[1] = 3e38f;
  k[9] = v[4] = -3e38f;
  const int64_t one = lost_of(*s.k->codec, 3e38f);
  layout->write(1, 0, k.data(), v.data());
  EXPECT_EQ(layout->saturated(), 3 * one);
  layout->write(0, 1, k.data(), v.data());
  EXPECT_EQ(layout->saturated(), 6 * one);
  EXPECT_EQ(forked(*layout)->saturated(), 6 * one);
}

// ---- prepare, then apply -------------------------------------------------------------------------------------------

TEST_P(LayoutConformance, PlanChangesNothing) {
  std::mt19937 random(7);
  const CacheShape s = shape();
  Sequence seq = sequence(s);
  for (const int length : {0, 1, 64, 130, 300}) {
    fill(seq, length, random);
    const State before = seq.state();
    for (const int end : {0, length, length + 1, length + 100, 300}) {
      if (end > 300) continue;
      const auto growth = seq.layout->prepare(end);
      ASSERT_TRUE(growth) << growth.error().message();
      State held = seq.state();
      ASSERT_GE(held.live, before.live);
      held.live = before.live;  // differs by the memory of the growth itself
      ASSERT_EQ(held, before) << end;
    }
    ASSERT_EQ(seq.state(), before) << "after dropping the growths";
  }
}

TEST_P(LayoutConformance, PastTheContextIsRefusedAndChangesNothing) {
  std::mt19937 random(8);
  Sequence seq = sequence(shape());
  for (const int length : {0, 150, 300}) {
    fill(seq, length, random);
    const State before = seq.state();
    for (const int end : {301, 302, 512, 1 << 20, INT_MAX}) {
      const auto growth = seq.layout->prepare(end);
      ASSERT_FALSE(growth) << end;
      EXPECT_THAT(growth.error().message(), HasSubstr(std::to_string(end)));
      EXPECT_THAT(growth.error().message(), HasSubstr("300"));
      EXPECT_THAT(growth.error().hint, HasSubstr("SessionOptions::ctx"));
      ASSERT_EQ(seq.state(), before);
    }
    ASSERT_EQ(seq.wrong(length), "");
  }
}

TEST_P(LayoutConformance, WithoutMemoryItSaysSo) {
  const size_t before = live_bytes(Owner::kv);
  const CacheShape absurd{1 << 20, 1 << 18, 1 << 18, 1 << 20, GetParam().type, GetParam().type};
  auto layout = info().make(absurd);
  if (layout) {  // it takes memory only when it growths
    auto growth = (*layout)->prepare(1);
    ASSERT_FALSE(growth);
    EXPECT_THAT(growth.error().message(), HasSubstr("cannot map"));
    EXPECT_EQ((*layout)->coverage(), 0);
  } else {
    EXPECT_THAT(layout.error().message(), HasSubstr("cannot map"));
  }
  EXPECT_EQ(live_bytes(Owner::kv), before);
}

// ---- truncation -------------------------------------------------------------------------------------------------

TEST_P(LayoutConformance, TruncationIsExactAndWhatIsRetypedReplacesIt) {
  std::mt19937 random(9);
  Sequence seq = sequence(shape());
  fill(seq, 200, random);
  for (const int length : {200, 199, 130, 129, 128, 65, 64, 63, 1, 0}) {
    seq.truncate(length);
    ASSERT_EQ(seq.layout->coverage(), length);
    ASSERT_EQ(seq.wrong(length), "");
    fill(seq, length + 3, random);
    ASSERT_EQ(seq.wrong(length + 3), "") << "retyped from " << length;
    seq.truncate(length);
  }
  fill(seq, 300, random);
  EXPECT_EQ(seq.wrong(300), "");
}

TEST_P(LayoutConformance, TruncationOutOfRangeIsRefusedAndChangesNothing) {
  std::mt19937 random(10);
  Sequence seq = sequence(shape());
  for (const int length : {0, 5, 64, 200}) {
    fill(seq, length, random);
    const State before = seq.state();
    for (const int to : {-1, INT_MIN, length + 1, 300, 301, INT_MAX}) {
      const auto refused = seq.layout->truncate(to);
      ASSERT_FALSE(refused) << to;
      EXPECT_THAT(refused.error().message(), HasSubstr(std::to_string(to)));
      ASSERT_EQ(seq.state(), before);
    }
    ASSERT_EQ(seq.wrong(length), "");
  }
}

// ---- steps and bytes ----------------------------------------------------------------------------------------------

TEST_P(LayoutConformance, TheEndOfAStepForgetsExactlyIfTheLayoutSaysSo) {
  const size_t before = live_bytes(Owner::kv);
  const CacheShape s = shape();
  Sequence seq = sequence(s);
  for (const int count : {70, 1, 129}) {
    seq.append(count);
    const int length = seq.layout->coverage();
    const size_t bytes = seq.layout->bytes();
    seq.end_step();
    EXPECT_EQ(seq.layout->coverage(), info().recomputes ? 0 : length);
    EXPECT_EQ(seq.layout->bytes(), info().recomputes ? 0u : bytes);
    EXPECT_EQ(live_bytes(Owner::kv), before + seq.layout->bytes());
    EXPECT_EQ(seq.wrong(seq.length), "");
  }
}

// One step up to position n: a layout that keeps its rows writes the new ones, one that forgets writes all of them
// again.
void step_to(Sequence& seq, int n) {
  seq.append(n - seq.layout->coverage());
  seq.end_step();
}

TEST_P(LayoutConformance, BytesAreKnownBeforehandAndEqualEveryCounter) {
  const size_t before = live_bytes(Owner::kv);
  const CacheShape s = shape();
  {
    Sequence seq = sequence(s);
    for (int n = 0; n <= s.max_ctx; ++n) {
      if (n > 0) step_to(seq, n);
      const Layout& layout = *seq.layout;
      ASSERT_EQ(layout.bytes(), info().bytes(s, n)) << n;
      ASSERT_EQ(layout.bytes(), live_bytes(Owner::kv) - before) << n;
      ASSERT_GE(layout.bytes(), info().recomputes ? 0 : static_cast<size_t>(n) * s.position_bytes()) << n;
      ASSERT_GE(layout.peak_bytes(), layout.bytes());
      ASSERT_LE(layout.peak_bytes(), info().peak_bytes(s, n)) << n;
    }
    EXPECT_EQ(seq.wrong(seq.length), "");
  }
  EXPECT_EQ(live_bytes(Owner::kv), before) << "all of it comes back";
}

TEST_P(LayoutConformance, BytesOfAPositionAreHeadsTimesWholeBlocks) {
  const Codec& codec = *GetParam().type->codec;
  const CacheShape s = shape();
  const size_t blocks = static_cast<size_t>(std::ceil(5.0 / codec.block_elems));
  EXPECT_EQ(s.position_bytes(), size_t{2} * 2 * 2 * blocks * static_cast<size_t>(codec.block_bytes));
}

TEST_P(LayoutConformance, ASequenceOfOnePositionWorks) {
  const CacheShape s = shape(1);
  Sequence seq = sequence(s);
  seq.append(1);
  EXPECT_EQ(seq.wrong(1), "");
  EXPECT_FALSE(seq.layout->prepare(2));
  EXPECT_LE(seq.layout->peak_bytes(), info().peak_bytes(s, 1));
}

// ---- random operations ------------------------------------------------------------------------------------------

class RandomOperations {
 public:
  RandomOperations(const LayoutInfo& info, const KvType* type, uint32_t seed) : random_(seed) {
    static constexpr int kContexts[] = {1, 7, 63, 64, 65, 128, 130, 200};
    shape_ = {2, 2, 3, kContexts[below(random_, 8)], type, type};
    before_ = live_bytes(Owner::kv);
    seq_ = std::make_unique<Sequence>(make_layout(info, shape_), distinct_values_of(*type->codec));
  }

  void run() {
    for (int i = 0; i < 8 && !testing::Test::HasFailure(); ++i) {
      one();
      const Layout& layout = *seq_->layout;
      ASSERT_EQ(layout.coverage(), seq_->length);
      ASSERT_GE(layout.capacity(), seq_->length);
      ASSERT_EQ(layout.bytes(), live_bytes(Owner::kv) - before_);
      ASSERT_EQ(seq_->wrong(below(random_, 2), below(random_, seq_->length + 1)), "");
    }
    ASSERT_EQ(seq_->wrong(seq_->length), "");
    seq_.reset();
    ASSERT_EQ(live_bytes(Owner::kv), before_);
  }

 private:
  // The table of a codec's values is large, so it is built once.
  ValueAt distinct_values_of(const Codec& codec) {
    static std::map<const Codec*, DistinctValues> made;
    const DistinctValues& values = made.try_emplace(&codec, codec).first->second;
    return [&values, shape = shape_](const Place& p) { return values(place_id(shape, p)); };
  }

  void one() {
    const int room = shape_.max_ctx - seq_->length;
    switch (below(random_, 10)) {
      case 0:
        return refused_growth();
      case 1:
        return dropped_growth();
      case 2:
        return refused_truncation();
      case 3:
        return seq_->truncate(below(random_, seq_->length + 1));
      case 4:
        return seq_->end_step();
      case 5:
        return seq_->append(room);
      case 6:
      case 7:
        return seq_->append(std::min(room, 1));
      default:
        return seq_->append(std::min(room, 1 + below(random_, 70)));
    }
  }
  void refused_growth() {
    const State before = seq_->state();
    ASSERT_FALSE(seq_->layout->prepare(shape_.max_ctx + 1 + below(random_, 1000)));
    ASSERT_EQ(seq_->state(), before);
  }
  void dropped_growth() {
    const State before = seq_->state();
    ASSERT_TRUE(seq_->layout->prepare(below(random_, shape_.max_ctx + 1)));
    ASSERT_EQ(seq_->state(), before);
  }
  void refused_truncation() {
    const State before = seq_->state();
    ASSERT_FALSE(seq_->layout->truncate(seq_->length + 1 + below(random_, 100)));
    ASSERT_FALSE(seq_->layout->truncate(-1 - below(random_, 100)));
    ASSERT_EQ(seq_->state(), before);
  }

  std::mt19937 random_;
  CacheShape shape_;
  size_t before_ = 0;
  std::unique_ptr<Sequence> seq_;
};

// Over every layout and type, more than 10,000 sequences in all.
TEST_P(LayoutConformance, RandomSequencesEqualThePlainModel) {
  for (uint32_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomOperations(info(), GetParam().type, seed).run();
  }
}

// ---- threads ------------------------------------------------------------------------------------------------------

class Layouts : public LayoutConformance {};

INSTANTIATE_TEST_SUITE_P(Threads, Layouts, testing::ValuesIn(cases()), [](const auto& of) { return of.param.name(); });

TEST_P(Layouts, DistinctPositionsMayBeWrittenAtOnce) {
  const CacheShape s = shape(130);
  Sequence one = sequence(s), many = sequence(s);
  auto pool = ThreadPool::create(4);
  ASSERT_TRUE(pool) << pool.error().message();
  for (const int end : {60, 61, 130}) {
    const int first = one.layout->coverage();
    one.append(end - first);
    many.room(end);
    for (int layer = 0; layer < s.layers; ++layer) {
      (*pool)->run(end - first, [&](int t, int) {
        std::vector<float> k, v;
        many.floats(layer, first + t, false, &k);
        many.floats(layer, first + t, true, &v);
        many.layout->write(layer, first + t, k.data(), v.data());
      });
    }
    many.layout->commit(end);
    ASSERT_EQ(many.state().rows, one.state().rows);
    ASSERT_EQ(many.layout->saturated(), one.layout->saturated());
  }
}

// ---- what growing costs -------------------------------------------------------------------------------------------

class LayoutCosts : public testing::TestWithParam<int> {
 protected:
  // A sequence after n steps of one token each in a context of GetParam() positions.
  static Sequence stepped(std::string_view name, int n) {
    const auto info = find_layout(name);
    EXPECT_TRUE(info) << info.error().message();
    const CacheShape s{1, 1, 2, GetParam(), kv_type_of(codec_f32()), kv_type_of(codec_f32())};
    Sequence seq(make_layout(**info, s), distinct_values(s));
    for (int i = 1; i <= n; ++i) step_to(seq, i);
    return seq;
  }
};

INSTANTIATE_TEST_SUITE_P(Context, LayoutCosts, testing::Values(1, 63, 64, 65, 100, 128, 129, 300),
                         [](const auto& of) { return std::to_string(of.param); });

TEST_P(LayoutCosts, ConcatCopiesNTimesNMinusOneHalvesPositions) {
  const size_t n = static_cast<size_t>(GetParam());
  const Sequence seq = stepped("concat", GetParam());
  EXPECT_EQ(seq.layout->copied_rows(), n * (n - 1) / 2);
  EXPECT_EQ(seq.layout->growths(), GetParam());
}

TEST_P(LayoutCosts, GrowCopiesAtMostLogTwoOfTheContextTimes) {
  const int most = GetParam() <= 64 ? 0 : static_cast<int>(std::ceil(std::log2(GetParam() / 64.0)));
  const Sequence seq = stepped("grow", GetParam());
  EXPECT_EQ(seq.layout->growths(), most) << "it ends full, so it takes every one";
  EXPECT_LT(seq.layout->copied_rows(), static_cast<size_t>(2 * GetParam()));
}

TEST_P(LayoutCosts, DenseAndNoneCopyNothing) {
  for (const char* name : {"dense", "none"}) {
    const Sequence seq = stepped(name, GetParam());
    EXPECT_EQ(seq.layout->copied_rows(), 0u) << name;
  }
  EXPECT_EQ(stepped("dense", GetParam()).layout->growths(), 0);
}

TEST(LayoutRegistry, NamesAreUniqueAndFindable) {
  std::set<std::string_view> names;
  for (const LayoutInfo* info : layouts()) {
    EXPECT_TRUE(names.insert(info->name).second) << info->name;
    EXPECT_FALSE(info->summary.empty() || info->trade.empty()) << info->name;
    const auto found = find_layout(info->name);
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, info);
    const CacheShape s{1, 1, 1, 1, kv_type_of(codec_f32()), kv_type_of(codec_f32())};
    EXPECT_EQ(&make_layout(*info, s)->info(), info);
  }
  for (const char* needed : {"none", "concat", "dense", "grow", "reserve", "paged", "windowed"})
    EXPECT_TRUE(names.contains(needed)) << needed;
}

TEST(LayoutRegistry, AnUnknownNameIsRefusedWithTheChoices) {
  for (const char* name : {"", "Grow", "grow ", "pagedd"}) {
    const auto refused = find_layout(name);
    ASSERT_FALSE(refused) << name;
    EXPECT_THAT(refused.error().message(), HasSubstr(fmt::format("SessionOptions::layout: \"{}\"", name)));
    for (const LayoutInfo* info : layouts()) EXPECT_THAT(refused.error().hint, HasSubstr(std::string(info->name)));
  }
}

}  // namespace
}  // namespace kvasir::conformance
