// Golden receipts of the shipped models and of files quantised from them: the change detector of kNumericsVersion. They
// were recorded from the program, so a failure means that some bit of a logit, the weights, quantize's output or the
// receipt's format has changed. If the change is intended, raise kNumericsVersion and record the new values below;
// otherwise it is a bug.
#include <kvasir/version.h>

#include "base/system.h"
#include "lab/quantize.h"
#include "lab/synth.h"
#include "tests/support/engines.h"

namespace kvasir {
namespace {

using engine_test::greedy_tokens;
using engine_test::message_of;
using engine_test::Opened;
using engine_test::with_receipt;

struct Golden {
  const char* model;
  const char* type;  // type of K and V, or of the weights of a quantised file
  const char* receipt;
};

// Recorded under kNumericsVersion 3: 32 greedy tokens after the ids below, ignoring any end of text.
constexpr int kRecordedVersion = 3;
constexpr Golden kGolden[] = {
    {"tales", "f32", "d8b4e3e61e24ba1cd98288f23fd628f2"},
    {"tales", "f16", "1049d25d72ddbc5206fe190112e646ff"},
    {"tales-gpt2", "f32", "30d07f664a53aa45d6d5fdb35d2c4ddd"},
    {"tales-gpt2", "bf16", "02039dccaffba71b6fd9c2d7f8ea0280"},
    {"tales", "q8_0", "c431ac530e140ad17212a85c1bffc0f7"},
    {"tales", "q4_0h", "8eb4b2f8a032d9d9d73ed67f294e2175"},
};

// 24 tokens after the same ids. Files named by a mix hold several types.
constexpr Golden kGoldenFiles[] = {
    {"tales", "f16", "82651ac8b5c14e8bf6fdca8203ff4304"},     {"tales", "bf16", "325f0e73d403b8f8dfb0a11fec09738a"},
    {"tales", "q8_0", "1aa8e24cf3fdf5c33edf4d0ceeb60072"},    {"tales", "q4_0", "8ac67efaec1650e4d5010d15d0942e5a"},
    {"tales", "q4_k", "21d0f74d4ac82c3de782a4454caab0ee"},    {"tiny-k", "q4_k", "6f5d257b04f65e1e6542b21bc47d5412"},
    {"tiny-k", "q3_k_m", "989c575ad225f10e60da3e0a6917229f"}, {"tiny-k", "q2_k", "08e793e1e7cd8d9096e961c773c7bda3"},
    {"tiny-k", "iq4_xs", "b9799cbf8273071e2200f1acae3427c7"},
};

// 70 ids without a simple pattern, enough to cross a tile of attention.
std::vector<int> golden_ids(int vocab = 4096) {
  std::vector<int> ids{0};
  for (int i = 1; i < 70; ++i) ids.push_back((i * i * 131 + i * 17 + 5) % vocab);
  return ids;
}

Generation run(const Golden& golden, const EngineOptions& options, const char* layout) {
  Opened opened(golden.model, options);
  Session session = opened.session({.layout = layout, .kv_type_k = golden.type, .kv_type_v = golden.type});
  const auto g = generate(opened.engine(), session, golden_ids(), with_receipt(greedy_tokens(32)));
  EXPECT_TRUE(g) << message_of(g);
  return g.value_or(Generation{});
}

TEST(GoldenReceipt, TheRecordedVersionIsThisOne) {
  EXPECT_EQ(kRecordedVersion, kNumericsVersion) << "record them anew";
}

TEST(GoldenReceipt, ShippedModelsGiveTheRecordedReceipts) {
  for (const Golden& golden : kGolden)
    EXPECT_EQ(run(golden, {.threads = 2}, "grow").receipt, golden.receipt) << golden.model << " " << golden.type;
}

TEST(GoldenReceipt, OnEveryCpuTargetLayoutAndThreadCount) {
  for (const Golden& golden : {kGolden[0], kGolden[3], kGolden[4], kGolden[5]}) {
    for (const char* layout : {"dense", "none"})
      EXPECT_EQ(run(golden, {.threads = 3, .prefill_chunk = 13}, layout).receipt, golden.receipt) << layout;
    for (const CpuTarget target : supported_targets()) {
      const tiny::ScopedEnv chosen("KVASIR_CPU", cpu_target_name(target));
      EXPECT_EQ(run(golden, {.threads = 2}, "grow").receipt, golden.receipt) << cpu_target_name(target);
    }
  }
}

// Writes the golden's model as a GGUF file of its type and returns the path.
std::string quantised(const Golden& golden, const tiny::TempFolder& folder) {
  std::string model = KVASIR_SOURCE_DIR "/models/tales";
  if (golden.model != std::string("tales")) {
    model = (folder / golden.model).string();
    const auto made = synthesize({.shape = golden.model, .out = model, .seed = 1, .force = true});
    EXPECT_TRUE(made) << message_of(made);
  }
  const auto out = folder / (std::string(golden.model) + "-" + golden.type + ".gguf");
  const auto done = quantize({.model = model, .out = out, .type = golden.type});
  EXPECT_TRUE(done) << message_of(done);
  return out.string();
}

std::string receipt_of(const std::shared_ptr<const Model>& model) {
  const auto engine = Engine::create(model, {.threads = 2});
  EXPECT_TRUE(engine) << message_of(engine);
  auto session = (*engine)->open_session({});
  EXPECT_TRUE(session) << message_of(session);
  const auto g = generate(**engine, *session, golden_ids(model->info().vocab), with_receipt(greedy_tokens(24)));
  EXPECT_TRUE(g) << message_of(g);
  return g ? g->receipt : "";
}

TEST(GoldenReceipt, QuantisedFilesGiveOneOnEveryCpuTarget) {
  const tiny::TempFolder folder;
  const tiny::ScopedEnv remembered("XDG_CACHE_HOME", (folder / "cache").string());
  for (const Golden& golden : kGoldenFiles) {
    const auto model = Model::open(quantised(golden, folder));
    ASSERT_TRUE(model) << message_of(model);
    for (const CpuTarget target : supported_targets()) {
      const tiny::ScopedEnv chosen("KVASIR_CPU", cpu_target_name(target));
      EXPECT_EQ(receipt_of(*model), golden.receipt)
          << golden.model << " " << golden.type << " " << cpu_target_name(target);
    }
  }
}

}  // namespace
}  // namespace kvasir
