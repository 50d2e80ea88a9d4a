// Golden receipts of the shipped models and of files quantised from them: the change detector of kNumericsVersion. They
// are what the program gave when they were recorded, so a failure says that some bit of a logit, the weights, what
// quantize makes of them, or the receipt's own form has changed.
// If that was meant, raise kNumericsVersion and record the new values below; if not, it is a bug.
#include <kvasir/version.h>

#include "base/system.h"
#include "engine/quantize.h"
#include "engine/synth.h"
#include "tests/engine_test_util.h"

namespace kvasir {
namespace {

using engine_test::greedy_tokens;
using engine_test::message_of;
using engine_test::Opened;
using engine_test::with_receipt;

struct Golden {
  const char* model;
  const char* type;  // of K and V, or of a quantised file's weights
  const char* receipt;
};

// Recorded under kNumericsVersion 2: 32 greedy tokens after the ids below, past any end of text.
constexpr int kRecordedVersion = 2;
constexpr Golden kGolden[] = {
    {"tales", "f32", "860d6b20033761b1254d98f9b1074422"},
    {"tales", "f16", "c8384c545dee996ec949a2552a090186"},
    {"tales-gpt2", "f32", "03c849c98018f345c3103f24a2559080"},
    {"tales-gpt2", "bf16", "3c22069a859e9bfbe6590bf88dcbb74f"},
};

// 24 tokens after the same ids; every integer type with SIMD is in one of the files: tiny-k as q4_k holds q6_k, too.
constexpr Golden kGoldenFiles[] = {
    {"tales", "f16", "ffa1b752e4f5930a03b099955871505c"},  {"tales", "bf16", "296ed66584768f7b48e90e9acbe20228"},
    {"tales", "q8_0", "7bf240d3a0606fa97e1c6d47daa7b586"}, {"tales", "q4_0", "61fab8898e48f4c64296c9e825903330"},
    {"tales", "q4_k", "d3a909d3216ac75d6d7f72406e233a12"}, {"tiny-k", "q4_k", "ce56f8028479e28c177c83268dffc776"},
};

// Enough to cross a tile of attention: 70 ids, each another one's neighbour.
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
  for (const Golden& golden : {kGolden[0], kGolden[3]}) {
    for (const char* layout : {"dense", "none"})
      EXPECT_EQ(run(golden, {.threads = 3, .prefill_chunk = 13}, layout).receipt, golden.receipt) << layout;
    for (const char* cpu : {"scalar", "avx2", "avx512", "neon"}) {
      const tiny::ScopedEnv target("KVASIR_CPU", cpu);
      if (!choose_cpu_target()) continue;  // this machine lacks it
      EXPECT_EQ(run(golden, {.threads = 2}, "grow").receipt, golden.receipt) << cpu;
    }
  }
}

// The golden's model as a file of its type.
std::string quantised(const Golden& golden, const tiny::TempFolder& folder) {
  std::string model = KVASIR_SOURCE_DIR "/models/tales";
  if (golden.model != std::string("tales")) {
    model = (folder / golden.model).string();
    const auto made = synthesize({.shape = golden.model, .out = model, .seed = 1});
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
    for (const char* cpu : {"scalar", "avx2", "avx512", "neon"}) {
      const tiny::ScopedEnv target("KVASIR_CPU", cpu);
      if (!choose_cpu_target()) continue;
      EXPECT_EQ(receipt_of(*model), golden.receipt) << golden.model << " " << golden.type << " " << cpu;
    }
  }
}

}  // namespace
}  // namespace kvasir
