// Requests that share an engine: each has the answer that it has alone, whatever the others do and however little
// memory there is; none waits for ever; nothing is left allocated at the end.
#include <kvasir/scheduler.h>

#include <map>
#include <random>
#include <set>
#include <thread>

#include "cache/block_pool.h"
#include "engine/model_impl.h"
#include "tests/support/engines.h"

namespace kvasir {
namespace {

using namespace engine_test;

constexpr size_t kKept = size_t{1} << 30;

tiny::Model with_ctx(int ctx) {
  tiny::Model model = tiny::llama();
  model.edit_config("\"max_position_embeddings\":160", "\"max_position_embeddings\":" + std::to_string(ctx));
  return model;
}

GenerateOptions sampled(int tokens, uint64_t seed = 7) {
  GenerateOptions options = with_receipt(greedy_tokens(tokens));
  options.sampling = {.temperature = 1.1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = seed};
  return options;
}

Request request_of(std::vector<int> prompt, GenerateOptions options) {
  return {.prompt = std::move(prompt), .options = std::move(options)};
}

/// The events of a request, joined into one entry per choice.
struct Outcome {
  std::vector<int> ids;
  std::optional<Admitted> admitted;
  std::optional<Finished> finished;
  std::optional<Error> error;
};
using Outcomes = std::map<std::pair<RequestId, int>, Outcome>;

OnRequestEvents collect(Outcomes* outcomes) {
  return [outcomes](std::span<RequestEvent> events) {
    for (RequestEvent& event : events) {
      Outcome& outcome = (*outcomes)[{event.request, event.choice}];
      EXPECT_FALSE(outcome.finished || outcome.error) << "news after the end";
      if (auto* admitted = std::get_if<Admitted>(&event.news)) outcome.admitted = *admitted;
      if (auto* news = std::get_if<Event>(&event.news))
        outcome.ids.insert(outcome.ids.end(), news->ids.begin(), news->ids.end());
      if (auto* done = std::get_if<Finished>(&event.news)) outcome.finished = std::move(*done);
      if (auto* error = std::get_if<Error>(&event.news)) outcome.error = std::move(*error);
    }
  };
}

struct Scheduled {
  explicit Scheduled(Opened& opened, SchedulerOptions options = {}) {
    auto made = Scheduler::create(opened.engine(), std::move(options));
    EXPECT_TRUE(made) << message_of(made);
    scheduler = std::move(*made);
  }
  RequestId submit(Request request) {
    auto id = scheduler->submit(std::move(request));
    EXPECT_TRUE(id) << message_of(id);
    return id ? *id : 0;
  }
  bool turn() { return scheduler->run_once(collect(&outcomes)); }
  void finish() {
    for (int turns = 0; turn(); ++turns) ASSERT_LT(turns, 100000) << "it does not end";
  }
  const Outcome& of(RequestId id, int choice = 0) { return outcomes[{id, choice}]; }

