// Tensors split along their rows: the place of each part.
#include "arch/split_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvasir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TensorInfo tensor(std::string name, std::vector<int64_t> shape) {
  TensorInfo info;
  info.name = std::move(name);
  info.codec = &codec_f32();
  info.shape = std::move(shape);
  info.bytes = 4;
  for (int64_t dim : info.shape) info.bytes *= static_cast<uint64_t>(dim);
  info.offset = 1000;
  return info;
}

constexpr std::string_view kQkv[] = {"attn.q", "attn.k", "attn.v"};
constexpr std::string_view kGateUp[] = {"experts.*.gate", "experts.*.up"};
constexpr std::string_view kDown[] = {"experts.*.down"};
constexpr TensorSplit kFused{"attn.pack", kQkv}, kBoth{"mlp.both", kGateUp}, kLast{"mlp.all", kDown};

TEST(SplitTensors, EqualPartsOfRows) {
  const auto parts = split_tensor(tensor("l.0.pack.weight", {6, 4}), kFused, "l.0.", ".weight", "here");
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*parts)[i].name, "l.0." + std::string(kQkv[i]) + ".weight");
    EXPECT_EQ((*parts)[i].name_in_file(), "l.0.pack.weight");
    EXPECT_THAT((*parts)[i].shape, ElementsAre(2, 4));
    EXPECT_EQ((*parts)[i].offset, 1000 + 32 * i);
    EXPECT_EQ((*parts)[i].bytes, 32u);
  }
}

TEST(SplitTensors, ExpertsAndTheirHalves) {
  const auto parts = split_tensor(tensor("x", {3, 4, 2}), kBoth, "", ".weight", "here");
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->size(), 6u);
  EXPECT_EQ((*parts)[3].name, "experts.1.up.weight");
  EXPECT_THAT((*parts)[3].shape, ElementsAre(2, 2));
  EXPECT_EQ((*parts)[3].offset, 1000u + 32 + 16);
  const auto biases = split_tensor(tensor("x", {3, 4}), kLast, "", ".bias", "here");
  ASSERT_TRUE(biases);
  EXPECT_THAT((*biases)[2].shape, ElementsAre(4));
  EXPECT_EQ((*biases)[2].offset, 1000u + 32);
}

TEST(SplitTensors, WhatDoesNotDivideIsRefused) {
  for (const auto& shape : {std::vector<int64_t>{7, 4}, std::vector<int64_t>{}}) {
    const auto parts = split_tensor(tensor("pack.weight", shape), kFused, "", "", "here");
    ASSERT_FALSE(parts);
    EXPECT_THAT(parts.error().message(), HasSubstr("\"pack.weight\""));
  }
  EXPECT_FALSE(split_tensor(tensor("x", {3}), kBoth, "", "", "here"));
  EXPECT_FALSE(split_tensor(tensor("x", {0, 4}), kLast, "", "", "here"));
}

TEST(SplitTensors, RowsThatTakeTurns) {
  constexpr TensorSplit kTurns{.name = "x", .parts = kGateUp, .by_turns = true};
  const auto parts = split_tensor(tensor("x", {3, 4, 2}), kTurns, "", ".weight", "here");
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->size(), 6u);
  const TensorInfo& up = (*parts)[3];
  EXPECT_EQ(up.name, "experts.1.up.weight");
  EXPECT_THAT(up.shape, ElementsAre(2, 2));
  EXPECT_EQ(up.bytes, 16u);
  EXPECT_EQ(up.offset, 1000u + 32 + 8);
  ASSERT_TRUE(up.scattered);
  EXPECT_EQ(up.scattered->bytes, 8u);
  EXPECT_EQ(up.scattered->step, 16u);
  EXPECT_EQ(up.scattered->scales_file, -1);
  EXPECT_FALSE(split_tensor(tensor("x", {3, 0}), kTurns, "", "", "here")) << "no rows";
}

// Checks the begin and step of both planes, for every expert and both of the alternating matrices.
TEST(SplitTensors, PlanesOfScalesAndCodes) {
  constexpr TensorSplit kPlanes{.name = "both_blocks", .parts = kGateUp, .by_turns = true, .scales = "both_scales"};
  TensorDir dir;
  dir.tensors = {tensor("l.0.both_blocks", {2, 4, 3, 16}), tensor("l.0.both_scales", {2, 4, 3})};
  for (TensorInfo& info : dir.tensors) info.dtype = "U8", info.codec = nullptr, info.bytes /= 4;
  dir.tensors[1].file = 5;
  dir.tensors[1].offset = 7000;
  ASSERT_TRUE(split_tensors({&kPlanes, 1}, &dir, "here"));
  ASSERT_EQ(dir.tensors.size(), 4u);
  const TensorInfo& up = *dir.find("l.0.experts.1.up.weight");
  EXPECT_EQ(up.codec, find_codec("mxfp4"));
  EXPECT_THAT(up.shape, ElementsAre(2, 96));
  EXPECT_EQ(up.bytes, 2u * 3 * 17);
  EXPECT_EQ(up.name_in_file(), "l.0.both_blocks");
  EXPECT_EQ(up.offset, 1000u + (4 + 1) * 48);
  EXPECT_EQ(up.scattered->bytes, 51u);
  EXPECT_EQ(up.scattered->step, 96u);
  EXPECT_EQ(up.scattered->scales_file, 5);
  EXPECT_EQ(up.scattered->scales, 7000u + (4 + 1) * 3);
  EXPECT_EQ(up.scattered->scales_step, 6u);
}

TEST(SplitTensors, OnlyWholeNamesAreSplit) {
  constexpr TensorSplit kSplits[] = {kFused, kLast};
  TensorDir dir;
  dir.tensors = {tensor("l.0.attn.pack.weight", {3, 2}), tensor("l.0.attn.packed.weight", {3, 2}),
                 tensor("l.0.mlp.all", {2, 3, 2}), tensor("other", {5})};
  ASSERT_TRUE(split_tensors(kSplits, &dir, "here"));
  std::vector<std::string> names;
  for (const TensorInfo& info : dir.tensors) names.push_back(info.name);
  EXPECT_THAT(names,
              ElementsAre("l.0.attn.k.weight", "l.0.attn.packed.weight", "l.0.attn.q.weight", "l.0.attn.v.weight",
                          "l.0.experts.0.down.weight", "l.0.experts.1.down.weight", "other"));
}

}  // namespace
}  // namespace kvasir
