// Positions adopted from one cache into another, directly or through a file: every pair of layouts, any length, with
// and without windows. The rows are right, the next query sees every row it needs, and the two caches then continue
// independently.
#include "cache/block_pool.h"
#include "cache/share/snapshot.h"
#include "tests/support/layout_model.h"
#include "tests/support/temp_files.h"

namespace kvasir::conformance {
namespace {

struct Pair {
  const LayoutInfo *from, *to;
};
std::ostream& operator<<(std::ostream& out, const Pair& p) { return out << p.from->name << "_to_" << p.to->name; }

std::vector<Pair> pairs() {
  std::vector<Pair> all;
  for (const LayoutInfo* from : layouts())
    for (const LayoutInfo* to : layouts())
      if (!from->recomputes && !to->recomputes) all.push_back({from, to});
  return all;
}

class AdoptConformance : public testing::TestWithParam<Pair> {
 protected:
  std::unique_ptr<Layout> made(const LayoutInfo& info, const CacheShape& shape) {
    auto layout = info.make(shape, pool_);
    EXPECT_TRUE(layout) << layout.error().message();
    return std::move(*layout);
  }
  const std::shared_ptr<BlockPool> pool_ = BlockPool::create();
};

CacheShape random_shape(std::mt19937& random) {
  const KvType* types[] = {*find_kv_type("f32"), *find_kv_type("q8_0")};
  CacheShape s{3, 2, 3, 200 + below(random, 300), types[random() % 2], types[random() % 2]};
  const int window = 1 + below(random, 90);
  if (random() % 3 == 0) s.windows = {window, 0, 1 + below(random, 200)};
  if (random() % 3 == 1) {
    s.windows = {window, window, window};
    s.sinks = below(random, 65);
  }
  s.lookahead = 1 + below(random, 70);
  return s;
}

// Appends passes of random lengths and truncates where possible. A refused truncation must need rows that were
// forgotten.
void go_on(Sequence& seq, std::mt19937& random, bool may_refuse) {
  for (int i = 0; i < 6; ++i) {
    const CacheShape& s = seq.layout->shape();
    const int room = std::min(s.max_ctx - seq.length, s.lookahead), to = below(random, seq.length + 1);
    if (random() % 3 != 0 && room > 0)
      seq.append(1 + below(random, room));
    else if (!may_refuse || seq.layout->check_length(to))
      seq.truncate(to);
    ASSERT_EQ(seq.wrong_for_the_next(), "");
  }
}

TEST_P(AdoptConformance, AnyLengthGoesOverAndGoesOn) {
  int adopted = 0;
  for (uint32_t seed = 0; seed < 12 && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    CacheShape shape = random_shape(random);
    Sequence from(made(*GetParam().from, shape), distinct_values(shape));
    go_on(from, random, GetParam().from->drops_old);
    const int n = random() % 4 == 0 ? from.length : below(random, from.length + 1);
    if (!from.layout->check_length(n)) {
      ASSERT_TRUE(GetParam().from->drops_old);
      auto to = made(*GetParam().to, shape);
      EXPECT_FALSE(to->adopt(*from.layout, n));
      EXPECT_EQ(to->coverage(), 0);
      continue;
    }
    const State before = from.state();
    shape.lookahead = 1 + below(random, 70);
    Sequence to = from.adopted(made(*GetParam().to, shape), n);
    ASSERT_EQ(to.layout->coverage(), n);
    ASSERT_EQ(to.wrong_for_the_next(), "");
    adopted += n > 0;
    go_on(to, random, GetParam().from->drops_old || GetParam().to->drops_old);
    ASSERT_EQ(from.state().rows, before.rows) << "the other has written into it";
    go_on(from, random, GetParam().from->drops_old);
    ASSERT_EQ(to.wrong_for_the_next(), "");
  }
  EXPECT_GT(adopted, 5);
}

TEST_P(AdoptConformance, AFileGoesOverAndGoesOn) {
  const format_test::TempFolder folder;
  for (uint32_t seed = 0; seed < 6 && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(1000 + seed);
    CacheShape shape = random_shape(random);
    Sequence from(made(*GetParam().from, shape), distinct_values(shape));
    go_on(from, random, GetParam().from->drops_old);
    const std::vector<int> tokens(static_cast<size_t>(from.length), 5);
    const auto saved = save_snapshot(folder / "s", *from.layout, tokens, std::string(32, 'a'));
    ASSERT_TRUE(saved) << saved.error().message();
    const auto snapshot = Snapshot::open(folder / "s");
    ASSERT_TRUE(snapshot) << snapshot.error().message();
    EXPECT_EQ(snapshot->header().positions, from.length);
    shape.lookahead = 1 + below(random, 70);
    auto to = made(*GetParam().to, shape);
    const auto loaded = snapshot->load(to.get());
    ASSERT_TRUE(loaded) << loaded.error().message();
    Sequence other = from.copied(std::move(to), from.length);
    ASSERT_EQ(other.layout->coverage(), from.length);
    ASSERT_EQ(other.wrong_for_the_next(), "");
    go_on(other, random, GetParam().from->drops_old || GetParam().to->drops_old);
  }
}

TEST_P(AdoptConformance, MoreThanItMayHoldIsRefused) {
  CacheShape shape{2, 2, 3, 300, kv_type_of(codec_f32()), kv_type_of(codec_f32())};
  Sequence from(made(*GetParam().from, shape), distinct_values(shape));
  from.append(200);
  shape.max_ctx = 199;
  const auto to = made(*GetParam().to, shape);
  EXPECT_FALSE(to->adopt(*from.layout, 200));
  EXPECT_EQ(to->coverage(), 0);
  EXPECT_TRUE(to->adopt(*from.layout, 199));
}

INSTANTIATE_TEST_SUITE_P(Every, AdoptConformance, testing::ValuesIn(pairs()), testing::PrintToStringParamName());

TEST(Paged, AdoptingFromAnotherPoolCopies) {
  const CacheShape s{2, 2, 8, 1000, kv_type_of(codec_f32()), kv_type_of(codec_f32())};
  const LayoutInfo& paged = **find_layout("paged");
  const auto one = BlockPool::create(), other = BlockPool::create();
  Sequence from(*paged.make(s, one), distinct_values(s));
  from.append(200);
  const size_t block = 64 * s.position_bytes();
  {
    const Sequence shared = from.adopted(*paged.make(s, one), 130);
    EXPECT_EQ(one->used_bytes(), 4 * block);
    const Sequence copied = from.adopted(*paged.make(s, other), 130);
    EXPECT_EQ(other->used_bytes(), 3 * block);
    EXPECT_EQ(copied.wrong(130), "");
  }
  EXPECT_EQ(other->used_bytes(), 0u);
}

}  // namespace
}  // namespace kvasir::conformance
