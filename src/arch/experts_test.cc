// Experts: equal scores choose the lower numbers, only chosen experts affect the result, neighbours in the batch change
// no bit, NaN reaches the result.
#include "arch/experts.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arch/network.h"
#include "format/safetensors.h"
#include "tests/support/temp_files.h"
#include "tests/support/tiny_experts.h"
#include "tests/support/tiny_models.h"

namespace kvasir {
namespace {

using testing::HasSubstr;

constexpr int kTokens = 9;
// Logits of every token, and the message of the first item's error.
struct Ran {
  std::vector<float> logits;
  std::string error;
};

Ran run(const tiny::Model& model, int chunk = kTokens) {
  const tiny::TempFolder folder;
  model.write(folder.path());
  const ConfigView view = *ConfigView::parse(model.config, "test");
  const Family& family = **find_family(view);
  auto network =
      Network::load(family, *family.parse_config(view), std::make_shared<TensorDir>(*open_safetensors(folder.path())),
                    WeightsMode::resident, "test");
  EXPECT_TRUE(network) << tiny::message_of(network);
  CacheShape shape = family.cache_needs((*network)->config());
  shape.k = shape.v = kv_type_of(codec_f32());
  const auto cache = *(*find_layout("dense"))->make(shape);
  const auto compute = *Compute::create(2);
  Workspace workspace;
  Ran ran;
  const std::vector<int> ids = tiny::ids(kTokens);
  for (int at = 0; at < kTokens && ran.error.empty(); at += chunk) {
    const int n = std::min(chunk, kTokens - at);
    std::vector<float> logits(static_cast<size_t>(n) * 50);
    Network::Output out{.logits = logits.data(), .errors = {}};
    const BatchItem item{cache.get(), at, std::span(ids).subspan(static_cast<size_t>(at), static_cast<size_t>(n))};
    const auto done = (*network)->forward({&item, 1}, *compute, workspace, &out);
    EXPECT_TRUE(done) << tiny::message_of(done);
    if (out.errors[0]) ran.error = out.errors[0]->message();
    ran.logits.insert(ran.logits.end(), logits.begin(), logits.end());
  }
  return ran;
}

std::string expert(int e, const char* part) {
  return "layers.0.mlp.experts." + std::to_string(e) + "." + part + "_proj.weight";
}

TEST(Experts, EqualScoresChooseTheLowerNumbers) {
  tiny::Model model = tiny::experts();
  for (float& x : model.at("layers.0.mlp.gate.weight").values) x = 0;
  const std::vector<float> logits = run(model).logits;
  for (int e = 0; e < 5; ++e) {
    tiny::Model other = model;
    for (float& x : other.at(expert(e, "down")).values) x = -x;
    EXPECT_EQ(tiny::same_bits(run(other).logits, logits), e >= 2) << e;
  }
}

TEST(Experts, CompanyChangesNoBit) {
  const tiny::Model model = tiny::experts();
  const std::vector<float> logits = run(model).logits;
  for (const int chunk : {1, 2, 4}) EXPECT_TRUE(tiny::same_bits(run(model, chunk).logits, logits)) << chunk;
}

// Softmax spreads a NaN over all shares; a sigmoid keeps it in one, which might not be chosen.
TEST(Experts, ARouterThatIsNotANumberShows) {
  for (const char* type : {"qwen3_moe", "glm4_moe"})
    for (int e = 0; e < 5; ++e) {
      tiny::Model model = tiny::experts(type);
      EXPECT_EQ(run(model).error, "") << type;
      model.at("layers.0.mlp.gate.weight").values[static_cast<size_t>(e * 32 + 7)] =
          std::numeric_limits<float>::quiet_NaN();
      EXPECT_THAT(run(model).error, HasSubstr("not finite")) << type << " " << e;
    }
}

}  // namespace
}  // namespace kvasir
