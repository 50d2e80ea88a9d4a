// The types that mixes choose, against the layers that llama.cpp's files of the same names have them in
// (ggml-org/llama.cpp, src/llama-quant.cpp, at 007dbbf).
#include "lab/quantize_types.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvasir {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ModelConfig config(int layers, int group, int experts = 0) {
  ModelConfig c;
  c.layers = layers, c.heads = 8 * group, c.kv_heads = 8;
  c.experts.count = experts;
  return c;
}

std::string type_of(std::string_view mix, const std::string& name, const ModelConfig& c = config(32, 4),
                    const std::vector<int64_t>& shape = {256, 256}) {
  return TypeChooser::create(mix, {}, c)->choose(name, shape).name;
}

// The layers in which the tensor does not have the mix's own type.
std::vector<int> layers_of(std::string_view mix, const std::string& kind, std::string_view type,
                           const ModelConfig& c = config(32, 4)) {
  std::vector<int> found;
  for (int layer = 0; layer < c.layers; ++layer)
    if (type_of(mix, "blk." + std::to_string(layer) + "." + kind + ".weight", c) == type) found.push_back(layer);
  return found;
}

TEST(QuantizeTypes, MediumMixesGiveHalfTheLayersMoreBits) {
  const auto spread = ElementsAre(0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31);
  for (const std::string_view mix : {"q4_k_m", "q5_k_m"}) {
    EXPECT_THAT(layers_of(mix, "attn_v", "q6_k"), spread);
    EXPECT_THAT(layers_of(mix, "ffn_down", "q6_k"), spread);
    EXPECT_THAT(layers_of(mix, "attn_q", "q6_k"), IsEmpty());
  }
  EXPECT_THAT(layers_of("q4_k_m", "ffn_down", "q6_k", config(22, 8)), ElementsAre(0, 1, 4, 7, 10, 13, 16, 19, 20, 21));
  EXPECT_EQ(type_of("q4_k_m", "blk.9.attn_qkv.weight"), "q5_k");
}

TEST(QuantizeTypes, SmallAndLowMixes) {
  EXPECT_THAT(layers_of("q4_k_s", "attn_v", "q5_k"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(layers_of("q4_k_s", "ffn_down", "q5_k", config(24, 1)), ElementsAre(0, 1, 2));
  EXPECT_THAT(layers_of("q3_k_m", "attn_v", "q5_k"), ElementsAre(0, 1));
  EXPECT_THAT(layers_of("q3_k_m", "ffn_down", "q5_k"), ElementsAre(0, 1));
  EXPECT_EQ(type_of("q3_k_m", "blk.20.ffn_down.weight"), "q4_k");
  EXPECT_EQ(type_of("q3_k_m", "blk.20.attn_output.weight"), "q4_k");
  EXPECT_EQ(type_of("q3_k_m", "blk.20.ffn_up.weight"), "q3_k");
  EXPECT_EQ(type_of("q2_k", "blk.20.attn_v.weight", config(32, 4)), "q4_k");
  EXPECT_EQ(type_of("q2_k", "blk.20.attn_v.weight", config(32, 1)), "q3_k");
  EXPECT_EQ(type_of("q2_k", "blk.20.ffn_down.weight"), "q3_k");
  EXPECT_EQ(type_of("q2_k", "blk.20.ffn_up.weight"), "q2_k");
  EXPECT_THAT(layers_of("iq4_xs", "ffn_down", "q5_k"), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(type_of("iq4_xs", "blk.5.attn_v.weight", config(32, 1)), "iq4_xs");
}

TEST(QuantizeTypes, TheHeadHasMoreBitsAndATiedOneToo) {
  ModelConfig tied = config(4, 1);
  tied.tied_head = true;
  for (const std::string_view mix : {"q4_k", "q4_k_m", "q4_0", "q2_k", "iq4_xs"}) {
    EXPECT_EQ(type_of(mix, "output.weight"), "q6_k");
    EXPECT_EQ(type_of(mix, "token_embd.weight", tied), "q6_k");
    EXPECT_NE(type_of(mix, "token_embd.weight"), "q6_k");
  }
  EXPECT_EQ(type_of("q8_0", "output.weight"), "q8_0");
}

TEST(QuantizeTypes, ExpertsAndSeventyBillions) {
  const ModelConfig mixtral = config(32, 4, 8);
  EXPECT_EQ(type_of("q4_k_m", "blk.9.attn_k.weight", mixtral), "q8_0");
  EXPECT_EQ(type_of("q4_k_m", "blk.9.attn_output.weight", mixtral), "q5_k");
  EXPECT_EQ(type_of("q4_k_m", "blk.0.ffn_down_exps.weight", mixtral, {8, 256, 256}), "q6_k");
  EXPECT_EQ(type_of("q4_k_m", "blk.9.ffn_gate_inp.weight", mixtral), "f32");
  EXPECT_EQ(type_of("mxfp4", "blk.0.ffn_down_exps.weight", mixtral, {8, 256, 256}), "mxfp4");
  EXPECT_EQ(type_of("mxfp4", "blk.0.attn_q.weight", mixtral), "q8_0");
  EXPECT_EQ(type_of("q4_k_s", "blk.40.attn_v.weight", config(80, 8)), "q5_k");
}

TEST(QuantizeTypes, RowsThatAreNoWholeBlocks) {
  const std::pair<std::string_view, std::string_view> small[] = {
      {"iq4_xs", "iq4_nl"}, {"q2_k", "q4_0"}, {"q3_k", "q4_0"}, {"q4_k", "q5_0"}, {"q5_k", "q5_1"}, {"q6_k", "q8_0"}};
  for (const auto& [asked, got] : small) {
    EXPECT_EQ(type_of(asked, "blk.9.ffn_up.weight", config(32, 4), {256, 96}), got);
    EXPECT_EQ(type_of(asked, "blk.9.ffn_up.weight", config(32, 4), {256, 40}), "f16");
  }
}

TEST(QuantizeTypes, NamedTensorsHaveTheNamedType) {
  auto chooser =
      TypeChooser::create("q4_k_m", {"attn_v=q8_0", "blk.3.attn_v.weight=q5_0", "output=bf16"}, config(32, 4));
  ASSERT_TRUE(chooser);
  const std::vector<int64_t> shape = {256, 256};
  EXPECT_STREQ(chooser->choose("blk.0.attn_v.weight", shape).name, "q8_0");
  EXPECT_STREQ(chooser->choose("blk.3.attn_v.weight", shape).name, "q5_0");
  EXPECT_STREQ(chooser->choose("output.weight", shape).name, "bf16");
  EXPECT_STREQ(chooser->choose("blk.0.attn_k.weight", shape).name, "q4_k");
  EXPECT_STREQ(chooser->choose("blk.3.attn_v.weight", {256, 40}).name, "f16");
  EXPECT_THAT(*chooser->finish(),
              ElementsAre("attn_v.weight: rows of 40 are not whole blocks of 32 (q5_0), so they are f16"));
  auto unused = TypeChooser::create("q4_k_m", {"attn_vv=q8_0"}, config(32, 4));
  unused->choose("blk.0.attn_v.weight", shape);
  EXPECT_THAT(unused->finish().error().message(), testing::HasSubstr("no matrix \"attn_vv\""));
  for (const char* const bad : {"attn_v", "attn_v=", "attn_v=q9", "=q8_0"})
    EXPECT_FALSE(TypeChooser::create("q4_k_m", {bad}, config(32, 4))) << bad;
  EXPECT_FALSE(TypeChooser::create("q4_x", {}, config(32, 4)));
}

}  // namespace
}  // namespace kvasir
