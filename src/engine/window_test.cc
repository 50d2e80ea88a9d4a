// Sequences with a window: a model's own window evicts exactly, a user's window is the same function in every layout;
// and what happens when the context is full.
#include <kvasir/plan.h>

#include "cache/layout.h"
#include "tests/support/engines.h"

namespace kvasir {
namespace {

using namespace engine_test;

constexpr int kLong = 700;

// A tiny Llama with `more` appended to its config.
tiny::Model with(const std::string& more) {
  tiny::Model model = tiny::llama();
  model.edit_config("\"max_position_embeddings\":160", "\"max_position_embeddings\":800" + more);
  return model;
}
tiny::Model mistral(int window) {
  tiny::Model model = with(",\"sliding_window\":" + std::to_string(window));
  model.edit_config("\"model_type\":\"llama\"", "\"model_type\":\"mistral\"");
  return model;
}
// A layer with a window, and one that sees everything.
tiny::Model alternating(int window) {
  tiny::Model model = mistral(window);
  model.edit_config("\"sliding_window\"",
                    "\"layer_types\":[\"sliding_attention\",\"full_attention\"],\"sliding_window\"");
  return model;
}

// The logits of every token after the prompt, fed one at a time.
std::vector<float> steps(Opened& opened, const SessionOptions& options, int prompt, int more) {
  Session session = opened.session(options);
  engine_test::Copied out;
  std::vector<float> all;
  const std::vector<int> ids = tiny::ids(prompt + more, 3);
  const auto fed =
      engine_test::prefill(opened.engine(), session, std::span(ids).first(static_cast<size_t>(prompt)), &out);
  EXPECT_TRUE(fed) << message_of(fed);
  for (int i = prompt; i < prompt + more; ++i) {
    all.insert(all.end(), out.logits.begin(), out.logits.end());
    const auto done = engine_test::prefill(opened.engine(), session, {&ids[static_cast<size_t>(i)], 1}, &out);
    EXPECT_TRUE(done) << message_of(done);
  }
  all.insert(all.end(), out.logits.begin(), out.logits.end());
  return all;
}

TEST(SlowWindow, OfTheModelIsExactInEveryLayoutAndChunk) {
  for (const tiny::Model& model : {mistral(5), mistral(64), mistral(100), alternating(70)}) {
    Opened opened(model, {.threads = 1, .prefill_chunk = 256});
    const std::vector<float> full = steps(opened, {.layout = "dense"}, 300, 20);
    for (const int chunk : {1, 7, 64, 256}) {
      Opened other(model, {.threads = 2, .prefill_chunk = chunk});
      for (const std::string& layout : layout_names()) {
        if (layout == "none" && chunk < 64) continue;  // quadratic
        EXPECT_TRUE(same_bits(steps(other, {.layout = layout}, 300, 20), full)) << layout << " " << chunk;
      }
    }
  }
}

TEST(Window, OfTheModelForgetsWhatItCannotSee) {
  // A window of 50 over 2 layers reaches 99 positions back: earlier tokens change no bit of later logits.
  Opened opened(mistral(50), {.threads = 1});
  std::vector<int> a = tiny::ids(300, 1), b = a;
  for (int i = 0; i < 200; ++i) b[static_cast<size_t>(i)] = (b[static_cast<size_t>(i)] + 1) % 50;
  EXPECT_TRUE(same_bits(opened.fresh(a), opened.fresh(b)));
  b[201] = (b[201] + 1) % 50;
  EXPECT_FALSE(same_bits(opened.fresh(a), opened.fresh(b)));
  Opened full(with(""), {.threads = 1});
  EXPECT_FALSE(same_bits(full.fresh(a), opened.fresh(a)));
}

TEST(Window, ShortSequencesDoNotNoticeIt) {
  Opened full(with(""), {.threads = 1}), windowed(mistral(64), {.threads = 1});
  for (const int n : {1, 63, 64}) EXPECT_TRUE(same_bits(full.fresh(tiny::ids(n)), windowed.fresh(tiny::ids(n)))) << n;
  EXPECT_FALSE(same_bits(full.fresh(tiny::ids(65)), windowed.fresh(tiny::ids(65))));
}

TEST(SlowWindow, OfTheUserIsTheSameInEveryLayoutChunkAndType) {
  for (const char* type : {"f32", "q4_0h"})
    for (const auto& [window, sinks] : {std::pair{40, 4}, {100, 64}, {1, 1}}) {
      const auto options = [&, window = window, sinks = sinks](const std::string& layout) {
        return SessionOptions{.layout = layout, .kv_type_k = type, .kv_type_v = type, .window = window, .sinks = sinks};
      };
      Opened opened(with(""), {.threads = 1, .prefill_chunk = 256});
      const std::vector<float> full = steps(opened, options("dense"), 250, 12);
      for (const int chunk : {7, 100}) {
        Opened other(with(""), {.threads = 2, .prefill_chunk = chunk});
        for (const char* layout : {"none", "grow", "paged", "reserve", "windowed"})
          EXPECT_TRUE(same_bits(steps(other, options(layout), 250, 12), full))
              << layout << " " << chunk << " " << type << " " << window << " " << sinks;
      }
    }
}

TEST(Window, OfTheUserWithoutSinksIsThatOfAModel) {
  Opened plain(with(""), {.threads = 1}), own(mistral(30), {.threads = 1});
  const std::vector<int> ids = tiny::ids(200);
  SessionOptions options;
  options.window = 30;
  options.sinks = 0;
  EXPECT_TRUE(same_bits(plain.fresh(ids, options), own.fresh(ids)));
}

TEST(Window, NothingIsMovedBeforeItIsFull) {
  Opened opened(with(""), {.threads = 1});
  SessionOptions options;
  options.window = 60;
  options.sinks = 4;
  EXPECT_TRUE(same_bits(opened.fresh(tiny::ids(64), options), opened.fresh(tiny::ids(64))));
  EXPECT_FALSE(same_bits(opened.fresh(tiny::ids(65), options), opened.fresh(tiny::ids(65))));
}

TEST(Window, OfAnotherSequenceInTheBatchChangesNothing) {
  Opened opened(with(""), {.threads = 2});
  SessionOptions windowed{.layout = "windowed"};
  windowed.window = 30;
  windowed.sinks = 4;
  const std::vector<int> ids = tiny::ids(150), others = tiny::ids(90, 8);
  Session a = opened.session(windowed), b = opened.session({.layout = "paged", .kv_type_k = "q4_0h"});
  const Feed feeds[] = {{&a, ids}, {&b, others}};
  engine_test::Copied out;
  ASSERT_TRUE(engine_test::step(opened.engine(), feeds, &out));
  std::vector<float> alone = opened.fresh(ids, windowed);
  const std::vector<float> second = opened.fresh(others, {.kv_type_k = "q4_0h"});
  alone.insert(alone.end(), second.begin(), second.end());
  EXPECT_TRUE(same_bits(out.logits, alone));
}

TEST(Window, BytesAreFlatAndPlanned) {
  Opened opened(mistral(64), {.threads = 1, .prefill_chunk = 32});
  Session session = opened.session({.layout = "windowed"});
  engine_test::Copied out;
  size_t full = 0;
  for (int n = 0; n < kLong; n += 50) {
    ASSERT_TRUE(engine_test::prefill(opened.engine(), session, tiny::ids(50, static_cast<uint64_t>(n)), &out));
    const CacheStats stats = session.cache_stats();
    EXPECT_EQ(stats.bytes, stats.predicted_bytes) << n;
    if (n == 150) full = stats.bytes;
    EXPECT_TRUE(n <= 150 || stats.bytes == full) << n;
  }
  PlanRequest request;
  request.model = (opened.folder() / "model").string();
  request.session.layout = "windowed";
  request.chat = kLong;
  request.threads = 1;
  request.prefill_chunk = 32;
  const auto report = plan(request);
  ASSERT_TRUE(report) << message_of(report);
  EXPECT_EQ(report->kv_bytes, full);
}

TEST(Window, TruncationBelowTheRingIsRefusedAndClearIsNot) {
  Opened opened(mistral(64), {.threads = 1, .prefill_chunk = 32});
  Session session = opened.session({.layout = "windowed"});
  engine_test::Copied out;
  const std::vector<int> ids = tiny::ids(500);
  ASSERT_TRUE(engine_test::prefill(opened.engine(), session, ids, &out));
  EXPECT_THAT(message_of(session.truncate(300)), AllOf(HasSubstr("300"), HasSubstr("window of 64")));
  EXPECT_EQ(session.pos(), 500);
  ASSERT_TRUE(session.truncate(480));
  const std::vector<int> more = tiny::ids(10, 77);
  ASSERT_TRUE(engine_test::prefill(opened.engine(), session, more, &out));
  std::vector<int> all(ids.begin(), ids.begin() + 480);
  all.insert(all.end(), more.begin(), more.end());
  EXPECT_TRUE(same_bits(out.logits, opened.fresh(all)));
  session.clear();
  ASSERT_TRUE(engine_test::prefill(opened.engine(), session, more, &out));
  EXPECT_TRUE(same_bits(out.logits, opened.fresh(more)));
}

TEST(Window, AStepThatFailsLeavesASessionThatIsRight) {
  tiny::Model model = mistral(64);
  Opened opened(model, {.threads = 1, .prefill_chunk = 32});
  Session session = opened.session({.layout = "windowed"});
  engine_test::Copied out;
  ASSERT_TRUE(engine_test::prefill(opened.engine(), session, tiny::ids(300), &out));
  std::vector<int> bad = tiny::ids(200, 5);
  bad.back() = 4711;  // its last chunk fails after earlier ones have overwritten the ring
  EXPECT_FALSE(engine_test::prefill(opened.engine(), session, bad, &out));
  EXPECT_EQ(session.pos(), 300);
  const std::vector<int> more = tiny::ids(10, 77);
  ASSERT_TRUE(engine_test::prefill(opened.engine(), session, more, &out));
  std::vector<int> all = tiny::ids(300);
  all.insert(all.end(), more.begin(), more.end());
  EXPECT_TRUE(same_bits(out.logits, opened.fresh(all)));
}

TEST(Window, IsRefusedWhereItMakesNoSense) {
  Opened gpt2(tiny::gpt2()), llama(with("")), own(mistral(64));
  const auto refusal = [](Opened& opened, int window, int sinks) {
    SessionOptions options;
    options.window = window;
    options.sinks = sinks;
    return message_of(opened.engine().open_session(options));
  };
  EXPECT_THAT(refusal(gpt2, 10, 4), HasSubstr("learned"));
  EXPECT_THAT(refusal(own, 10, 4), AllOf(HasSubstr("of its own"), HasSubstr("64")));
  EXPECT_THAT(refusal(llama, 0, 4), HasSubstr("without a window"));
  EXPECT_THAT(refusal(llama, 10, 65), HasSubstr("65 sinks"));
  EXPECT_THAT(refusal(llama, 799, 4), HasSubstr("800"));
  SessionOptions slide{.layout = "grow", .ctx = 64};
  slide.slide = true;
  EXPECT_THAT(message_of(llama.engine().open_session(slide)), HasSubstr("windowed"));
}

TEST(SlowWindow, SixteenThousandTokensInTheMemoryOfAThousand) {
  constexpr int kTokens = 16'384, kWindow = 1024, kChunk = 256;
  tiny::Model model = mistral(kWindow);
  model.edit_config("\"max_position_embeddings\":800", "\"max_position_embeddings\":20000");
  Opened opened(model, {.threads = 2, .prefill_chunk = kChunk});
  Session full = opened.session({.layout = "dense", .ctx = kTokens}), windowed = opened.session({.layout = "windowed"});
  const std::vector<int> ids = tiny::ids(kTokens);
  size_t flat = 0;
  for (int at = 0; at < kTokens; at += 512) {
    const auto piece = std::span(ids).subspan(static_cast<size_t>(at), 512);
    const Feed feeds[] = {{&full, piece, Logits::all}, {&windowed, piece, Logits::all}};
    engine_test::Copied out;
    const auto done = engine_test::step(opened.engine(), feeds, &out);
    ASSERT_TRUE(done) << message_of(done);
    const size_t half = out.logits.size() / 2;
    ASSERT_EQ(half, size_t{512} * 50);
    ASSERT_TRUE(same_bits(std::span(out.logits).first(half), std::span(out.logits).last(half))) << at;
    if (at == 2048) flat = windowed.cache_stats().bytes;
    ASSERT_TRUE(at <= 2048 || windowed.cache_stats().bytes == flat) << at;
  }
  EXPECT_EQ(windowed.cache_stats().peak_bytes, flat);
  EXPECT_LT(flat * 12, full.cache_stats().bytes);
}

// ---- a full context -----------------------------------------------------------------------------------------------

Generation generated(Opened& opened, const SessionOptions& session_options, int n, OnFull on_full) {
  Session session = opened.session(session_options);
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = n;
  options.ignore_eos = true;
  options.on_full = on_full;
  const auto g = generate(opened.engine(), session, tiny::ids(20), options);
  EXPECT_TRUE(g) << message_of(g);
  return *g;
}

TEST(OnFull, RecomputeIsThePrefillOfTheLastHalf) {
  for (const tiny::Model& model : {tiny::llama(), tiny::gpt2()}) {
    Opened opened(model);
    const Generation stopped = generated(opened, {.ctx = 64}, 200, OnFull::stop);
    EXPECT_EQ(stopped.tokens.size(), 45u);
    EXPECT_EQ(stopped.stop_reason, StopReason::length);
    const Generation g = generated(opened, {.ctx = 64}, 100, OnFull::recompute);
    ASSERT_EQ(g.tokens.size(), 100u);
    EXPECT_EQ(g.recomputed, 2);  // 64 - 20 tokens are fed; then 32 stay, and 31 more fit beside the next one
    // The first token after recomputing equals that of a session whose prompt is the half.
    std::vector<int> text = tiny::ids(20);
    text.insert(text.end(), g.tokens.begin(), g.tokens.begin() + 45);
    const std::vector<int> half(text.end() - 33, text.end());
    const std::vector<float> logits = opened.fresh(half, {.ctx = 64});
    EXPECT_EQ(g.tokens[45], *sample(logits, {.temperature = 0}));
  }
}

TEST(OnFull, SlideIsAWindowThatFillsTheContextAndHasNoEnd) {
  Opened opened(tiny::llama(), {.threads = 2, .prefill_chunk = 16});
  SessionOptions slide{.layout = "windowed", .ctx = 64};
  slide.slide = true;
  const Generation g = generated(opened, slide, 300, OnFull::stop);
  ASSERT_EQ(g.tokens.size(), 300u) << "past the 160 positions of the model";
  EXPECT_EQ(g.stats.cache.window, "60 sinks 4");
  const Generation stopped = generated(opened, {.ctx = 64}, 200, OnFull::stop);
  EXPECT_TRUE(std::equal(stopped.tokens.begin(), stopped.tokens.end(), g.tokens.begin()))
      << "until then nothing differs";
  Session session = opened.session(slide);
  engine_test::Copied out;
  ASSERT_TRUE(engine_test::prefill(opened.engine(), session, tiny::ids(400), &out));
  EXPECT_EQ(session.cache_stats().bytes, g.stats.cache.bytes);
  slide.sinks = 9;
  EXPECT_EQ(opened.session(slide).cache_stats().window, "55 sinks 9");
  slide.sinks = 64;
  EXPECT_THAT(message_of(opened.engine().open_session(slide)), HasSubstr("64 sinks"));
}

}  // namespace
}  // namespace kvasir
