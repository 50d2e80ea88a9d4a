// Thousands of mixed requests at once, in too little memory: each answer equals that of the request alone, and nothing
// is left allocated at the end.
#include <kvasir/scheduler.h>

#include <fstream>
#include <map>
#include <random>

#include "cache/block_pool.h"
#include "engine/model_impl.h"
#include "tests/support/engines.h"

namespace kvasir {
namespace {

using namespace engine_test;

constexpr size_t kMostAtOnce = 200;  // requests that wait or run
constexpr int kShapes = 120, kRequests = 5000, kOwners = 64;

/// A request that is sent many times, and the answers it has alone.
struct Shape {
  Request request;
  std::vector<Generation> alone;
};

std::vector<int> prompt_of(const Model& model, const std::vector<std::string>& lines, std::mt19937& random) {
  std::string text;
  for (auto n = 1 + random() % 12; n > 0; --n) text += lines[random() % lines.size()] + " ";
  auto ids = model.tokenizer()->encode(text);
  EXPECT_TRUE(ids) << message_of(ids);
  return *ids;
}

Shape make_shape(Opened& opened, const std::vector<std::string>& lines, std::mt19937& random) {
  Shape shape;
  Request& r = shape.request;
  r.prompt = prompt_of(opened.model(), lines, random);
  constexpr int kChoices[] = {1, 1, 1, 2, 3, 4};
  r.choices = kChoices[random() % std::size(kChoices)];
  r.options.max_tokens = 1 + static_cast<int>(random() % 20);
  r.options.sampling.seed = random();
  r.options.sampling.temperature = random() % 3 == 0 ? 0 : 1;
  r.options.receipt = random() % 2 == 0;
  r.options.logprobs = static_cast<int>(random() % 4) - 1;
  r.options.lookup = static_cast<int>(random() % 3);
  if (random() % 3 == 0) r.options.stop = {"the dog", "."};
  if (random() % 4 == 0) r.options.min_tokens = 5;
  Session session = opened.session({.layout = "paged"});
  auto alone = generate_samples(opened.engine(), session, r.prompt, r.choices, r.options);
  EXPECT_TRUE(alone) << message_of(alone);
  shape.alone = std::move(*alone);
  return shape;
}

/// Sends requests at random, cancels some, and compares the answers.
class Crowd {
 public:
  Crowd(Scheduler& scheduler, const std::vector<Shape>& shapes) : scheduler_(scheduler), shapes_(shapes) {}

  void go() {
    int sent = 0;
    while (sent < kRequests || !under_way_.empty()) {
      for (auto n = random_() % 6; n > 0 && sent < kRequests && under_way_.size() < kMostAtOnce; --n, ++sent) send();
      scheduler_.run_once([&](std::span<RequestEvent> events) { see(events); });
    }
  }
  int64_t prompt_tokens() const { return prompt_tokens_; }
  int cancelled() const { return cancelled_; }
  int compared() const { return compared_; }

 private:
  struct Sent {
    size_t shape;
    int left, cancel_after;
    std::map<int, Generation> got = {};
  };

  void send() {
    const size_t shape = random_() % shapes_.size();
    Request request = shapes_[shape].request;
    request.owner = std::to_string(random_() % kOwners);
    request.priority = static_cast<int>(random_() % 3);
    request.reuse = random_() % 10 > 0;
    const int choices = request.choices;
    const auto id = scheduler_.submit(std::move(request));
    if (!id) {
      EXPECT_EQ(id.error().kind, Error::busy);
      return;
    }
    const bool leaves = random_() % 100 < 15;
    under_way_[*id] = {shape, choices, leaves ? static_cast<int>(random_() % 20) : -1};
    if (leaves && under_way_[*id].cancel_after == 0) scheduler_.cancel(*id);
  }

  void see(std::span<RequestEvent> events) {
    for (RequestEvent& event : events) {
      Sent& sent = under_way_.at(event.request);
      if (auto* news = std::get_if<Event>(&event.news)) {
        Generation& got = sent.got[event.choice];
        got.tokens.insert(got.tokens.end(), news->ids.begin(), news->ids.end());
        got.text += news->text;
        got.logprobs.insert(got.logprobs.end(), news->logprobs.begin(), news->logprobs.end());
        if (sent.cancel_after > 0 && static_cast<int>(got.tokens.size()) >= sent.cancel_after)
          scheduler_.cancel(event.request);
      }
      if (auto* done = std::get_if<Finished>(&event.news)) compare(sent, event.choice, *done);
      if (auto* error = std::get_if<Error>(&event.news)) ADD_FAILURE() << error->message();
      const bool ends = !std::holds_alternative<Event>(event.news) && !std::holds_alternative<Admitted>(event.news);
      if (!ends || --sent.left > 0) continue;
      prompt_tokens_ += static_cast<int64_t>(shapes_[sent.shape].request.prompt.size());
      under_way_.erase(event.request);
    }
  }

