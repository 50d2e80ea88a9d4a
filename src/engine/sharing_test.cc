// Sequences that share passes, blocks or draft tokens: each gives what it gives alone.
#include <numeric>
#include <random>

#include "base/budget.h"
#include "cache/block_pool.h"
#include "cache/layout.h"
#include "engine/model_impl.h"
#include "tests/support/engines.h"

namespace kvasir {
namespace {

using namespace engine_test;

tiny::Model with_ctx(int ctx) {
  tiny::Model model = tiny::llama();
  model.edit_config("\"max_position_embeddings\":160", "\"max_position_embeddings\":" + std::to_string(ctx));
  return model;
}

GenerateOptions sampled(int n) {
  GenerateOptions options = with_receipt(greedy_tokens(n));
  options.sampling = {.temperature = 1.1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 77};
  return options;
}

Generation alone(Opened& opened, const SessionOptions& session, std::span<const int> prompt,
                 const GenerateOptions& options) {
  Session s = opened.session(session);
  auto g = generate(opened.engine(), s, prompt, options);
  EXPECT_TRUE(g) << message_of(g);
  return g ? std::move(*g) : Generation{};
}

// ---- forks ------------------------------------------------------------------------------------------------------

TEST(Fork, GoesOnAsIfItHadTypedAllOfIt) {
  Opened opened(tiny::llama(), {.threads = 2, .prefill_chunk = 16});
  const std::vector<int> ids = tiny::ids(100), more = tiny::ids(30, 5);
  for (const std::string& layout : layout_names()) {
    Session a = opened.session({.layout = layout, .kv_type_k = "q8_0"});
    engine_test::Copied out;
    ASSERT_TRUE(engine_test::prefill(opened.engine(), a, ids, &out));
    auto forked = a.fork();
    ASSERT_TRUE(forked) << message_of(forked);
    EXPECT_EQ(forked->pos(), 100);
    EXPECT_EQ(forked->cache_stats().bytes, forked->cache_stats().predicted_bytes) << layout;
    ASSERT_TRUE(engine_test::prefill(opened.engine(), *forked, more, &out));
    std::vector<int> all = ids;
    all.insert(all.end(), more.begin(), more.end());
    EXPECT_TRUE(same_bits(out.logits, opened.fresh(all, {.kv_type_k = "q8_0"}))) << layout;
    ASSERT_TRUE(engine_test::prefill(opened.engine(), a, std::span(more).last(7), &out));
    all.resize(100);
    all.insert(all.end(), more.end() - 7, more.end());
    EXPECT_TRUE(same_bits(out.logits, opened.fresh(all, {.kv_type_k = "q8_0"}))) << layout;
  }
}

TEST(Fork, IsRefusedWhereTheBudgetHasNoRoom) {
  ModelOptions limited;
  limited.kv_ram = 100000;
  Opened opened(tiny::llama(), {.threads = 1}, limited);
  Session a = opened.session({.layout = "dense", .ctx = 100});
  std::vector<Session> forks;
  auto next = a.fork();
  for (; next; next = a.fork()) forks.push_back(std::move(*next));
  EXPECT_THAT(message_of(next), AllOf(HasSubstr("100 positions"), HasSubstr("100000")));
  EXPECT_FALSE(forks.empty());
  const size_t had = forks.size();
  forks.pop_back();
  EXPECT_TRUE(a.fork()) << had;
}

// ---- samples ----------------------------------------------------------------------------------------------------

// Decodes one token at a time, without generate().
std::vector<int> sampled_by_hand(Opened& opened, std::span<const int> prompt, const SamplingParams& params, int n,
                                 int choice) {
  Session s = opened.session();
  engine_test::Copied out;
  std::vector<int> ids;
  EXPECT_TRUE(engine_test::prefill(opened.engine(), s, prompt, &out));
  for (int i = 0; i < n; ++i) {
    ids.push_back(*sample(out.logits, params, {.recent = s.tokens(), .position = s.pos(), .choice = choice}));
    EXPECT_TRUE(engine_test::prefill(opened.engine(), s, {&ids.back(), 1}, &out));
  }
  return ids;
}

TEST(Samples, AreTheChoicesOfOneSeed) {
  Opened opened(tiny::llama());
  const std::vector<int> prompt = tiny::ids(70);
  for (const std::string& layout : layout_names()) {
    Session s = opened.session({.layout = layout});
    const auto all = generate_samples(opened.engine(), s, prompt, 5, sampled(20));
    ASSERT_TRUE(all) << message_of(all);
    ASSERT_EQ(all->size(), 5u);
    for (int choice = 0; choice < 5; ++choice) {
      const Generation& g = (*all)[static_cast<size_t>(choice)];
      EXPECT_EQ(g.tokens, sampled_by_hand(opened, prompt, sampled(20).sampling, 20, choice)) << layout << choice;
      EXPECT_EQ(g.prompt_tokens, 70);
      EXPECT_EQ(g.cached_tokens, 0);
    }
    EXPECT_NE((*all)[0].tokens, (*all)[1].tokens);
    EXPECT_EQ((*all)[0].receipt, alone(opened, {.layout = layout}, prompt, sampled(20)).receipt);
    EXPECT_EQ(s.pos(), 90) << "the session goes on as the first";
  }
}

TEST(Samples, HoldTheirPromptOnce) {
  Opened opened(with_ctx(1200), {.threads = 2});
  const BlockPool& pool = *opened.model().impl().memory.pool();
  const std::vector<int> prompt = tiny::ids(1000);
  {
    Session one = opened.session({.layout = "paged"});
    engine_test::Copied out;
    ASSERT_TRUE(engine_test::prefill(opened.engine(), one, prompt, &out));
    const size_t of_one = pool.used_bytes(), block = of_one / 16;
    one.clear();
    size_t most = 0;
    Session s = opened.session({.layout = "paged"});
    const auto all = generate_samples(opened.engine(), s, prompt, 8, sampled(20));
    ASSERT_TRUE(all) << message_of(all);
    for (const Generation& g : *all) most = std::max(most, g.stats.cache.peak_bytes);
    EXPECT_EQ(most, of_one) << "1,019 positions are 16 blocks too";
    // Blocks held while they ran: 15 full blocks of the prompt, and a last one of each sequence. All wait in the pool
    // now.
    const size_t held = pool.used_bytes() + pool.waiting_bytes(),
                 generated = 8 * block;  // a last block of each sequence
    EXPECT_EQ(held, (15 + 8) * block);
    EXPECT_LT(static_cast<double>(held), 1.1 * static_cast<double>(of_one) + static_cast<double>(generated));
  }
  EXPECT_EQ(pool.used_bytes(), 0u);
}

TEST(Samples, RefuseNone) {
  Opened opened(tiny::llama());
  Session s = opened.session();
  EXPECT_THAT(message_of(generate_samples(opened.engine(), s, tiny::ids(3), 0, greedy_tokens(2))),
              HasSubstr("generate_samples::samples"));
  EXPECT_EQ(s.pos(), 0);
}

// ---- batches ----------------------------------------------------------------------------------------------------

TEST(SlowBatch, SixtyFourSequencesOfAnyLengthsGiveWhatEachGivesAlone) {
  Opened opened(with_ctx(1100), {.threads = 2, .prefill_chunk = 100});
  std::mt19937 random(5);
  std::vector<std::vector<int>> prompts;
  for (int i = 0; i < 64; ++i)
    prompts.push_back(tiny::ids(i == 0   ? 1
                                : i == 1 ? 1000
                                         : 1 + static_cast<int>(random() % 1000),
                                100 + random() % 9));
  std::vector<std::string> receipts;
  for (const auto& prompt : prompts) receipts.push_back(alone(opened, {}, prompt, sampled(12)).receipt);
  for (const char* layout : {"paged", "grow"})
    for (const int batch : {5, 64}) {
      std::vector<size_t> order(prompts.size());
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      std::vector<std::vector<int>> shuffled;
      for (const size_t i : order) shuffled.push_back(prompts[i]);
      size_t told = 0;
      const auto done = generate_batch(
          opened.engine(), {.layout = layout}, shuffled, batch, sampled(12), [&](size_t i, Result<Generation>&& g) {
            ASSERT_TRUE(g) << message_of(g);
            EXPECT_EQ(g->receipt, receipts[order[i]]) << layout << batch << " " << order[i];
            ++told;
          });
      ASSERT_TRUE(done) << message_of(done);
      EXPECT_EQ(told, 64u);
      EXPECT_EQ(opened.model().impl().memory.pool()->used_bytes(), 0u);
    }
}

TEST(Batch, TakesAsManyAsTheMemoryHasRoomFor) {
  ModelOptions limited;
  limited.kv_ram = 100000;
  Opened opened(tiny::llama(), {.threads = 1}, limited);
  const std::vector<std::vector<int>> prompts(20, tiny::ids(30));
  int told = 0;
  const auto done = generate_batch(opened.engine(), {.layout = "dense", .ctx = 100}, prompts, 20, greedy_tokens(5),
                                   [&](size_t, Result<Generation>&& g) { told += g && g->tokens.size() == 5; });
  EXPECT_TRUE(done) << message_of(done);
  EXPECT_EQ(told, 20);
}

TEST(Batch, SaysWhatDoesNotFit) {
  Opened opened(tiny::llama());
  const std::vector<std::vector<int>> prompts{tiny::ids(5), tiny::ids(200)};
  std::vector<std::string> told(2);
  ASSERT_TRUE(generate_batch(opened.engine(), {}, prompts, 2, greedy_tokens(3),
                             [&](size_t i, Result<Generation>&& g) { told[i] = message_of(g); }));
  EXPECT_EQ(told[0], "no error");
  EXPECT_THAT(told[1], AllOf(HasSubstr("200"), HasSubstr("160")));
}

// ---- common prefixes -----------------------------------------------------------------------------------------------

constexpr size_t kPlenty = size_t{64} << 20;

GenerateOptions whole_text(int n) {
  GenerateOptions options = sampled(n);
  options.whole_text = true;
  return options;
}

TEST(Reuse, AtEverySplitPointGivesTheSameBits) {
  Opened opened(tiny::llama(), {.threads = 2, .prefill_chunk = 24, .prefix_ram = kPlenty}), plain(tiny::llama());
  const std::vector<int> text = tiny::ids(140);
  for (const std::string& layout : layout_names()) {
    SessionOptions options{.layout = layout, .kv_type_k = "q8_0", .salt = layout};
    alone(opened, options, text, whole_text(2));
    for (int n = 1; n < 140; n += layout == "paged" ? 1 : 13) {
      std::vector<int> asked(text.begin(), text.begin() + n);
      asked.insert(asked.end(), {49, 48, 47});
      const Generation g = alone(opened, options, asked, whole_text(3));
      EXPECT_EQ(g.cached_tokens, layout == "none" ? 0 : n) << layout;
      EXPECT_EQ(g.receipt, alone(plain, {.kv_type_k = "q8_0"}, asked, sampled(3)).receipt) << layout << " " << n;
    }
    const Generation again = alone(opened, options, text, whole_text(3));
    EXPECT_EQ(again.cached_tokens, layout == "none" ? 0 : 139) << "never all of it";
    EXPECT_EQ(again.receipt, alone(plain, {.kv_type_k = "q8_0"}, text, sampled(3)).receipt);
  }
}

TEST(Reuse, KeepsNothingBetweenSpaces) {
  Opened opened(tiny::llama(), {.threads = 1, .prefix_ram = kPlenty});
  const std::vector<int> text = tiny::ids(100);
  SessionOptions options{.layout = "paged", .salt = "one"};
  alone(opened, options, text, whole_text(2));
  EXPECT_EQ(alone(opened, options, text, whole_text(2)).cached_tokens, 99);
  options.salt = "two";
  EXPECT_EQ(alone(opened, options, text, whole_text(2)).cached_tokens, 0);
  options.salt = "one";
  options.kv_type_v = "f16";
  EXPECT_EQ(alone(opened, options, text, whole_text(2)).cached_tokens, 0);
  options.kv_type_v = "f32";
  options.window = 40;
  EXPECT_EQ(alone(opened, options, text, whole_text(2)).cached_tokens, 0);
  options.window = 0;
  options.layout = "grow";
  EXPECT_EQ(alone(opened, options, text, whole_text(2)).cached_tokens, 99) << "the layout changes nothing";
}

TEST(Reuse, OfASessionsOwnTextSaysWhereItDiffers) {
  Opened opened(tiny::llama());
  Session session = opened.session();
  const std::vector<int> text = tiny::ids(60);
  const auto first = generate(opened.engine(), session, text, whole_text(5));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->differs, -1);
  std::vector<int> next(session.tokens().begin(), session.tokens().end());
  next.insert(next.end(), {1, 2, 3});
  const auto longer = generate(opened.engine(), session, next, whole_text(5));
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->cached_tokens, 64);
  EXPECT_EQ(longer->differs, -1);
  next[50] = (next[50] + 1) % 50;
  const auto changed = generate(opened.engine(), session, next, whole_text(5));
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->cached_tokens, 50);
  EXPECT_EQ(changed->differs, 50);
  EXPECT_EQ(changed->receipt, alone(opened, {}, next, sampled(5)).receipt);
}

