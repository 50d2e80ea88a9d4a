// Prompts of one file share passes and memory. No prompt loses its answer because of another, and each answer equals
// the one that the prompt gets alone.
#include <algorithm>
#include <limits>

#include "cache/block_pool.h"
#include "engine/model_impl.h"
#include "tests/support/engines.h"

namespace kvasir {
namespace {

using namespace engine_test;

using Prompts = std::vector<std::vector<int>>;
using Answers = std::vector<std::optional<Result<Generation>>>;

// KV bytes of one block in a tiny Llama: 2 layers, 64 positions, 16 channels of K and of V in f32.
constexpr size_t kBlock = size_t{2} * 64 * (16 + 16) * 4;

ModelOptions blocks(size_t n) {
  ModelOptions limited;
  limited.kv_ram = n * kBlock;
  return limited;
}

GenerateOptions sampled(int n) {
  GenerateOptions options = with_receipt(greedy_tokens(n));
  options.sampling = {.temperature = 1.1, .top_k = 0, .top_p = 1, .min_p = 0, .repeat_penalty = 1.3, .seed = 77};
  return options;
}

Prompts prompts_of(std::initializer_list<int> lengths) {
  Prompts prompts;
  for (const int n : lengths) prompts.push_back(tiny::ids(n, 11 + prompts.size()));
  return prompts;
}

Generation alone(Opened& opened, const std::vector<int>& prompt, const GenerateOptions& options) {
  Session session = opened.session();
  auto g = generate(opened.engine(), session, prompt, options);
  EXPECT_TRUE(g) << message_of(g);
  return g ? std::move(*g) : Generation{};
}

Answers answers(Opened& opened, const Prompts& prompts, int batch, const GenerateOptions& options,
                const SessionOptions& session = {.layout = "paged"}) {
  Answers all(prompts.size());
  const auto done =
      generate_batch(opened.engine(), session, prompts, batch, options, [&](size_t i, Result<Generation>&& g) {
        EXPECT_FALSE(all[i]) << i << " is told twice";
        all[i] = std::move(g);
      });
  EXPECT_TRUE(done) << message_of(done);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(all[i]) << i << " is not told";
  return all;
}

void expect_as_alone(const Answers& all, const Prompts& prompts, const GenerateOptions& options) {
  Opened unlimited(tiny::llama(), {.threads = 1});
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (!all[i]) continue;
    ASSERT_TRUE(*all[i]) << i << ": " << message_of(*all[i]);
    const Generation want = alone(unlimited, prompts[i], options), &got = **all[i];
    EXPECT_EQ(got.receipt, want.receipt) << i;
    EXPECT_EQ(got.tokens, want.tokens) << i;
    EXPECT_EQ(got.stop_reason, want.stop_reason) << i;
  }
}

// Each sequence grows to three blocks; the pool has five.
TEST(RegressBatch, ThatOutgrowsItsBlocksLetsOneWait) {
  const Prompts prompts = prompts_of({3, 5, 100, 64, 65});
  for (const auto& [batch, lookup] : {std::pair(2, 0), std::pair(5, 4)}) {
    Opened opened(tiny::llama(), {.threads = 1, .prefill_chunk = 32}, blocks(5));
    GenerateOptions options = sampled(1);
    options.max_tokens = -1;  // to the end of the context
    options.lookup = lookup;
    const Answers all = answers(opened, prompts, batch, options);
    expect_as_alone(all, prompts, options);
    int waited = 0;
    for (const auto& g : all) waited += (*g)->waited;
    EXPECT_GT(waited, 0) << "otherwise this test shows nothing";
    EXPECT_EQ(opened.model().impl().memory.pool()->used_bytes(), 0u);
  }
}

TEST(RegressBatch, OfMorePromptsThanBlocksAnswersAll) {
  Prompts prompts;
  for (int i = 0; i < 11; ++i) prompts.push_back(tiny::ids(5 + i, static_cast<uint64_t>(i)));
  Opened opened(tiny::llama(), {.threads = 1}, blocks(3));
  expect_as_alone(answers(opened, prompts, 11, sampled(30)), prompts, sampled(30));
}

TEST(RegressBatch, ThatWaitsSharesWhatIsKept) {
  Prompts prompts = prompts_of({70, 70, 70, 70});
  for (size_t i = 1; i < prompts.size(); ++i) std::copy_n(prompts[0].begin(), 66, prompts[i].begin());
  Opened opened(tiny::llama(), {.threads = 1, .prefix_ram = size_t{1} << 20}, blocks(5));
  GenerateOptions options = sampled(70);
  options.whole_text = true;
  expect_as_alone(answers(opened, prompts, 4, options), prompts, sampled(70));
}

// With 4 blocks no two samples can finish side by side; the first one's blocks are released when it is done.
TEST(RegressBatch, SamplesThatOutgrowTheirBlocksWait) {
  const std::vector<int> prompt = tiny::ids(60, 3);
  Opened opened(tiny::llama(), {.threads = 1}, blocks(4)), unlimited(tiny::llama(), {.threads = 1});
  Session few = opened.session({.layout = "paged", .ctx = 160}), many = unlimited.session({.layout = "paged"});
  const auto got = generate_samples(opened.engine(), few, prompt, 4, sampled(80));
  const auto want = generate_samples(unlimited.engine(), many, prompt, 4, sampled(80));
  ASSERT_TRUE(got && want) << message_of(got);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ((*got)[i].receipt, (*want)[i].receipt) << i;
  ASSERT_EQ(few.pos(), many.pos()) << "the session goes on as the first";
  engine_test::Copied a, b;
  ASSERT_TRUE(engine_test::prefill(opened.engine(), few, tiny::ids(2), &a));
  ASSERT_TRUE(engine_test::prefill(unlimited.engine(), many, tiny::ids(2), &b));
  EXPECT_TRUE(same_bits(a.logits, b.logits));
}

// The budget is two blocks: 128 positions, whatever other prompts hold at the time.
TEST(RegressBatch, TheContextIsThatOfAPromptAlone) {
  const Prompts prompts = prompts_of({10, 20, 140, 30});
  Opened opened(tiny::llama(), {.threads = 1}, blocks(2));
  GenerateOptions options = sampled(1);
  options.max_tokens = -1;
  const Answers all = answers(opened, prompts, 3, options);
  EXPECT_THAT(message_of(*all[2]), AllOf(HasSubstr("140"), HasSubstr("128")));
  for (const size_t i : {0u, 1u, 3u}) {
    ASSERT_TRUE(*all[i]) << message_of(*all[i]);
    EXPECT_EQ((*all[i])->tokens.size(), 128 - prompts[i].size() + 1) << i;
  }
}

// The context that fits the budget is below LongRoPE's original one; the model's context is above it. A prompt uses the
// model's context, alone and in a batch.
TEST(RegressBatch, ABudgetDoesNotChooseTheRope) {
  tiny::Model model = tiny::llama();
  model.edit_config("\"rms_norm_eps\":1e-5",
                    "\"rms_norm_eps\":1e-5,\"original_max_position_embeddings\":150,\"rope_scaling\":{\"rope_type\":"
                    "\"longrope\",\"short_factor\":[1,1,1,1],\"long_factor\":[1,2,3,4]}");
  const Prompts prompts = prompts_of({10, 20, 30});
  Opened opened(model, {.threads = 1}, blocks(2));
  const Answers all = answers(opened, prompts, 3, sampled(8));
  Opened other(model, {.threads = 1}, blocks(2));
  for (size_t i = 0; i < prompts.size(); ++i) {
    ASSERT_TRUE(*all[i]) << message_of(*all[i]);
    EXPECT_EQ((*all[i])->stats.cache.window, "none long_rope");
    EXPECT_EQ((*all[i])->receipt, alone(other, prompts[i], sampled(8)).receipt) << i;
  }
}

TEST(RegressBatch, OneThatCannotRunIsToldFirstAndTheOthersAreAnswered) {
  Prompts prompts = prompts_of({5, 200, 7, 9, 4});
  prompts[3][4] = 50;  // the ids are 0 to 49
  prompts[4].clear();
  Opened opened(tiny::llama(), {.threads = 1});
  for (const int batch : {1, 2, 5}) {
    std::vector<size_t> order;
    Answers all(prompts.size());
    const auto done =
        generate_batch(opened.engine(), {}, prompts, batch, sampled(6), [&](size_t i, Result<Generation>&& g) {
          order.push_back(i);
          all[i] = std::move(g);
        });
    ASSERT_TRUE(done) << message_of(done);
    order.resize(3);
    EXPECT_EQ(order, (std::vector<size_t>{1, 3, 4}));
    EXPECT_THAT(message_of(*all[1]), AllOf(HasSubstr("200"), HasSubstr("160")));
    EXPECT_THAT(message_of(*all[3]), AllOf(HasSubstr("id 50"), HasSubstr("50")));
    EXPECT_THAT(message_of(*all[4]), HasSubstr("empty"));
    all[1] = all[3] = all[4] = std::nullopt;
    expect_as_alone(all, prompts, sampled(6));
  }
}

// A token whose embedding is not finite spoils only the text that contains it.
TEST(RegressBatch, ATextWithoutFiniteLogitsIsNotTheOthersFault) {
  constexpr int kBad = 13;
  tiny::Model model = tiny::llama();
  float* const row = &model.at("model.embed_tokens.weight").values[kBad * 24];
  std::fill(row, row + 24, std::numeric_limits<float>::infinity());
  Opened opened(model, {.threads = 1});
  Prompts prompts = prompts_of({20, 20, 20, 20});
  for (auto& prompt : prompts) std::replace(prompt.begin(), prompt.end(), kBad, 12);
  prompts[1][10] = prompts[2][3] = kBad;
  GenerateOptions options = with_receipt(greedy_tokens(6));
  const Answers all = answers(opened, prompts, 4, options, {});
  for (const size_t bad : {1u, 2u}) EXPECT_THAT(message_of(*all[bad]), HasSubstr("not finite"));
  for (const size_t good : {0u, 3u}) {
    ASSERT_TRUE(*all[good]) << message_of(*all[good]);
    EXPECT_EQ((*all[good])->receipt, alone(opened, prompts[good], options).receipt);
  }
}

TEST(RegressBatch, ABadParameterIsNoPromptsFault) {
  Opened opened(tiny::llama(), {.threads = 1});
  GenerateOptions options = sampled(6);
  options.sampling.top_p = 2;
  const auto done = generate_batch(opened.engine(), {}, prompts_of({5, 6}), 2, options,
                                   [](size_t i, Result<Generation>&&) { ADD_FAILURE() << i; });
  EXPECT_THAT(message_of(done), HasSubstr("SamplingParams::top_p"));
}

}  // namespace
}  // namespace kvasir