  void compare(const Sent& sent, int choice, const Finished& finished) {
    const Generation& done = finished.generation;
    const Generation& want = shapes_[sent.shape].alone[static_cast<size_t>(choice)];
    if (done.stop_reason == StopReason::cancelled) {
      ++cancelled_;
      EXPECT_TRUE(std::equal(done.tokens.begin(), done.tokens.end(), want.tokens.begin())) << "a beginning";
      return;
    }
    ++compared_;
    ASSERT_EQ(static_cast<size_t>(done.cached_tokens + finished.computed), shapes_[sent.shape].request.prompt.size());
    const Generation& got = sent.got.at(choice);
    ASSERT_EQ(done.tokens, want.tokens);
    ASSERT_EQ(done.text, want.text);
    ASSERT_EQ(done.receipt, want.receipt);
    ASSERT_EQ(done.stop_reason, want.stop_reason);
    ASSERT_EQ(got.tokens, want.tokens) << "what was streamed";
    ASSERT_EQ(got.text, want.text);
    ASSERT_EQ(got.logprobs.size(), want.logprobs.size());
    for (size_t i = 0; i < got.logprobs.size(); ++i) {
      ASSERT_EQ(got.logprobs[i].logprob, want.logprobs[i].logprob);
      ASSERT_EQ(got.logprobs[i].top, want.logprobs[i].top);
    }
  }

  Scheduler& scheduler_;
  const std::vector<Shape>& shapes_;
  std::mt19937 random_{11};
  std::map<RequestId, Sent> under_way_;
  int64_t prompt_tokens_ = 0;
  int cancelled_ = 0, compared_ = 0;
};

TEST(SlowScheduler, FiveThousandMixedRequestsGiveWhatEachGivesAlone) {
  std::vector<std::string> lines;
  std::ifstream file(KVASIR_SOURCE_DIR "/models/prompts.txt");
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  ASSERT_GT(lines.size(), 10u);
  Opened opened("tales", {.threads = 2});
  std::mt19937 random(10);
  std::vector<Shape> shapes;
  for (int i = 0; i < kShapes; ++i) shapes.push_back(make_shape(opened, lines, random));

  ModelOptions limited;
  limited.kv_ram = 16 * *opened.engine().kv_bytes({.layout = "paged"}, 1);
  const auto model = *Model::open(KVASIR_SOURCE_DIR "/models/tales", limited);
  const auto engine = *Engine::create(model, {.threads = 2, .prefill_chunk = 128, .prefix_ram = limited.kv_ram});
  const auto scheduler = *Scheduler::create(*engine, {.max_sequences = 24, .step_ms = 20, .max_queue = 10000});
  Crowd crowd(*scheduler, shapes);
  crowd.go();

  const SchedulerStats stats = scheduler->stats();
  EXPECT_GE(stats.preemptions, 300);
  EXPECT_GT(crowd.cancelled(), kRequests / 20);
  EXPECT_GT(crowd.compared(), kRequests);
  EXPECT_EQ(stats.submitted, kRequests);
  EXPECT_EQ(stats.finished + stats.cancelled, kRequests);
  EXPECT_EQ(stats.failed, 0);
  EXPECT_EQ(stats.running + stats.waiting, 0);
  EXPECT_LE(stats.reused + stats.computed, crowd.prompt_tokens()) << "those that were cancelled lack some";
  EXPECT_GT(stats.recomputed, 0);
  const BlockPool& pool = *model->impl().memory.pool();
  EXPECT_EQ(pool.used_bytes(), engine->prefix_stats().bytes) << "only kept texts have blocks";
  while (pool.used_bytes() > 0 && model->impl().memory.pool()->shrink(SIZE_MAX)) {
  }
  EXPECT_EQ(pool.used_bytes(), 0u);
  EXPECT_EQ(engine->prefix_stats().index_bytes, 0u);
}

}  // namespace
}  // namespace kvasir