TEST(Reuse, StaysWithinItsBytesAndGivesWay) {
  ModelOptions options;
  options.kv_ram = 300000;
  Opened opened(tiny::llama(), {.threads = 1, .prefix_ram = 200000}, options);
  for (int i = 0; i < 30; ++i) {
    const Generation g = alone(opened, {.layout = "paged"}, tiny::ids(150, static_cast<uint64_t>(i)), whole_text(4));
    ASSERT_EQ(g.tokens.size(), 4u);
    EXPECT_LE(opened.engine().prefix_stats().bytes, 200000u);
    EXPECT_LE(opened.model().impl().memory.pool()->used_bytes(), 300000u);
  }
  const PrefixStats stats = opened.engine().prefix_stats();
  EXPECT_EQ(stats.queries, 30);
  EXPECT_GT(stats.evicted_tokens, 20);
  // A session that needs all of the memory gets it.
  const Generation g = alone(opened, {.layout = "dense", .ctx = 150}, tiny::ids(140, 77), greedy_tokens(2));
  EXPECT_EQ(g.tokens.size(), 2u);
}

// ---- draft tokens ------------------------------------------------------------------------------------------------

TEST(SlowLookup, ChangesNothingButTheNumberOfPasses) {
  Opened opened(with_ctx(400), {.threads = 2, .prefill_chunk = 24});
  std::vector<int> prompt;  // repeats itself
  for (int i = 0; i < 6; ++i) prompt.insert(prompt.end(), {7, 3, 30 + i % 2, 11, 4, 19, 2});
  int accepted = 0, refused = 0;
  for (const std::string& layout : layout_names())
    for (const int window : {0, 30})
      for (const GenerateOptions& plain : {with_receipt(greedy_tokens(60)), sampled(60)}) {
        SessionOptions session{.layout = layout, .kv_type_v = "q8_0"};
        session.window = window;
        const Generation want = alone(opened, session, prompt, plain);
        for (const int lookup : {1, 4, 60}) {
          GenerateOptions options = plain;
          options.lookup = lookup;
          Session s = opened.session(session);
          const auto g = generate(opened.engine(), s, prompt, options);
          ASSERT_TRUE(g) << message_of(g);
          EXPECT_EQ(g->receipt, want.receipt) << layout << window << " " << lookup;
          EXPECT_EQ(g->tokens, want.tokens);
          EXPECT_EQ(s.pos(), 42 + 60) << "the text, and no guess is left";
          EXPECT_LE(g->accepted, g->guessed);
          accepted += g->accepted;
          refused += g->guessed - g->accepted;
        }
      }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
}

TEST(Lookup, StopsWherePlainDecodingDoes) {
  Opened opened(tiny::llama());
  const std::vector<int> prompt = tiny::ids(20);
  for (const int ctx : {30, 60, 100}) {
    const GenerateOptions plain = with_receipt(greedy_tokens(-1));
    GenerateOptions guessing = plain;
    guessing.lookup = 8;
    const Generation want = alone(opened, {.ctx = ctx}, prompt, plain),
                     got = alone(opened, {.ctx = ctx}, prompt, guessing);
    EXPECT_EQ(got.receipt, want.receipt);
    EXPECT_EQ(got.tokens.size(), want.tokens.size());
    EXPECT_EQ(got.stop_reason, StopReason::length);
  }
  GenerateOptions recomputing = greedy_tokens(200);
  recomputing.on_full = OnFull::recompute;
  const std::vector<int> want = alone(opened, {.ctx = 60}, prompt, recomputing).tokens;
  recomputing.lookup = 5;
  EXPECT_EQ(alone(opened, {.ctx = 60}, prompt, recomputing).tokens, want);
}

}  // namespace
}  // namespace kvasir
