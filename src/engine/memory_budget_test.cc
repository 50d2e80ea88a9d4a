// Runs that fit into a budget, and refusals. tests/e2e/budget_runs.cc checks that memory stays within it.
#include "engine/budget_fit.h"

#include <fstream>
#include <set>
#include <vector>

#include <kvasir/plan.h>

#include "arch/activation_memory.h"
#include "arch/network.h"
#include "base/buffer.h"
#include "engine/model_impl.h"
#include "tests/support/engines.h"
#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

using namespace engine_test;

TEST(MemoryPlan, PositionsAreTheMostThatFit) {
  const Opened opened("tales");
  const Network& net = *opened.model().impl().network;
  for (const LayoutInfo* layout : layouts()) {
    CacheShape shape = net.family().cache_needs(net.config());
    shape.k = shape.v = kv_type_of(codec_f32());
    shape.max_ctx = 512;
    for (const int positions : {1, 63, 64, 65, 300, 511}) {
      CacheShape short_one = shape;
      short_one.max_ctx = positions;
      const size_t bytes = session_bytes(net.config(), *layout, short_one);
      EXPECT_GE(positions_that_fit(net.config(), *layout, shape, bytes), positions) << layout->name;
      EXPECT_LE(positions_that_fit(net.config(), *layout, shape, bytes - 1), layout->recomputes ? 512 : positions - 1);
    }
    EXPECT_EQ(positions_that_fit(net.config(), *layout, shape, 10), 0);
    EXPECT_EQ(positions_that_fit(net.config(), *layout, shape, SIZE_MAX), 512);
  }
}

// 4 experts of 3 x 8 x 16 weights in each layer, of which a token uses 1; f16.
TEST(MemoryPlan, ActiveWeightsLeaveOutTheOtherExperts) {
  const tiny::TempFolder folder;
  const std::string path = (folder.path() / "config.json").string();
  std::ofstream(path) << R"({"model_type":"qwen3_moe","hidden_size":16,"num_hidden_layers":3,"num_attention_heads":2,
      "num_key_value_heads":1,"head_dim":8,"intermediate_size":24,"vocab_size":50,"num_experts":4,
      "num_experts_per_tok":1,"moe_intermediate_size":8,"mlp_only_layers":[1],"tie_word_embeddings":true})";
  PlanRequest request;
  request.model = path;
  request.session.ctx = 64;
  const auto report = plan(request);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->experts, 4);
  EXPECT_EQ(report->experts_used, 1);
  const size_t expert = 3 * 8 * 16 * sizeof(uint16_t);
  EXPECT_EQ(report->weights_bytes - report->active_weights_bytes, 2 * 3 * expert);
  EXPECT_EQ(report->read_bytes_per_token, report->active_weights_bytes + 64 * report->kv_bytes_per_token);
}

TEST(MemoryPlan, AModelThatLeavesTooLittleIsStreamed) {
  EXPECT_EQ(budgeted_mode(200, 300), WeightsMode::resident);
  EXPECT_EQ(budgeted_mode(201, 300), WeightsMode::streamed);
}

std::shared_ptr<const Model> tales_within(size_t ram) {
  ModelOptions options;
  options.ram = ram;
  const auto model = Model::open("tales", options);
  EXPECT_TRUE(model) << message_of(model);
  return model ? *model : nullptr;
}

TEST(MemoryPlan, ABudgetThatIsTakenRefusesWithItsNumbers) {
  ModelOptions nothing;
  nothing.ram = 10000000;
  EXPECT_THAT(message_of(Model::open("tales", nothing)), AllOf(HasSubstr("10000000"), HasSubstr("ModelOptions::ram")));
  const auto model = tales_within(26000000);
  const auto engine = Engine::create(model, {.threads = 1});
  ASSERT_TRUE(engine) << message_of(engine);
  const auto all = (*engine)->open_session();
  ASSERT_TRUE(all) << message_of(all);
  EXPECT_LT(all->ctx(), 1024) << "the model has more positions than the budget";
  SessionOptions dense;
  dense.layout = "dense";
  dense.ctx = 512;
  EXPECT_THAT(message_of((*engine)->open_session(dense)),
              AllOf(HasSubstr("512 positions"), HasSubstr("sequences"), HasSubstr("26000000")));
}

