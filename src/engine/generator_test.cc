// Generators over passes: however passes are divided or shared, and in whichever session, the bits are the same; a
// session, its forks, its snapshots and the text agree.
#include <numeric>
#include <random>

#include "tests/support/engines.h"

namespace kvasir {
namespace {

using engine_test::greedy_tokens;
using engine_test::layout_names;
using engine_test::Opened;
using engine_test::with_receipt;
using testing::HasSubstr;
using tiny::message_of;
using tiny::same_bits;

std::vector<int> copy_of(std::span<const int> ids) { return {ids.begin(), ids.end()}; }

std::vector<int> joined(std::vector<int> a, const std::vector<int>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

GenerateOptions sampled_tokens(int n, uint64_t seed) {
  GenerateOptions options = with_receipt(greedy_tokens(n));
  options.sampling = {.temperature = 1.2, .seed = seed};
  return options;
}

// ---- the session and the text -------------------------------------------------------------------------------------

TEST(Generator, TheSessionItsForkItsSnapshotAndTheTextAgree) {
  Opened opened(tiny::llama());
  const std::vector<int> prompt = tiny::ids(70);
  for (const std::string& layout : layout_names())
    for (const int lookup : {0, 5}) {
      Session session = opened.session({.layout = layout}), loaded = opened.session({.layout = layout});
      GenerateOptions options = greedy_tokens(9);
      options.lookup = lookup;
      const auto g = generate(opened.engine(), session, prompt, options);
      ASSERT_TRUE(g) << message_of(g);
      const std::vector<int> text = joined(prompt, g->tokens);
      EXPECT_EQ(copy_of(session.tokens()), text) << layout;
      auto fork = session.fork();
      ASSERT_TRUE(fork) << message_of(fork);
      EXPECT_EQ(copy_of(fork->tokens()), text);
      const std::string file = (opened.folder() / "saved.kv").string();
      ASSERT_TRUE(session.save(file));
      ASSERT_TRUE(loaded.load(file));
      EXPECT_EQ(copy_of(loaded.tokens()), text);
      const auto want = generate(opened.engine(), session, tiny::ids(3, 5), with_receipt(greedy_tokens(6)));
      for (Session* other : {&*fork, &loaded}) {
        const auto got = generate(opened.engine(), *other, tiny::ids(3, 5), with_receipt(greedy_tokens(6)));
        ASSERT_TRUE(want && got) << message_of(got);
        EXPECT_EQ(got->receipt, want->receipt) << layout;
      }
    }
}

TEST(Generator, AnEmptyPromptGoesOnWhereTheTextEnded) {
  Opened opened(tiny::llama());
  for (const std::string& layout : layout_names()) {
    Session whole = opened.session({.layout = layout}), parts = opened.session({.layout = layout});
    const auto want = generate(opened.engine(), whole, tiny::ids(20), greedy_tokens(30));
    ASSERT_TRUE(want) << message_of(want);
    std::vector<int> got;
    for (const int n : {1, 9, 20}) {
      const auto part =
          generate(opened.engine(), parts, got.empty() ? tiny::ids(20) : std::vector<int>(), greedy_tokens(n));
      ASSERT_TRUE(part) << message_of(part);
      got = joined(got, part->tokens);
    }
    EXPECT_EQ(got, want->tokens) << layout;
    EXPECT_EQ(copy_of(parts.tokens()), copy_of(whole.tokens()));
  }
}

TEST(Generator, AFullContextThatIsRecomputedLeavesItsLastHalfInTheSession) {
  Opened opened(tiny::llama());
  Session session = opened.session({.ctx = 40});
  GenerateOptions options = greedy_tokens(21);  // the last one is chosen at position 40
  options.on_full = OnFull::recompute;
  const auto g = generate(opened.engine(), session, tiny::ids(20), options);
  ASSERT_TRUE(g) << message_of(g);
  const std::vector<int> text = joined(tiny::ids(20), g->tokens);
  EXPECT_EQ(copy_of(session.tokens()), std::vector<int>(text.end() - 21, text.end()));
}

// ---- passes ---------------------------------------------------------------------------------------------------------

// Runs each generator alone, one feed a step.
Generation alone(Opened& opened, const std::vector<int>& prompt, const GenerateOptions& options) {
  Session session = opened.session();
  const auto g = generate(opened.engine(), session, prompt, options);
  EXPECT_TRUE(g) << message_of(g);
  return g.value_or(Generation{});
}

struct Sequence {
  Session session;
  Generator generator;
  std::optional<Error> error = {};
};

// Runs one pass with some of the sequences, each with a part of its tokens. Returns false when all are done.
bool run_pass(Opened& opened, std::vector<Sequence>& all, std::mt19937& random) {
  std::vector<Feed> feeds;
  std::vector<Sequence*> fed;
  int room = opened.engine().pass_tokens();
  for (Sequence& s : all) {
    if (s.generator.done() || s.error || random() % 3 == 0 || room == 0) continue;
    const int most = 1 + static_cast<int>(random() % static_cast<uint32_t>(std::min(room, 40)));
    feeds.push_back(s.generator.next(s.session, most));
    room -= static_cast<int>(feeds.back().tokens.size());
    fed.push_back(&s);
  }
  PassOutput out;
  const auto done = opened.engine().pass(feeds, &out);
  EXPECT_TRUE(done) << message_of(done);
  for (size_t i = 0; done && i < fed.size(); ++i) {
    if (out[i].error) {
      fed[i]->error = out[i].error;
      continue;
    }
    const auto event = fed[i]->generator.take(out[i].logits);
    EXPECT_TRUE(event) << message_of(event);
  }
  return std::any_of(all.begin(), all.end(), [](const Sequence& s) { return !s.error && !s.generator.done(); });
}

TEST(SlowGenerator, AHundredSequencesWithRandomCutsGiveWhatEachGivesAlone) {
  Opened opened(tiny::llama(), {.threads = 2, .prefill_chunk = 120});
  std::mt19937 random(11);
  std::vector<Sequence> all;
  std::vector<Generation> want;
  const std::vector<std::string> layouts = layout_names();
  for (size_t i = 0; i < 100; ++i) {
    const std::vector<int> prompt = tiny::ids(1 + static_cast<int>(i * 7 % 110), i);
    const GenerateOptions options = sampled_tokens(1 + static_cast<int>(i % 13), i);
    want.push_back(alone(opened, prompt, options));
    std::string layout = layouts[i % layouts.size()];
    if (layout == "none") layout = "paged";  // `none` recomputes its whole text in every pass
    auto generator = Generator::create(opened.shared(), prompt, options);
    ASSERT_TRUE(generator) << message_of(generator);
    all.push_back({opened.session({.layout = layout}), std::move(*generator)});
  }
  while (run_pass(opened, all, random)) {
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const Generation got = all[i].generator.result();
    EXPECT_EQ(got.receipt, want[i].receipt) << i;
    EXPECT_EQ(got.tokens, want[i].tokens) << i;
    EXPECT_EQ(copy_of(all[i].session.tokens()), copy_of(all[i].generator.tokens())) << i;
  }
}

TEST(Generator, APoisonedSequenceFailsAlone) {
  constexpr int kPoison = 13;  // one channel is large, so that its norm is sqrt(24) there, times 1e38
  tiny::Model model = tiny::llama();
  for (size_t d = 0; d < 24; ++d) model.at("model.embed_tokens.weight").values[kPoison * 24 + d] = d == 0 ? 1e6f : 0;
  model.at("model.norm.weight").values[0] = 1;
  model.at("lm_head.weight").values[5 * 24] = 1e38f;
  Opened opened(model, {.threads = 2, .prefill_chunk = 64});
  const auto clean = [](int n, uint64_t seed) {
    std::vector<int> ids = tiny::ids(n, seed);
    std::replace(ids.begin(), ids.end(), +kPoison, 14);
    return ids;
  };
  std::vector<int> bad = clean(30, 2);
  bad.back() = kPoison;
  Session good = opened.session(), poisoned = opened.session(), alone = opened.session();
  engine_test::Copied first;
  ASSERT_TRUE(engine_test::prefill(opened.engine(), poisoned, clean(5, 9), &first));
  const std::vector<int> fine = clean(20, 1);
  const Feed feeds[] = {{&poisoned, bad}, {&good, fine}};
  for (int round = 0; round < 2; ++round) {  // again after it has failed once
    PassOutput out;
    ASSERT_TRUE(opened.engine().pass(feeds, &out));
    ASSERT_TRUE(out[0].error);
    EXPECT_EQ(out[0].error->kind, Error::not_finite);
    EXPECT_THAT(out[0].error->what, HasSubstr("the logit of token 5 at position 34"));
    EXPECT_TRUE(out[0].logits.empty());
    EXPECT_EQ(poisoned.pos(), 5) << "as it was";
    EXPECT_EQ(poisoned.computed(), 5);
    ASSERT_FALSE(out[1].error);
    const std::vector<float> logits(out[1].logits.begin(), out[1].logits.end());
    engine_test::Copied expected;
    ASSERT_TRUE(engine_test::prefill(opened.engine(), alone, fine, &expected));
    EXPECT_TRUE(same_bits(logits, expected.logits));
  }
}

TEST(Generator, APassTakesNoMoreThanItWasMadeFor) {
  Opened opened(tiny::llama(), {.threads = 1, .prefill_chunk = 10});
  EXPECT_EQ(opened.engine().pass_tokens(), 10);
  Session session = opened.session();
  const std::vector<int> ids = tiny::ids(11);
  const Feed whole{&session, ids}, part{&session, std::span(ids).first(10), Logits::none};
  PassOutput out;
  const auto refused = opened.engine().pass({&whole, 1}, &out);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::too_long);
  EXPECT_THAT(message_of(refused), testing::AllOf(HasSubstr("11"), HasSubstr("10")));
  EXPECT_EQ(session.pos(), 0);
  ASSERT_TRUE(opened.engine().pass({&part, 1}, &out));
  EXPECT_TRUE(out[0].logits.empty());
  EXPECT_EQ(session.computed(), 10);
}

// ---- generators without their session -------------------------------------------------------------------------------

TEST(Generator, GoesOnInAnotherSessionOfAnotherLayout) {
  Opened opened(tiny::llama());
  const std::vector<int> prompt = tiny::ids(33);
  const GenerateOptions options = sampled_tokens(24, 3);
  const Generation want = alone(opened, prompt, options);
  auto generator = Generator::create(opened.shared(), prompt, options);
  ASSERT_TRUE(generator) << message_of(generator);
  size_t at = 0;
  for (const std::string& layout : layout_names()) {
    Session session = opened.session({.layout = layout});
    for (size_t to = at + 3; at < to && !generator->done(); ++at) {
      const Feed feed = generator->next(session);
      PassOutput out;
      ASSERT_TRUE(opened.engine().pass({&feed, 1}, &out));
      ASSERT_TRUE(generator->take(out[0].logits));
    }
  }
  Session last = opened.session({.layout = "paged"});
  while (!generator->done()) {
    const Feed feed = generator->next(last);
    PassOutput out;
    ASSERT_TRUE(opened.engine().pass({&feed, 1}, &out));
    ASSERT_TRUE(generator->take(out[0].logits));
  }
  EXPECT_EQ(generator->result().receipt, want.receipt);
  EXPECT_EQ(generator->result().tokens, want.tokens);
}

TEST(Generator, EventsAddUpToTheResult) {
  Opened tales("tales");
  Session session = tales.session();
  GenerateOptions options = greedy_tokens(25);
  options.logprobs = 3;
  options.lookup = 4;
  std::vector<int> ids;
  std::string text;
  std::vector<TokenLogprob> logprobs;
  int ends = 0;
  options.on_event = [&](size_t, const Event& event) {
    ids.insert(ids.end(), event.ids.begin(), event.ids.end());
    text += event.text;
    logprobs.insert(logprobs.end(), event.logprobs.begin(), event.logprobs.end());
    ends += event.stop ? 1 : 0;
    return true;
  };
  const auto g = generate(tales.engine(), session, *tales.model().tokenizer()->encode("One day"), options);
  ASSERT_TRUE(g) << message_of(g);
  EXPECT_EQ(ids, g->tokens);
  EXPECT_EQ(text, g->text);
  EXPECT_EQ(ends, 1);
  ASSERT_EQ(logprobs.size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(logprobs[i].id, ids[i]);
    ASSERT_EQ(logprobs[i].top.size(), 3u);
    EXPECT_EQ(logprobs[i].top[0].first, ids[i]) << "greedy";
    EXPECT_EQ(logprobs[i].top[0].second, logprobs[i].logprob);
    EXPECT_LT(logprobs[i].logprob, 0);
  }
}

TEST(Generator, ABatchStreamsEverySequence) {
  Opened opened(tiny::llama());
  std::vector<std::vector<int>> prompts, streamed(5), done(5);
  for (size_t i = 0; i < 5; ++i) prompts.push_back(tiny::ids(10 + static_cast<int>(i) * 9, i));
  GenerateOptions options = greedy_tokens(12);
  options.on_event = [&](size_t sequence, const Event& event) {
    streamed[sequence].insert(streamed[sequence].end(), event.ids.begin(), event.ids.end());
    return sequence != 3 || streamed[3].size() < 4;
  };
  ASSERT_TRUE(generate_batch(opened.engine(), {}, prompts, 3, options, [&](size_t i, Result<Generation>&& g) {
    ASSERT_TRUE(g) << message_of(g);
    EXPECT_EQ(g->stop_reason, i == 3 ? StopReason::cancelled : StopReason::length);
    done[i] = g->tokens;
  }));
  EXPECT_EQ(streamed, done);
  EXPECT_EQ(done[3].size(), 4u);
  EXPECT_EQ(done[4].size(), 12u);
}

// Allows only even ids, and ends after three of them.
class Even : public Constraint {
 public:
  void allow(std::span<uint64_t> mask) override {
    for (uint64_t& word : mask) word = 0x5555555555555555u;
  }
  void accept(int) override { ++accepted_; }
  bool done() const override { return accepted_ == 3; }
  std::unique_ptr<Constraint> clone() const override { return std::make_unique<Even>(*this); }

 private:
  int accepted_ = 0;
};

TEST(Generator, AConstraintAllowsTokensAndEndsTheText) {
  Opened opened(tiny::llama());
  GenerateOptions options = sampled_tokens(20, 4);
  options.constraint = std::make_shared<Even>();
  for (int repeat = 0; repeat < 2; ++repeat) {  // each generation starts with its own clone
    const Generation g = alone(opened, tiny::ids(9), options);
    ASSERT_EQ(g.tokens.size(), 3u);
    for (const int id : g.tokens) EXPECT_EQ(id % 2, 0);
    EXPECT_EQ(g.stop_reason, StopReason::stop);
  }
}

}  // namespace
}  // namespace kvasir
