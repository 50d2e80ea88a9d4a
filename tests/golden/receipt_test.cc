// Golden receipts of the shipped models: the change detector of kNumericsVersion. They are what the program gave when
// they were recorded, so a failure says that some bit of a logit, the weights, or the receipt's own form has changed.
// If that was meant, raise kNumericsVersion and record the new values below; if not, it is a bug.
#include <kvasir/version.h>

#include "base/system.h"
#include "tests/engine_test_util.h"

namespace kvasir {
namespace {

using engine_test::greedy_tokens;
using engine_test::message_of;
using engine_test::Opened;
using engine_test::with_receipt;

struct Golden {
  const char* model;
  const char* kv_type;
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

// Enough to cross a tile of attention: 70 ids, each another one's neighbour.
std::vector<int> golden_ids() {
  std::vector<int> ids{0};
  for (int i = 1; i < 70; ++i) ids.push_back((i * i * 131 + i * 17 + 5) % 4096);
  return ids;
}

Generation run(const Golden& golden, const EngineOptions& options, const char* layout) {
  Opened opened(golden.model, options);
  Session session = opened.session({.layout = layout, .kv_type_k = golden.kv_type, .kv_type_v = golden.kv_type});
  const auto g = generate(opened.engine(), session, golden_ids(), with_receipt(greedy_tokens(32)));
  EXPECT_TRUE(g) << message_of(g);
  return g.value_or(Generation{});
}

TEST(GoldenReceipt, TheRecordedVersionIsThisOne) {
  EXPECT_EQ(kRecordedVersion, kNumericsVersion) << "record them anew";
}

TEST(GoldenReceipt, ShippedModelsGiveTheRecordedReceipts) {
  for (const Golden& golden : kGolden)
    EXPECT_EQ(run(golden, {.threads = 2}, "grow").receipt, golden.receipt) << golden.model << " " << golden.kv_type;
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

}  // namespace
}  // namespace kvasir
