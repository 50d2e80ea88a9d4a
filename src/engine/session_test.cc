// Sessions and steps: continuing a session gives the same bits as feeding everything anew, however it was chunked,
// batched or truncated in between.
#include <numeric>

#include "tests/support/engines.h"

namespace kvasir {
namespace {

using engine_test::AllOf;
using engine_test::HasSubstr;
using engine_test::message_of;
using engine_test::Opened;
using tiny::same_bits;

constexpr const char* kLayouts[] = {"grow", "dense", "concat", "none"};

std::vector<int> joined(std::vector<int> a, const std::vector<int>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Session, MemoryIsAsPredictedAfterAStepThatFailed) {
  Opened opened(tiny::llama());
  for (const char* layout : kLayouts) {
    Session session = opened.session({.layout = layout});
    std::vector<int> bad = tiny::ids(130);
    bad.back() = opened.model().info().vocab;
    engine_test::Copied out;
    EXPECT_FALSE(engine_test::prefill(opened.engine(), session, bad, &out));
    EXPECT_EQ(session.pos(), 0);
    EXPECT_EQ(session.cache_stats().bytes, session.cache_stats().predicted_bytes) << layout;
  }
}

TEST(Session, TruncateThenRetypeEqualsFreshInBits) {
  for (const tiny::Model& model : {tiny::llama(), tiny::gpt2()})
    for (const char* layout : kLayouts)
      for (const char* type : {"f32", "f16"}) {
        Opened opened(model);
        const SessionOptions options{.layout = layout, .kv_type_k = type, .kv_type_v = type};
        Session session = opened.session(options);
        engine_test::Copied out;
        const std::vector<int> typed = tiny::ids(130), other = tiny::ids(9, 5);
        ASSERT_TRUE(engine_test::prefill(opened.engine(), session, typed, &out));
        for (int keep : {127, 64, 63, 1, 0}) {
          ASSERT_TRUE(session.truncate(keep));
          EXPECT_EQ(session.pos(), keep);
          ASSERT_TRUE(engine_test::prefill(opened.engine(), session, other, &out));
          const std::vector<int> whole = joined({typed.begin(), typed.begin() + keep}, other);
          ASSERT_TRUE(same_bits(out.logits, opened.fresh(whole, options))) << layout << " " << type << " " << keep;
          ASSERT_TRUE(session.truncate(keep));
        }
      }
}

TEST(Session, TruncateRefusesWhatItDoesNotHold) {
  Opened opened(tiny::llama());
  Session session = opened.session();
  engine_test::Copied out;
  ASSERT_TRUE(engine_test::prefill(opened.engine(), session, tiny::ids(6), &out));
  EXPECT_THAT(message_of(session.truncate(7)), AllOf(HasSubstr("7"), HasSubstr("6")));
  EXPECT_THAT(message_of(session.truncate(-1)), HasSubstr("-1"));
  EXPECT_EQ(session.pos(), 6);
  EXPECT_TRUE(session.truncate(6));
  session.clear();
  EXPECT_EQ(session.pos(), 0);
  EXPECT_TRUE(session.tokens().empty());
  ASSERT_TRUE(engine_test::prefill(opened.engine(), session, tiny::ids(3, 2), &out));
  EXPECT_TRUE(same_bits(out.logits, opened.fresh(tiny::ids(3, 2))));
}

TEST(Session, ChunksThreadsAndLayoutsDoNotChangeBits) {
  const std::vector<int> prompt = tiny::ids(150);
  for (const tiny::Model& model : {tiny::llama(codec_bf16(), true), tiny::gpt2(codec_f16())}) {
    Opened plain(model);
    const std::vector<float> expected = plain.fresh(prompt);
    for (int chunk : {1, 7, 64, 1000}) {
      Opened opened(model, {.threads = 1 + chunk % 4, .prefill_chunk = chunk});
      for (const char* layout : kLayouts)
        EXPECT_TRUE(same_bits(opened.fresh(prompt, {.layout = layout}), expected)) << layout << " " << chunk;
    }
  }
}

TEST(Session, AllLogitsAndHiddenAreOfTheFeedsOwnTokens) {
  for (const char* layout : kLayouts)
    for (int chunk : {4, 256}) {
      Opened opened(tiny::llama(), {.threads = 2, .prefill_chunk = chunk});
      const std::vector<int> head = tiny::ids(11), tail = tiny::ids(6, 1), other = tiny::ids(10, 2);
      engine_test::Copied expected, out;
      Session whole = opened.session();
      const std::vector<int> all = joined(head, tail);
      const Feed every{.session = &whole, .tokens = all, .logits = Logits::all, .hidden = true};
      ASSERT_TRUE(engine_test::step(opened.engine(), {&every, 1}, &expected));
      ASSERT_EQ(expected.logits.size(), 17u * 50);
      ASSERT_EQ(expected.hidden.size(), 17u * 24);
      Session session = opened.session({.layout = layout}), neighbour = opened.session({.layout = layout});
      ASSERT_TRUE(engine_test::prefill(opened.engine(), session, head, &out));
      EXPECT_TRUE(out.hidden.empty());
      const Feed feeds[] = {{.session = &neighbour, .tokens = other},
                            {.session = &session, .tokens = tail, .logits = Logits::all, .hidden = true}};
      ASSERT_TRUE(engine_test::step(opened.engine(), feeds, &out));
      EXPECT_TRUE(same_bits(std::span(out.logits).subspan(50), std::span(expected.logits).subspan(11 * 50))) << layout;
      EXPECT_TRUE(same_bits(out.hidden, std::span(expected.hidden).subspan(11 * 24))) << layout;
    }
}

TEST(Session, RaggedDecodeEqualsEachAloneInBits) {
  for (const char* layout : kLayouts) {
    Opened opened(tiny::llama(), {.threads = 2, .prefill_chunk = 16});
    const int lengths[] = {1, 40, 64};
    std::vector<Session> sessions;
    std::vector<Session*> pointers;
    engine_test::Copied out;
    for (size_t b = 0; b < 3; ++b) {
      sessions.push_back(opened.session({.layout = layout}));
      ASSERT_TRUE(engine_test::prefill(opened.engine(), sessions.back(), tiny::ids(lengths[b], b), &out));
    }
    for (Session& session : sessions) pointers.push_back(&session);
    std::vector<std::vector<int>> typed;
    for (size_t b = 0; b < 3; ++b) typed.push_back(tiny::ids(lengths[b], b));
    for (int step = 0; step < 4; ++step) {
      const std::vector<int> next = tiny::ids(3, 100 + static_cast<uint64_t>(step));
      ASSERT_TRUE(engine_test::decode_step(opened.engine(), pointers, next, &out));
      ASSERT_EQ(out.logits.size(), 3u * 50);
      for (size_t b = 0; b < 3; ++b) {
        typed[b].push_back(next[b]);
        EXPECT_TRUE(same_bits(std::span(out.logits).subspan(b * 50, 50), opened.fresh(typed[b]))) << layout << b;
      }
    }
  }
}

TEST(Session, AFailingStepChangesNoSession) {
  for (const char* layout : kLayouts) {
    Opened opened(tiny::llama(), {.threads = 2, .prefill_chunk = 4});
    Session a = opened.session({.layout = layout}), b = opened.session({.layout = layout, .ctx = 12});
    engine_test::Copied out;
    const std::vector<int> typed = tiny::ids(8), more = tiny::ids(3, 1), many = tiny::ids(9, 2);
    ASSERT_TRUE(engine_test::prefill(opened.engine(), a, typed, &out));
    ASSERT_TRUE(engine_test::prefill(opened.engine(), b, typed, &out));
    std::vector<int> late = tiny::ids(9, 3);
    late.back() = 77;  // found in the last chunk, after the others have run
    const auto refused = [&](std::vector<Feed> feeds, auto matcher) {
      EXPECT_THAT(message_of(engine_test::step(opened.engine(), feeds, &out)), matcher);
      EXPECT_EQ(a.pos(), 8);
      EXPECT_EQ(b.pos(), 8);
    };
    refused({{.session = &a, .tokens = late}, {.session = &b, .tokens = more}}, HasSubstr("77"));
    refused({{.session = &a, .tokens = more}, {.session = &b, .tokens = many}},
            AllOf(HasSubstr("17"), HasSubstr("12")));
    if (!b.recomputes())  // a layout that recomputes always has something to compute
      refused({{.session = &a, .tokens = more}, {.session = &b, .tokens = {}}}, HasSubstr("no tokens"));
    refused({{.session = &a, .tokens = more}, {.session = &a, .tokens = more}}, HasSubstr("twice"));
    Session* const two[] = {&a, &b};
    EXPECT_THAT(message_of(engine_test::decode_step(opened.engine(), two, more, &out)),
                AllOf(HasSubstr("3"), HasSubstr("2")));
    ASSERT_TRUE(engine_test::prefill(opened.engine(), a, more, &out));
    EXPECT_TRUE(same_bits(out.logits, opened.fresh(joined(typed, more)))) << layout;
  }
}

TEST(Session, OpeningRefusesByName) {
  Opened opened(tiny::llama());
  const auto refused = [&](const SessionOptions& options) { return message_of(opened.engine().open_session(options)); };
  EXPECT_THAT(refused({.layout = "heap"}), AllOf(HasSubstr("heap"), HasSubstr("grow")));
  EXPECT_THAT(refused({.kv_type_k = "f8"}), AllOf(HasSubstr("f8"), HasSubstr("f16")));
  EXPECT_THAT(refused({.kv_type_v = "int"}), HasSubstr("int"));
  EXPECT_THAT(refused({.ctx = 161}), AllOf(HasSubstr("161"), HasSubstr("160")));
  EXPECT_THAT(refused({.ctx = -1}), HasSubstr("-1"));
  EXPECT_THAT(message_of(Engine::create(opened.shared(), {.threads = 1, .prefill_chunk = 0})), HasSubstr("0"));
  EXPECT_THAT(message_of(Engine::create(opened.shared(), {.threads = 300})), HasSubstr("300"));
}

TEST(Session, MovesWithItsMemory) {
  Opened opened(tiny::llama());
  Session first = opened.session();
  engine_test::Copied out;
  ASSERT_TRUE(engine_test::prefill(opened.engine(), first, tiny::ids(5), &out));
  Session second = std::move(first);
  EXPECT_EQ(second.pos(), 5);
  ASSERT_TRUE(engine_test::prefill(opened.engine(), second, tiny::ids(2, 1), &out));
  EXPECT_TRUE(same_bits(out.logits, opened.fresh(joined(tiny::ids(5), tiny::ids(2, 1)))));
}

TEST(Session, CacheCostsWhatItsLayoutSaid) {
  Opened opened(tiny::llama());
  engine_test::Copied out;
  for (const char* layout : kLayouts) {
    Session session = opened.session({.layout = layout, .ctx = 150});
    for (int n : {1, 63, 1, 70}) {
      ASSERT_TRUE(engine_test::prefill(opened.engine(), session, tiny::ids(n), &out));
      const CacheStats s = session.cache_stats();
      EXPECT_EQ(s.bytes, s.predicted_bytes) << layout << " " << session.pos();
      EXPECT_EQ(s.bytes, static_cast<size_t>(s.capacity) * 2 * 16 * 8);
      EXPECT_LE(s.bytes, s.peak_bytes);
      EXPECT_EQ(s.saturated, 0);
    }
    const size_t before = session.cache_stats().bytes;
    ASSERT_TRUE(session.truncate(3));
    EXPECT_EQ(session.cache_stats().bytes, before) << "truncating keeps the memory";
  }
}

}  // namespace
}  // namespace kvasir
