// The receipt: what it depends on, and what it does not depend on.
#include <bit>
#include <set>

#include "tests/support/engines.h"

namespace kvasir {
namespace {

using engine_test::greedy_tokens;
using engine_test::message_of;
using engine_test::Opened;
using engine_test::with_receipt;

struct Told {
  CacheStats cache{.layout = "grow", .kv_type_k = "f32", .kv_type_v = "f32", .window = "none"};
  std::vector<int> prompt{1, 2, 3};
  std::vector<std::vector<float>> logits{{0.5f, -1.0f, 2.0f}, {0.25f, 4.0f, -2.0f}};
  std::vector<int> ids{2, 1};

  std::string receipt(const Engine& engine) const {
    auto r = Receipt::start(engine.model(), cache, prompt);
    EXPECT_TRUE(r) << message_of(r);
    for (size_t i = 0; i < ids.size(); ++i) r->add(logits[i], ids[i]);
    return r->hex();
  }
};

TEST(Receipt, ChangesWithEverythingThatItProves) {
  Opened opened(tiny::llama());
  std::set<std::string> seen{Told{}.receipt(opened.engine())};
  const auto differs = [&](auto change) {
    Told told;
    change(told);
    EXPECT_TRUE(seen.insert(told.receipt(opened.engine())).second) << "case " << seen.size();
  };
  differs([](Told& t) { t.cache.kv_type_k = "f16"; });
  differs([](Told& t) { t.cache.kv_type_v = "f16"; });
  differs([](Told& t) { t.cache.window = "64"; });
  differs([](Told& t) { t.prompt[0] = 0; });
  differs([](Told& t) { t.prompt.pop_back(); });
  differs([](Told& t) { t.prompt = {1, 2, 3, 0}; });
  differs([](Told& t) { std::swap(t.prompt[0], t.prompt[1]); });
  differs([](Told& t) { t.ids[1] = 0; });
  differs([](Told& t) { t.ids.pop_back(); });
  differs([](Told& t) { std::swap(t.logits[0], t.logits[1]); });
  for (size_t row = 0; row < 2; ++row)
    for (size_t i = 0; i < 3; ++i)
      for (int bit : {0, 22, 31})
        differs([&](Told& t) {
          float& x = t.logits[row][i];
          x = std::bit_cast<float>(std::bit_cast<uint32_t>(x) ^ (1u << bit));
        });
  tiny::Model other = tiny::llama();
  other.at("model.layers.0.mlp.up_proj.weight").values[3] += 0.001f;
  EXPECT_TRUE(seen.insert(Told{}.receipt(Opened(other).engine())).second) << "another model";
  EXPECT_TRUE(seen.insert(Told{}.receipt(Opened(tiny::llama(codec_bf16())).engine())).second) << "another weight type";
  for (const std::string& hex : seen) {
    EXPECT_EQ(hex.size(), 32u);
    EXPECT_EQ(hex.find_first_not_of("0123456789abcdef"), std::string::npos);
  }
}

TEST(Receipt, DoesNotDependOnTheLayoutOrTheEngine) {
  Opened opened(tiny::llama()), other(tiny::llama(), {.threads = 1, .prefill_chunk = 3});
  Told told;
  const std::string expected = told.receipt(opened.engine());
  EXPECT_EQ(told.receipt(other.engine()), expected);
  told.cache.layout = "dense";
  told.cache.bytes = 12345;
  EXPECT_EQ(told.receipt(opened.engine()), expected);
}

// The chain built by hand from prefill and decode equals what generate() reports, for any layout and engine.
TEST(Receipt, OfAGenerationIsTheChainOfItsLogits) {
  const std::vector<int> prompt = tiny::ids(70);
  std::set<std::string> receipts;
  for (const EngineOptions& options : {EngineOptions{1, 256}, EngineOptions{3, 7}})
    for (const char* layout : {"grow", "dense", "none"}) {
      Opened opened(tiny::llama(), options);
      Session session = opened.session({.layout = layout});
      const auto g = generate(opened.engine(), session, prompt, with_receipt(greedy_tokens(6)));
      ASSERT_TRUE(g) << message_of(g);
      receipts.insert(g->receipt);
      Session again = opened.session();
      engine_test::Copied out;
      ASSERT_TRUE(engine_test::prefill(opened.engine(), again, prompt, &out));
      auto chain = Receipt::start(opened.model(), again.cache_stats(), prompt);
      ASSERT_TRUE(chain);
      for (int id : g->tokens) {
        chain->add(out.logits, id);
        ASSERT_TRUE(engine_test::prefill(opened.engine(), again, {&id, 1}, &out));
      }
      EXPECT_EQ(chain->hex(), g->receipt);
    }
  EXPECT_EQ(receipts.size(), 1u);
}

// The same tokens have the same receipt, as one prompt or as a continuation.
TEST(Receipt, ReuseDoesNotChangeIt) {
  Opened opened(tiny::gpt2());
  const std::vector<int> all = tiny::ids(20), head(all.begin(), all.begin() + 13), tail(all.begin() + 13, all.end());
  const GenerateOptions options = with_receipt(greedy_tokens(5));
  Session whole = opened.session(), parts = opened.session();
  engine_test::Copied out;
  ASSERT_TRUE(engine_test::prefill(opened.engine(), parts, head, &out));
  const auto a = generate(opened.engine(), whole, all, options), b = generate(opened.engine(), parts, tail, options);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->receipt, b->receipt);
  EXPECT_EQ(a->cached_tokens, 0);
  EXPECT_EQ(b->cached_tokens, 13);
  EXPECT_EQ(a->tokens, b->tokens);
}

}  // namespace
}  // namespace kvasir
