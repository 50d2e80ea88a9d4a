// Generation: why it ends, what it refuses without changing anything, what it streams.
#include <algorithm>
#include <set>

#include "tests/support/engines.h"

namespace kvasir {
namespace {

using engine_test::AllOf;
using engine_test::greedy;
using engine_test::greedy_tokens;
using engine_test::HasSubstr;
using engine_test::message_of;
using engine_test::Opened;
using tiny::same_bits;

std::vector<int> tokens_of(const Session& session) { return {session.tokens().begin(), session.tokens().end()}; }

std::vector<int> story(const Opened& tales) { return *tales.model().tokenizer()->encode("Once upon a time"); }

TEST(Generate, StopsAtTheNumberOfTokens) {
  Opened opened(tiny::llama());
  for (int n : {1, 2, 9}) {
    Session session = opened.session();
    const auto g = generate(opened.engine(), session, tiny::ids(5), greedy_tokens(n));
    ASSERT_TRUE(g) << message_of(g);
    EXPECT_EQ(g->stop_reason, StopReason::length);
    EXPECT_EQ(g->tokens.size(), static_cast<size_t>(n));
    EXPECT_EQ(g->prompt_tokens, 5);
    EXPECT_EQ(g->receipt, "") << "not asked for";
    EXPECT_EQ(session.pos(), 5 + n);
    EXPECT_EQ(session.computed(), 5 + n - 1) << "the last token is for the next pass";
  }
}

TEST(Generate, StopsAtTheContext) {
  Opened opened(tiny::llama());
  for (int ctx : {5, 6, 30, 0}) {
    Session session = opened.session({.ctx = ctx});
    EXPECT_EQ(session.ctx(), ctx == 0 ? 160 : ctx);
    const auto g = generate(opened.engine(), session, tiny::ids(5), greedy_tokens(-1));
    ASSERT_TRUE(g) << message_of(g);
    EXPECT_EQ(g->stop_reason, StopReason::length);
    EXPECT_EQ(static_cast<int>(g->tokens.size()), session.ctx() - 5 + 1) << "one more than fits is known";
    EXPECT_EQ(session.pos(), session.ctx());
  }
}

TEST(Generate, GreedyTokensAreTheLargestLogits) {
  Opened opened(tiny::gpt2());
  Session session = opened.session();
  std::vector<int> typed = tiny::ids(5);
  const auto g = generate(opened.engine(), session, typed, greedy_tokens(8));
  ASSERT_TRUE(g);
  for (int id : g->tokens) {
    const std::vector<float> logits = opened.fresh(typed);
    EXPECT_EQ(id, static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    typed.push_back(id);
  }
}

TEST(Generate, StopsAtEndOfText) {
  Opened free(tiny::llama());
  Session session = free.session();
  const std::vector<int> prompt = tiny::ids(5);
  const auto all = generate(free.engine(), session, prompt, greedy_tokens(20));
  ASSERT_TRUE(all);
  const int eos = all->tokens[3];
  const auto first = static_cast<size_t>(std::find(all->tokens.begin(), all->tokens.end(), eos) - all->tokens.begin());
  tiny::Model model = tiny::llama();
  model.edit_config("\"eos_token_id\":7", "\"eos_token_id\":[49," + std::to_string(eos) + "]");
  Opened opened(model);
  GenerateOptions options = greedy_tokens(20);
  options.ignore_eos = false;
  Session until = opened.session(), past = opened.session();
  const auto ended = generate(opened.engine(), until, prompt, options);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->stop_reason, StopReason::eos);
  EXPECT_EQ(ended->tokens,
            std::vector<int>(all->tokens.begin(), all->tokens.begin() + static_cast<std::ptrdiff_t>(first) + 1));
  const auto ignored = generate(opened.engine(), past, prompt, greedy_tokens(20));
  ASSERT_TRUE(ignored);
  EXPECT_EQ(ignored->tokens, all->tokens);
}

TEST(Generate, StreamsTheTextInWholeCharacters) {
  Opened tales("tales");
  Session session = tales.session();
  std::vector<std::string> pieces;
  std::vector<int> streamed;
  GenerateOptions options = greedy_tokens(40);
  options.on_event = [&](size_t sequence, const Event& event) {
    EXPECT_EQ(sequence, 0u);
    pieces.emplace_back(event.text);
    streamed.insert(streamed.end(), event.ids.begin(), event.ids.end());
    EXPECT_EQ(event.stop.has_value(), streamed.size() == 40);
    return true;
  };
  const auto g = generate(tales.engine(), session, story(tales), options);
  ASSERT_TRUE(g) << message_of(g);
  std::string joined;
  for (const std::string& piece : pieces) joined += piece;
  EXPECT_EQ(streamed, g->tokens);
  EXPECT_EQ(joined, g->text);
  EXPECT_EQ(*tales.model().tokenizer()->decode(g->tokens), g->text);
  EXPECT_EQ(pieces.size(), 40u) << "an event a token";
}

TEST(Generate, StopStringsEndTheTextBeforeThem) {
  Opened tales("tales");
  Session session = tales.session();
  const auto all = generate(tales.engine(), session, story(tales), greedy_tokens(40));
  ASSERT_TRUE(all);
  for (size_t length : {1u, 4u, 9u}) {
    const std::string stop = all->text.substr(all->text.size() / 2, length);
    GenerateOptions options = greedy_tokens(40);
    options.stop = {"\x01 never \x02", stop};
    std::string shown;
    options.on_event = [&](size_t, const Event& event) {
      shown += event.text;
      return true;
    };
    Session again = tales.session();
    const auto g = generate(tales.engine(), again, story(tales), options);
    ASSERT_TRUE(g);
    EXPECT_EQ(g->stop_reason, StopReason::stop);
    EXPECT_EQ(g->text, all->text.substr(0, all->text.find(stop)));
    EXPECT_EQ(shown, g->text);
    EXPECT_LT(g->tokens.size(), 40u);
  }
}

TEST(Generate, TheCallerCanCancel) {
  Opened tales("tales");
  for (int pieces : {1, 5}) {
    Session session = tales.session();
    int seen = 0;
    GenerateOptions options = greedy_tokens(60);
    options.on_event = [&](size_t, const Event&) { return ++seen < pieces; };
    const auto g = generate(tales.engine(), session, story(tales), options);
    ASSERT_TRUE(g);
    EXPECT_EQ(g->stop_reason, StopReason::cancelled);
    EXPECT_EQ(seen, pieces) << "not called again";
    EXPECT_LT(g->tokens.size(), 60u);
  }
}

TEST(Generate, RefusalsLeaveTheSessionAsItWas) {
  Opened opened(tiny::llama());
  Session session = opened.session({.ctx = 20});
  engine_test::Copied out;
  const std::vector<int> typed = tiny::ids(8), more = tiny::ids(3, 1);
  ASSERT_TRUE(engine_test::prefill(opened.engine(), session, typed, &out));
  const auto refused = [&](std::span<const int> prompt, const GenerateOptions& options, auto matcher) {
    EXPECT_THAT(message_of(generate(opened.engine(), session, prompt, options)), matcher);
    EXPECT_EQ(tokens_of(session), typed);
  };
  refused(tiny::ids(13), greedy_tokens(3), AllOf(HasSubstr("21"), HasSubstr("20")));
  refused(more, greedy_tokens(0), AllOf(HasSubstr("0 tokens"), HasSubstr("GenerateOptions::max_tokens")));
  refused(more, greedy_tokens(-2), HasSubstr("-2"));
  refused(std::vector<int>{1, 50}, greedy_tokens(3), AllOf(HasSubstr("50"), HasSubstr("id")));
  GenerateOptions hot = greedy_tokens(3);
  hot.sampling.temperature = 101;
  refused(more, hot, HasSubstr("temp"));
  std::vector<int> whole = typed;
  whole.insert(whole.end(), more.begin(), more.end());
  ASSERT_TRUE(engine_test::prefill(opened.engine(), session, more, &out));
  Session empty = opened.session();
  EXPECT_THAT(message_of(generate(opened.engine(), empty, {}, greedy_tokens(3))), HasSubstr("empty"));
  EXPECT_TRUE(same_bits(out.logits, opened.fresh(whole))) << "and it goes on as if nothing had been asked";
}

TEST(Generate, SamplingIsReproducibleAndSeeded) {
  Opened opened(tiny::llama());
  std::set<std::vector<int>> runs;
  for (uint64_t seed : {1u, 2u, 3u})
    for (int repeat = 0; repeat < 2; ++repeat) {
      Session session = opened.session();
      GenerateOptions options = greedy_tokens(20);
      options.sampling = {.temperature = 1.5, .seed = seed};
      const auto g = generate(opened.engine(), session, tiny::ids(5), options);
      ASSERT_TRUE(g);
      runs.insert(g->tokens);
    }
  EXPECT_EQ(runs.size(), 3u);
}

TEST(Generate, ContinuesAConversation) {
  Opened opened(tiny::llama());
  Session session = opened.session();
  const auto first = generate(opened.engine(), session, tiny::ids(70), greedy_tokens(5));
  ASSERT_TRUE(first);
  const std::vector<int> reply = tiny::ids(9, 4);
  std::vector<int> whole = tokens_of(session);
  whole.insert(whole.end(), reply.begin(), reply.end());
  const auto second = generate(opened.engine(), session, reply, greedy_tokens(6));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->cached_tokens, 75);
  EXPECT_EQ(second->prompt_tokens, 9);
  Session fresh = opened.session();
  const auto expected = generate(opened.engine(), fresh, whole, greedy_tokens(6));
  ASSERT_TRUE(expected);
  EXPECT_EQ(second->tokens, expected->tokens);
}

TEST(Generate, StatisticsAddUp) {
  Opened opened(tiny::llama(), {.threads = 3}, engine_test::with_weights("mapped"));
  for (const char* layout : {"grow", "dense", "concat", "none"}) {
    Session session = opened.session({.layout = layout, .kv_type_k = "f16", .kv_type_v = "bf16"});
    const auto g = generate(opened.engine(), session, tiny::ids(70), greedy_tokens(4));
    ASSERT_TRUE(g);
    const GenStats& s = g->stats;
    EXPECT_EQ(s.threads, 3);
    EXPECT_EQ(s.cpu, opened.engine().cpu());
    EXPECT_EQ(s.weights, "mapped");
    EXPECT_EQ(s.weights_bytes, opened.model().info().weights_bytes);
    EXPECT_EQ(s.cache.layout, layout);
    EXPECT_EQ(s.cache.kv_type_k, "f16");
    EXPECT_EQ(s.cache.kv_type_v, "bf16");
    EXPECT_EQ(s.cache.bytes, s.cache.predicted_bytes) << layout;
    EXPECT_GE(s.cache.peak_bytes, s.cache.bytes);
    EXPECT_EQ(s.cache.bytes, static_cast<size_t>(s.cache.capacity) * 2 * 16 * (2 + 2)) << "layers * kv_dim * (K + V)";
    EXPECT_GT(s.ttft_ms, 0);
    EXPECT_GT(s.prefill_tok_s, 0);
    EXPECT_GT(s.decode_tok_s, 0);
    EXPECT_GT(s.peak_rss_bytes, 0u);
    EXPECT_FALSE(s.rss) << "it takes time, and nobody asked";
  }
}

TEST(Generate, SplitsTheResidentSetWhenAsked) {
  Opened opened("tales");
  Session session = opened.session({.layout = "dense", .ctx = 100});
  GenerateOptions options = greedy_tokens(4);
  options.rss = true;
  const auto g = generate(opened.engine(), session, tiny::ids(70), options);
  ASSERT_TRUE(g && g->stats.rss);
  const RssByOwner& rss = *g->stats.rss;
  EXPECT_GE(rss.kv, g->stats.cache.bytes);
  EXPECT_GE(rss.weights, g->stats.weights_bytes / 100 * 99) << "norms are decoded on the heap";
  EXPECT_GT(rss.activations, 0u);
  EXPECT_EQ(rss.tokenizer, opened.model().info().tokenizer_bytes);
  EXPECT_GT(rss.code, 0u);
  EXPECT_GT(rss.kernel, rss.kv + rss.weights);
}

}  // namespace
}  // namespace kvasir
