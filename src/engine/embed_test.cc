// Embeddings against the final-norm states, and the textbook's interface over one KVCache against sessions.
#include <cmath>

#include <kvasir/kv_cache.h>

#include "tests/support/engines.h"

namespace kvasir {
namespace {

using engine_test::AllOf;
using engine_test::HasSubstr;
using engine_test::message_of;
using engine_test::Opened;
using tiny::same_bits;

std::vector<float> states(Opened& opened, const std::vector<int>& ids) {
  Session session = opened.session();
  engine_test::Copied out;
  const Feed feed{.session = &session, .tokens = ids, .hidden = true};
  EXPECT_TRUE(engine_test::step(opened.engine(), {&feed, 1}, &out));
  return out.hidden;
}

TEST(Embed, IsTheMeanOrTheLastStateNormalised) {
  for (const tiny::Model& model : {tiny::llama(), tiny::gpt2()})
    for (int n : {1, 5, 90}) {
      Opened opened(model, {.threads = 2, .prefill_chunk = 32});
      const std::vector<int> ids = tiny::ids(n);
      const std::vector<float> hidden = states(opened, ids);
      ASSERT_EQ(hidden.size(), static_cast<size_t>(n) * 24);
      for (Pooling pooling : {Pooling::mean, Pooling::last}) {
        std::vector<double> sum(24);
        for (int t = pooling == Pooling::last ? n - 1 : 0; t < n; ++t)
          for (size_t d = 0; d < 24; ++d) sum[d] += static_cast<double>(hidden[static_cast<size_t>(t) * 24 + d]) / n;
        double norm = 0;
        for (double x : sum) norm += x * x;
        Session session = opened.session();
        const auto v = opened.engine().embed(session, ids, pooling);
        ASSERT_TRUE(v) << message_of(v);
        ASSERT_EQ(v->size(), 24u);
        double length = 0;
        for (size_t d = 0; d < 24; ++d) {
          EXPECT_NEAR((*v)[d], sum[d] / std::sqrt(norm), 1e-6);
          length += static_cast<double>((*v)[d]) * static_cast<double>((*v)[d]);
        }
        EXPECT_NEAR(length, 1.0, 1e-6);
      }
    }
}

TEST(Embed, LeavesTheSessionEmptyAndDoesNotDependOnItsPast) {
  Opened opened(tiny::llama());
  for (const char* layout : {"grow", "dense", "concat", "none"}) {
    Session session = opened.session({.layout = layout}), fresh = opened.session();
    const auto first = opened.engine().embed(session, tiny::ids(70, 1));
    ASSERT_TRUE(first);
    EXPECT_EQ(session.pos(), 0);
    const auto again = opened.engine().embed(session, tiny::ids(9)), alone = opened.engine().embed(fresh, tiny::ids(9));
    ASSERT_TRUE(again && alone);
    EXPECT_TRUE(same_bits(*again, *alone)) << layout;
    EXPECT_FALSE(same_bits(*again, *first));
  }
}

TEST(Embed, Refuses) {
  Opened opened(tiny::llama());
  Session session = opened.session({.ctx = 10});
  EXPECT_THAT(message_of(opened.engine().embed(session, {})), HasSubstr("no tokens"));
  EXPECT_THAT(message_of(opened.engine().embed(session, tiny::ids(11))), AllOf(HasSubstr("11"), HasSubstr("10")));
  EXPECT_THAT(message_of(opened.engine().embed(session, std::vector<int>{99})), HasSubstr("99"));
  EXPECT_EQ(session.pos(), 0);
  engine_test::Copied out;
  ASSERT_TRUE(engine_test::prefill(opened.engine(), session, tiny::ids(4), &out));
  EXPECT_THAT(message_of(opened.engine().embed(session, tiny::ids(2))),
              AllOf(HasSubstr("mid-conversation"), HasSubstr("4")));
  EXPECT_EQ(session.pos(), 4) << "the conversation is kept";
}

// ---- one KVCache of batch B --------------------------------------------------------------------------------------

TEST(Lockstep, ABatchOfThreeEqualsThreeSessionsInBits) {
  for (const tiny::Model& model : {tiny::llama(), tiny::gpt2()})
    for (int chunk : {10, 256}) {
      Opened opened(model, {.threads = 2, .prefill_chunk = chunk});
      const ModelInfo& m = opened.model().info();
      KVCache cache(m.layers, m.kv_heads, m.head_dim, 160, 3, "f16");
      std::vector<Session> sessions;
      std::vector<int> prompt;
      engine_test::Copied out, one;
      std::vector<float> expected;
      for (size_t b = 0; b < 3; ++b) {
        sessions.push_back(opened.session({.kv_type_k = "f16"}));
        const std::vector<int> ids = tiny::ids(60, b);
        prompt.insert(prompt.end(), ids.begin(), ids.end());
        ASSERT_TRUE(engine_test::prefill(opened.engine(), sessions.back(), ids, &one));
        expected.insert(expected.end(), one.logits.begin(), one.logits.end());
      }
      ASSERT_TRUE(engine_test::prefill(opened.engine(), cache, prompt, &out));
      EXPECT_TRUE(same_bits(out.logits, expected));
      EXPECT_EQ(cache.seq_len(), 60);
      for (int step = 0; step < 8; ++step) {  // past the initial capacity of 64 positions
        const std::vector<int> next = tiny::ids(3, 50 + static_cast<uint64_t>(step));
        ASSERT_TRUE(engine_test::decode_step(opened.engine(), cache, next, &out));
        for (size_t b = 0; b < 3; ++b) {
          ASSERT_TRUE(engine_test::prefill(opened.engine(), sessions[b], {&next[b], 1}, &one));
          EXPECT_TRUE(same_bits(std::span(out.logits).subspan(b * 50, 50), one.logits)) << step << " " << b;
        }
      }
      EXPECT_EQ(cache.seq_len(), 68);
      EXPECT_EQ(cache.capacity(), 128);
    }
}

TEST(Lockstep, RefusalsKeepTheLength) {
  Opened opened(tiny::llama(), {.threads = 1, .prefill_chunk = 2});
  KVCache cache(2, 2, 8, 12, 2), wrong(2, 3, 8, 12, 2);
  engine_test::Copied out;
  ASSERT_TRUE(engine_test::prefill(opened.engine(), cache, tiny::ids(10), &out));
  EXPECT_EQ(cache.seq_len(), 5);
  const auto refused = [&](const std::vector<int>& ids, auto matcher) {
    EXPECT_THAT(message_of(engine_test::prefill(opened.engine(), cache, ids, &out)), matcher);
    EXPECT_EQ(cache.seq_len(), 5);
  };
  refused({}, HasSubstr("0 tokens"));
  refused({1, 2, 3}, HasSubstr("3 tokens"));
  refused({1, 2, 3, 4, 5, 99}, HasSubstr("99"));  // in the second chunk
  refused(tiny::ids(16), AllOf(HasSubstr("13"), HasSubstr("12")));
  EXPECT_THAT(message_of(engine_test::decode_step(opened.engine(), cache, tiny::ids(3), &out)),
              HasSubstr("3 tokens for 2"));
  EXPECT_THAT(message_of(engine_test::prefill(opened.engine(), wrong, tiny::ids(2), &out)),
              AllOf(HasSubstr("3 KV heads"), HasSubstr("2 of 8")));
  cache.clear();
  ASSERT_TRUE(engine_test::prefill(opened.engine(), cache, tiny::ids(4, 3), &out));
  const std::vector<int> both = tiny::ids(4, 3);
  EXPECT_TRUE(same_bits(std::span(out.logits).subspan(50), opened.fresh({both.begin() + 2, both.end()})));
}

}  // namespace
}  // namespace kvasir