// A short sequence that fits into a budget fits into every larger one, whatever the passes take.
TEST(MemoryPlan, ALargerBudgetIsNeverRefused) {
  int fitted = 0;
  for (size_t ram = 21000000; ram < 27000000; ram += 200000) {
    ModelOptions within;
    within.ram = ram;
    const auto model = Model::open("tales", within);
    const auto engine = model ? Engine::create(*model, {.threads = 1}) : tl::unexpected(model.error());
    const bool fits = engine && (*engine)->open_session({.ctx = 64});
    EXPECT_TRUE(fits || fitted == 0) << ram << " bytes";
    fitted += fits ? 1 : 0;
  }
  EXPECT_GT(fitted, 5);
  EXPECT_LT(fitted, 30) << "the least of these budgets is to be too small";
}

// plan() predicts what a run under the same budget gets: the mode, one long sequence, the number of short ones.
TEST(MemoryPlan, PlanAndRunAgree) {
  std::set<WeightsMode> modes;
  for (const size_t ram : {size_t{26000000}, size_t{28000000}, size_t{31000000}, size_t{34000000}}) {
    PlanRequest request;
    request.model = "tales";
    request.ram = ram;
    request.chat = 100;
    request.threads = 2;
    const auto planned = plan(request);
    ASSERT_TRUE(planned) << message_of(planned);
    const auto model = tales_within(ram);
    EXPECT_EQ(model->info().weights_mode, planned->weights_mode) << ram;
    modes.insert(*planned->weights_mode);
    const WeightChoice& chosen = planned->choices[planned->weights_mode == WeightsMode::resident ? 0 : 1];
    const auto engine = Engine::create(model, {.threads = 2});
    ASSERT_TRUE(engine) << message_of(engine);
    {
      const auto one = (*engine)->open_session();
      ASSERT_TRUE(one) << message_of(one);
      // The tokenizer's heap may differ a little the second time.
      EXPECT_NEAR(one->ctx(), chosen.positions, 4) << ram;
    }
    SessionOptions chat;
    chat.ctx = 100;
    std::vector<Session> sessions;
    for (auto next = (*engine)->open_session(chat); next; next = (*engine)->open_session(chat))
      sessions.push_back(std::move(*next));
    EXPECT_NEAR(static_cast<double>(sessions.size()), static_cast<double>(planned->users_that_fit), 1) << ram;
  }
  EXPECT_EQ(modes.size(), 2u) << "both modes are to be seen here";
}

// The reserved bytes are an upper bound of what passes allocate, with long split histories and batches.
TEST(MemoryPlan, ActivationsStayWithinTheirPromise) {
  for (const int threads : {1, 3}) {
    const auto model = tales_within(100000000);
    const ModelConfig& c = model->impl().network->config();
    const size_t before = live_bytes(Owner::activations);
    const auto engine = Engine::create(model, {.threads = threads, .prefill_chunk = 50});
    ASSERT_TRUE(engine) << message_of(engine);
    SessionOptions options;
    options.ctx = 700;
    std::vector<Session> sessions;
    for (int i = 0; i < 3; ++i) sessions.push_back(std::move(*(*engine)->open_session(options)));
    engine_test::Copied out;
    const std::vector<int> prompt = tiny::ids(600), next{7};
    for (Session& session : sessions) {
      ASSERT_TRUE(engine_test::prefill(**engine, session, prompt, &out));
      ASSERT_TRUE(engine_test::prefill(**engine, session, next, &out));
    }
    std::vector<Session*> all;
    for (Session& session : sessions) all.push_back(&session);
    ASSERT_TRUE(engine_test::decode_step(**engine, all, std::vector<int>{1, 2, 3}, &out));
    const size_t held = live_bytes(Owner::activations) - before,
                 pass = model->impl().network->footprint().activation_bytes(50, threads);
    EXPECT_LE(held, pass + sessions.size() * sequence_bytes(c, 700)) << threads;
    EXPECT_GE(held, pass / 2) << "a promise of far more than is needed keeps sequences out";
  }
}

}  // namespace
}  // namespace kvasir