  std::unique_ptr<Scheduler> scheduler;
  Outcomes outcomes;
};

Generation alone(Opened& opened, std::span<const int> prompt, const GenerateOptions& options) {
  Session session = opened.session({.layout = "paged"});
  auto g = generate(opened.engine(), session, prompt, options);
  EXPECT_TRUE(g) << message_of(g);
  return g ? std::move(*g) : Generation{};
}

void expect_equal(const Outcome& outcome, const Generation& want, const std::string& what) {
  ASSERT_TRUE(outcome.finished) << what << (outcome.error ? outcome.error->message() : " has not ended");
  const Generation& got = outcome.finished->generation;
  EXPECT_EQ(got.tokens, want.tokens) << what;
  EXPECT_EQ(outcome.ids, want.tokens) << what;
  EXPECT_EQ(got.text, want.text) << what;
  EXPECT_EQ(got.receipt, want.receipt) << what;
  EXPECT_EQ(got.stop_reason, want.stop_reason) << what;
}

// ---- alone and together -------------------------------------------------------------------------------------------

TEST(Scheduler, OneRequestIsWhatGenerateGives) {
  Opened opened(with_ctx(400), {.threads = 2, .prefill_chunk = 32});
  const Generation want = alone(opened, tiny::ids(100), sampled(20));
  Scheduled s(opened);
  const RequestId id = s.submit(request_of(tiny::ids(100), sampled(20)));
  s.finish();
  expect_equal(s.of(id), want, "alone");
  EXPECT_EQ(s.of(id).finished->computed, 100);
  EXPECT_EQ(s.of(id).finished->recomputed, 0);
  const SchedulerStats stats = s.scheduler->stats();
  EXPECT_EQ(stats.finished, 1);
  EXPECT_EQ(stats.computed, 100);
  EXPECT_EQ(stats.generated, 20);
  EXPECT_EQ(stats.running + stats.waiting, 0);
}

TEST(Scheduler, ManyOfAnyLengthsGiveWhatEachGivesAlone) {
  Opened opened(with_ctx(400), {.threads = 2, .prefill_chunk = 48, .prefix_ram = kKept});
  std::mt19937 random(3);
  std::vector<std::vector<int>> prompts;
  std::vector<Generation> want;
  for (int i = 0; i < 24; ++i) {
    prompts.push_back(tiny::ids(1 + static_cast<int>(random() % 200), static_cast<int>(random() % 3)));
    want.push_back(alone(opened, prompts.back(), sampled(1 + i, static_cast<uint64_t>(i))));
  }
  Scheduled s(opened, {.max_sequences = 7, .step_ms = 3});
  std::vector<RequestId> ids;
  for (size_t i = 0; i < prompts.size(); ++i) {
    ids.push_back(s.submit(request_of(prompts[i], sampled(1 + static_cast<int>(i), i))));
    if (random() % 2 == 0) s.turn();
  }
  s.finish();
  for (size_t i = 0; i < ids.size(); ++i) expect_equal(s.of(ids[i]), want[i], std::to_string(i));
}

TEST(Scheduler, ChoicesAreThoseOfOneSeedAndShareTheirPrompt) {
  Opened opened(with_ctx(400), {.threads = 2, .prefill_chunk = 64});
  Session session = opened.session({.layout = "paged"});
  const auto want = generate_samples(opened.engine(), session, tiny::ids(150), 5, sampled(12));
  ASSERT_TRUE(want) << message_of(want);
  Scheduled s(opened);
  Request request = request_of(tiny::ids(150), sampled(12));
  request.choices = 5;
  const RequestId id = s.submit(std::move(request));
  s.finish();
  for (int choice = 0; choice < 5; ++choice)
    expect_equal(s.of(id, choice), (*want)[static_cast<size_t>(choice)], std::to_string(choice));
  EXPECT_EQ(s.scheduler->stats().computed, 150);
  EXPECT_EQ(s.scheduler->stats().recomputed, 0);
}

// The second request's prefix is stored, but it needs the hidden states of the whole text.
TEST(Scheduler, EmbeddingsAreTheEngines) {
  Opened opened(with_ctx(400), {.threads = 2, .prefill_chunk = 32, .prefix_ram = kKept});
  Scheduled s(opened);
  for (const Pooling pooling : {Pooling::mean, Pooling::last}) {
    Session session = opened.session();
    const auto want = opened.engine().embed(session, tiny::ids(150), pooling);
    ASSERT_TRUE(want) << message_of(want);
    Request request = request_of(tiny::ids(150), {});
    request.pooling = pooling;
    const RequestId id = s.submit(std::move(request));
    s.submit(request_of(tiny::ids(90), sampled(20)));
    s.finish();
    ASSERT_TRUE(s.of(id).finished);
    EXPECT_EQ(s.of(id).finished->embedding, *want);
  }
}

TEST(Scheduler, EveryLayoutServes) {
  Opened opened(with_ctx(400), {.threads = 2, .prefill_chunk = 32});
  const Generation want = alone(opened, tiny::ids(70), sampled(10));
  for (const std::string& layout : layout_names()) {
    Scheduled s(opened, {.session = {.layout = layout}});
    std::vector<RequestId> ids;
    for (int i = 0; i < 3; ++i) ids.push_back(s.submit(request_of(tiny::ids(70), sampled(10))));
    s.finish();
    for (const RequestId id : ids) expect_equal(s.of(id), want, layout);
  }
}

// ---- little memory ------------------------------------------------------------------------------------------------

// A pool that holds one and a half sequences: they preempt each other, and the answers do not change.
TEST(Scheduler, PreemptedSequencesGoOnWithTheSameBits) {
  const tiny::Model model = with_ctx(600);
  Opened roomy(model, {.threads = 2});
  Session probe = roomy.session({.layout = "paged"});
  const size_t block = *roomy.engine().kv_bytes({.layout = "paged"}, 1);
  ModelOptions limited;
  limited.kv_ram = 9 * block;  // 6 blocks each
  for (const size_t kept : {size_t{0}, kKept}) {
    Opened opened(model, {.threads = 2, .prefill_chunk = 64, .prefix_ram = kept}, limited);
    Scheduled s(opened, {.max_sequences = 4, .step_ms = 0});
    std::vector<RequestId> ids;
    for (int i = 0; i < 6; ++i) {
      Request request = request_of(tiny::ids(60 + i, i), sampled(300, static_cast<uint64_t>(i)));
      request.choices = i == 5 ? 3 : 1;
      ids.push_back(s.submit(std::move(request)));
    }
    s.finish();
    for (int i = 0; i < 5; ++i)
      expect_equal(s.of(ids[static_cast<size_t>(i)]),
                   alone(roomy, tiny::ids(60 + i, i), sampled(300, static_cast<uint64_t>(i))), std::to_string(i));
    Session session = roomy.session({.layout = "paged"});
    const auto samples = generate_samples(roomy.engine(), session, tiny::ids(65, 5), 3, sampled(300, 5));
    for (int choice = 0; choice < 3; ++choice)
      expect_equal(s.of(ids[5], choice), (*samples)[static_cast<size_t>(choice)], "choice");
    const SchedulerStats stats = s.scheduler->stats();
    EXPECT_GT(stats.preemptions, 0);
    EXPECT_EQ(stats.reused + stats.computed, 60 + 61 + 62 + 63 + 64 + 65);
    EXPECT_GT(stats.recomputed, 0);
    const BlockPool& pool = *opened.model().impl().memory.pool();
    EXPECT_EQ(pool.used_bytes(), opened.engine().prefix_stats().bytes) << "what is held is kept for others";
  }
}

TEST(Scheduler, ARequestThatNeverFitsIsRefusedAtOnce) {
  ModelOptions limited;
  Opened roomy(with_ctx(600));
  limited.kv_ram = 4 * *roomy.engine().kv_bytes({.layout = "paged"}, 1);
  Opened opened(with_ctx(600), {.threads = 1}, limited);
  Scheduled s(opened);
  EXPECT_EQ(s.scheduler->ctx(), 256);
  auto refused = s.scheduler->submit(request_of(tiny::ids(257), sampled(3)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::too_long);
  EXPECT_THAT(message_of(refused), AllOf(HasSubstr("257"), HasSubstr("256")));
  EXPECT_TRUE(s.scheduler->submit(request_of(tiny::ids(256), sampled(3))));
  s.finish();
  EXPECT_EQ(s.scheduler->stats().finished, 1);
}

// ---- sharing ------------------------------------------------------------------------------------------------------

TEST(Scheduler, OneNewPrefixIsComputedOnce) {
  Opened opened(with_ctx(700), {.threads = 2, .prefill_chunk = 64, .prefix_ram = kKept});
  Scheduled s(opened, {.max_sequences = 16});
  const std::vector<int> common = tiny::ids(512);
  std::vector<RequestId> ids;
  std::vector<std::vector<int>> prompts;
  for (int i = 0; i < 12; ++i) {
    std::vector<int> prompt = common;
    for (const int id : tiny::ids(5, 10 + i)) prompt.push_back(id);
    prompts.push_back(prompt);
    ids.push_back(s.submit(request_of(prompt, sampled(8))));
  }
  s.finish();
  for (size_t i = 0; i < ids.size(); ++i) expect_equal(s.of(ids[i]), alone(opened, prompts[i], sampled(8)), "shared");
  EXPECT_LE(s.scheduler->stats().computed, 512 + 12 * 5);
  EXPECT_GE(s.of(ids[11]).admitted->reused, 512);
}

TEST(Scheduler, AMissSaysWhereTheTextsPart) {
  Opened opened(with_ctx(400), {.threads = 1, .prefix_ram = kKept});
  Scheduled s(opened);
  std::vector<int> text = tiny::ids(200);
  s.submit(request_of(text, sampled(1)));
  s.finish();
  const std::vector<int> next(text.begin() + 150, text.begin() + 166);
  text[150] = text[150] == 3 ? 4 : 3;
  const RequestId id = s.submit(request_of(text, sampled(1)));
  s.finish();
  EXPECT_EQ(s.of(id).admitted->reused, 150);
  EXPECT_EQ(s.of(id).admitted->kept_ids, next);
}

TEST(Scheduler, SaltsAndRequestsWithoutReuseShareNothing) {
  Opened opened(with_ctx(400), {.threads = 1, .prefix_ram = kKept});
  Scheduled s(opened);
  Request salted = request_of(tiny::ids(200), sampled(1));
  salted.salt = "one";
  s.submit(salted);
  s.finish();
  salted.salt = "other";
  const RequestId other = s.submit(salted);
  s.finish();
  EXPECT_EQ(s.of(other).admitted->reused, 0);
  salted.reuse = false;
  const RequestId without = s.submit(salted);
  s.finish();
  EXPECT_EQ(s.of(without).admitted->reused, 0);
  salted.reuse = true;
  const RequestId again = s.submit(salted);
  s.finish();
  EXPECT_EQ(s.of(again).admitted->reused, 199);
}

// ---- ends ---------------------------------------------------------------------------------------------------------

TEST(Scheduler, CancellingAnywhereChangesNobodyElse) {
  Opened opened(with_ctx(400), {.threads = 2, .prefill_chunk = 32, .prefix_ram = kKept});
  const Generation want = alone(opened, tiny::ids(90), sampled(40));
  for (int after = 0; after < 12; ++after) {
    Scheduled s(opened, {.max_sequences = 2});
    const RequestId gone = s.submit(request_of(tiny::ids(200, after), sampled(40)));
    const RequestId stays = s.submit(request_of(tiny::ids(90), sampled(40)));
    const RequestId queued = s.submit(request_of(tiny::ids(80, 3), sampled(40)));
    for (int i = 0; i < after; ++i) s.turn();
    s.scheduler->cancel(gone);
    s.scheduler->cancel(queued);
    s.scheduler->cancel(12345);
    s.turn();
    EXPECT_TRUE(s.of(gone).finished) << "one turn is enough";
    s.finish();
    EXPECT_EQ(s.of(gone).finished->generation.stop_reason, StopReason::cancelled);
    expect_equal(s.of(stays), want, std::to_string(after));
    EXPECT_EQ(s.scheduler->stats().cancelled, 2);
  }
}

// The choice that would have computed the prompt for the others is cancelled before it was admitted.
TEST(Scheduler, AChoiceThatLeavesTheQueueIsNotWaitedFor) {
  Opened opened(with_ctx(400), {.threads = 1});
  Scheduled s(opened, {.max_sequences = 1});
  s.submit(request_of(tiny::ids(50), sampled(5)));
  Request request = request_of(tiny::ids(90), sampled(5));
  request.choices = 3;
  const RequestId id = s.submit(std::move(request));
  s.turn();
  s.scheduler->cancel(id, 0);
  s.finish();
  EXPECT_EQ(s.of(id, 0).finished->generation.stop_reason, StopReason::cancelled);
  for (int choice = 1; choice < 3; ++choice) EXPECT_EQ(s.of(id, choice).finished->generation.tokens.size(), 5u);
}

TEST(Scheduler, CancellingOneChoiceKeepsTheOthers) {
  Opened opened(with_ctx(400), {.threads = 2, .prefill_chunk = 32});
  Session session = opened.session({.layout = "paged"});
  const auto want = generate_samples(opened.engine(), session, tiny::ids(90), 3, sampled(20));
  for (int after = 0; after < 8; ++after)
    for (int choice = 0; choice < 3; ++choice) {
      Scheduled s(opened);
      Request request = request_of(tiny::ids(90), sampled(20));
      request.choices = 3;
      const RequestId id = s.submit(std::move(request));
      for (int i = 0; i < after; ++i) s.turn();
      s.scheduler->cancel(id, choice);
      s.finish();
      for (int other = 0; other < 3; ++other) {
        if (other != choice) expect_equal(s.of(id, other), (*want)[static_cast<size_t>(other)], "other");
      }
      EXPECT_EQ(s.of(id, choice).finished->generation.stop_reason, StopReason::cancelled);
    }
}

TEST(Scheduler, ADeadlineEndsARequest) {
  Opened opened(with_ctx(400), {.threads = 1});
  double now = 100;
  Scheduled s(opened, {.clock = [&now] { return now; }});
  Request request = request_of(tiny::ids(90), sampled(200));
  request.timeout_s = 5;
  const RequestId late = s.submit(request);
  request.timeout_s = 0;
  const RequestId fine = s.submit(request);
  for (int i = 0; i < 10; ++i) s.turn();
  EXPECT_FALSE(s.of(late).error);
  now += 5;
  s.turn();
  ASSERT_TRUE(s.of(late).error);
  EXPECT_EQ(s.of(late).error->kind, Error::timed_out);
  s.finish();
  EXPECT_TRUE(s.of(fine).finished);
  EXPECT_EQ(s.scheduler->stats().failed, 1);
}

TEST(Scheduler, AQueueHasAnEnd) {
  Opened opened(with_ctx(400), {.threads = 1});
  Scheduled s(opened, {.max_queue = 3, .max_queue_tokens = 250});
  s.submit(request_of(tiny::ids(90), sampled(2)));
  s.submit(request_of(tiny::ids(90), sampled(2)));
  auto refused = s.scheduler->submit(request_of(tiny::ids(90), sampled(2)));
  ASSERT_FALSE(refused) << "tokens";
  EXPECT_EQ(refused.error().kind, Error::busy);
  s.submit(request_of(tiny::ids(10), sampled(2)));
  EXPECT_FALSE(s.scheduler->submit(request_of(tiny::ids(10), sampled(2)))) << "requests";
  s.turn();
  EXPECT_TRUE(s.scheduler->submit(request_of(tiny::ids(90), sampled(2)))) << "those that run do not wait";
  s.finish();
}

TEST(Scheduler, RefusesWhatCannotBe) {
  Opened opened(with_ctx(400), {.threads = 1});
  Scheduled s(opened);
  const auto message = [&](Request request) { return message_of(s.scheduler->submit(std::move(request))); };
  Request request = request_of({}, sampled(2));
  EXPECT_THAT(message(request), HasSubstr("empty"));
  request.prompt = {100000};
  EXPECT_THAT(message(request), HasSubstr("100000"));
  request.prompt = tiny::ids(4);
  request.choices = 0;
  EXPECT_THAT(message(request), HasSubstr("Request::choices"));
  request.choices = 1;
  request.weight = 0;
  EXPECT_THAT(message(request), HasSubstr("Request::weight"));
  request.weight = 1;
  request.resume = {{1}, {2}};
  EXPECT_THAT(message(request), HasSubstr("Request::resume"));
  request.resume.clear();
  request.options.sampling.top_p = 7;
  EXPECT_THAT(message(request), HasSubstr("top_p"));
  EXPECT_FALSE(Scheduler::create(opened.engine(), {.max_sequences = 0}));
  EXPECT_FALSE(Scheduler::create(opened.engine(), {.session = {.layout = "no such"}}));
  EXPECT_EQ(s.scheduler->stats().submitted, 0);
}

// ---- resuming -----------------------------------------------------------------------------------------------------

TEST(Scheduler, AnInterruptedAnswerGoesOnElsewhereWithTheSameBytes) {
  Opened first(with_ctx(400), {.threads = 2, .prefill_chunk = 32});
  Opened second(with_ctx(400), {.threads = 1, .prefill_chunk = 48, .prefix_ram = kKept});
  GenerateOptions options = sampled(30);
  options.sampling.repeat_penalty = 1.3;
  options.sampling.presence_penalty = 0.5;
  options.logprobs = 2;
  Session session = first.session({.layout = "paged"});
  const auto want = generate_samples(first.engine(), session, tiny::ids(100), 2, options);
  ASSERT_TRUE(want) << message_of(want);
  for (const bool receipt : {true, false})
    for (const size_t had : {1u, 2u, 17u, 29u, 30u}) {
      options.receipt = receipt;
      Scheduled s(second);
      Request request = request_of(tiny::ids(100), options);
      request.choices = 2;
      for (const Generation& g : *want)
        request.resume.emplace_back(g.tokens.begin(), g.tokens.begin() + static_cast<std::ptrdiff_t>(had));
      request.resume[0].resize(had / 2);
      const RequestId id = s.submit(request);
      s.finish();
      for (int choice = 0; choice < 2; ++choice) {
        const Outcome& got = s.of(id, choice);
        const Generation& uncut = (*want)[static_cast<size_t>(choice)];
        ASSERT_TRUE(got.finished) << had << (got.error ? got.error->message() : "");
        EXPECT_EQ(got.finished->generation.tokens, uncut.tokens) << had;
        EXPECT_EQ(got.finished->generation.text, uncut.text);
        if (receipt) {
          EXPECT_EQ(got.finished->generation.receipt, uncut.receipt) << had << " " << choice;
        }
        const auto& resumed = request.resume[static_cast<size_t>(choice)];
        const std::vector<int> rest(uncut.tokens.begin() + static_cast<std::ptrdiff_t>(resumed.size()),
                                    uncut.tokens.end());
        EXPECT_EQ(got.ids, rest) << "only what follows is news";
      }
    }
}

TEST(Scheduler, TokensAfterAnEndAreNotResumed) {
  Opened opened(with_ctx(400), {.threads = 1});
  Scheduled s(opened);
  Request request = request_of(tiny::ids(10), sampled(5));
  request.resume = {tiny::ids(6, 2)};
  EXPECT_THAT(message_of(s.scheduler->submit(request)), HasSubstr("Generator::resume"));
}

// ---- draft tokens -------------------------------------------------------------------------------------------------

TEST(Scheduler, GuessesChangeNothingButTheNumberOfPasses) {
  Opened opened(with_ctx(400), {.threads = 2, .prefill_chunk = 32});
  tiny::Model another = with_ctx(400);
  for (float& x : another.at("model.layers.0.mlp.up_proj.weight").values) x = -x;
  Opened other(another, {.threads = 1});
  GenerateOptions options = with_receipt(greedy_tokens(60));
  const Generation want = alone(opened, tiny::ids(40), options), drawn = alone(opened, tiny::ids(40), sampled(60));
  for (const auto& draft : {opened.shared(), other.shared(), std::shared_ptr<const Model>()})
    for (const int sequences : {1, 3, 6}) {
      options.lookup = draft == nullptr ? 5 : 0;
      Scheduled s(opened, {.draft = draft});
      std::vector<RequestId> ids;
      for (int i = 0; i < sequences; ++i) ids.push_back(s.submit(request_of(tiny::ids(40), options)));
      const RequestId sampling = s.submit(request_of(tiny::ids(40), sampled(60)));
      s.finish();
      for (const RequestId id : ids) expect_equal(s.of(id), want, std::to_string(sequences));
      expect_equal(s.of(sampling), drawn, "sampled");
      const SchedulerStats stats = s.scheduler->stats();
      if (sequences == 1) {
        EXPECT_GT(stats.guessed, 0);
      }
      if (sequences == 1 && draft == opened.shared()) {
        EXPECT_GT(stats.accepted, 40) << "it guesses what it would choose itself";
      }
    }
}

TEST(Scheduler, ADraftOfAnotherVocabularyIsRefused) {
  Opened opened(tiny::llama(), {.threads = 1}), other("tales", {.threads = 1});
  EXPECT_THAT(message_of(Scheduler::create(opened.engine(), {.draft = other.shared()})),
              HasSubstr("SchedulerOptions::draft"));
}

// ---- fairness -----------------------------------------------------------------------------------------------------

TEST(Scheduler, FloodingOwnersShareAndOthersAreNotStarved) {
  Opened opened(with_ctx(400), {.threads = 2, .prefill_chunk = 64});
  Scheduled s(opened, {.max_sequences = 4, .max_queue = 1000});
  std::map<RequestId, std::string> owner_of;
  const auto flood = [&](const std::string& owner, double weight) {
    for (int i = 0; i < 60; ++i) {
      Request request = request_of(tiny::ids(40, i), greedy_tokens(20));
      request.owner = owner;
      request.weight = weight;
      owner_of[s.submit(std::move(request))] = owner;
    }
  };
  flood("a", 1);
  flood("b", 1);
  s.turn();
  std::map<std::string, int> begun;
  for (const auto& [id, outcome] : s.outcomes) begun[owner_of[id.first]] += outcome.admitted.has_value();
  EXPECT_EQ(begun["a"], 2) << "places are shared from the first pass on";
  EXPECT_EQ(begun["b"], 2);
  std::map<std::string, int> done;
  const auto finished = [&] {
    done.clear();
    for (const auto& [id, outcome] : s.outcomes)
      if (outcome.finished) ++done[owner_of[id.first]];
    return done["a"] + done["b"];
  };
  while (finished() < 40) s.turn();
  EXPECT_NEAR(done["a"], done["b"], 4) << "the second came later and has as much";
  Request request = request_of(tiny::ids(10), greedy_tokens(2));
  request.owner = "c";
  const RequestId small = s.submit(std::move(request));
  const int before = finished();
  while (!s.of(small).finished) s.turn();
  EXPECT_LT(finished() - before, 10);
}

TEST(Scheduler, PriorityGoesFirstWithinAnOwner) {
  Opened opened(with_ctx(400), {.threads = 1});
  Scheduled s(opened, {.max_sequences = 1});
  std::vector<RequestId> ids;
  for (int i = 0; i < 4; ++i) {
    Request request = request_of(tiny::ids(20, i), greedy_tokens(3));
    request.priority = i;
    ids.push_back(s.submit(std::move(request)));
  }
  std::vector<RequestId> order;
  while (s.scheduler->run_once([&](std::span<RequestEvent> events) {
    for (const RequestEvent& event : events)
      if (std::holds_alternative<Finished>(event.news)) order.push_back(event.request);
  })) {
  }
  EXPECT_EQ(order, (std::vector<RequestId>{ids[3], ids[2], ids[1], ids[0]}));
}

// ---- threads ------------------------------------------------------------------------------------------------------

// The name makes the thread sanitizer's run include it.
TEST(ThreadsScheduler, IsAskedByManyAndDrains) {
  Opened opened(with_ctx(400), {.threads = 2, .prefill_chunk = 64, .prefix_ram = kKept});
  const Generation want = alone(opened, tiny::ids(70), sampled(12));
  Scheduled s(opened, {.max_sequences = 6});
  std::thread engine([&] { s.scheduler->run(collect(&s.outcomes)); });
  std::vector<std::thread> clients;
  Mutex mutex;
  std::set<RequestId> kept, cancelled;
  for (int c = 0; c < 4; ++c)
    clients.emplace_back([&, c] {
      for (int i = 0; i < 10; ++i) {
        const auto id = s.scheduler->submit(request_of(tiny::ids(70), sampled(12)));
        ASSERT_TRUE(id);
        const bool cancels = (i + c) % 4 == 0;
        if (cancels) s.scheduler->cancel(*id);
        (void)s.scheduler->stats();  // while the engine's thread updates them
        const MutexLock lock(mutex);
        (cancels ? cancelled : kept).insert(*id);
      }
    });
  for (std::thread& client : clients) client.join();
  s.scheduler->drain(1000);
  engine.join();
  for (const RequestId id : kept) expect_equal(s.of(id), want, "kept");
  for (const RequestId id : cancelled) EXPECT_TRUE(s.of(id).finished);
  const auto refused = s.scheduler->submit(request_of(tiny::ids(70), sampled(12)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::closing);
}

TEST(ThreadsScheduler, DrainingEndsInTime) {
  Opened opened(with_ctx(400), {.threads = 1});
  Scheduled s(opened);
  const RequestId id = s.submit(request_of(tiny::ids(70), sampled(300)));
  s.scheduler->drain(0);
  s.scheduler->run(collect(&s.outcomes));
  ASSERT_TRUE(s.of(id).error);
  EXPECT_EQ(s.of(id).error->kind, Error::closing);
}

}  // namespace
}  // namespace kvasir
