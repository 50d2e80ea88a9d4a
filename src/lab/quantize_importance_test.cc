// Importance against sums computed here from the file's own tensors, its files, and what quantize makes of it.
#include "lab/quantize_importance.h"

#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kvasir/model.h>

#include "format/gguf.h"
#include "format/gguf_writer.h"
#include "lab/quantize.h"
#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

using testing::HasSubstr;

constexpr int kWindow = 24, kWindows = 2;

class ImportanceTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto written = quantize({.model = KVASIR_SOURCE_DIR "/models/tales", .out = path_, .type = "f16"});
    ASSERT_TRUE(written) << written.error().message();
    ids_.resize(100);
    for (size_t i = 0; i < ids_.size(); ++i) ids_[i] = static_cast<int>(7 * i % 500 + 5);
  }

  ImportanceMatrix collected(int threads = 1) const {
    ModelOptions mapped;
    mapped.weights = WeightsMode::mapped;
    const auto model = Model::open(path_.string(), mapped);
    auto engine = Engine::create(*model, {.threads = threads, .prefill_chunk = 7});
    PerplexityOptions options;
    options.session.ctx = kWindow;
    options.windows = kWindows;
    auto report = collect_importance(**engine, path_, ids_, std::nullopt, options);
    EXPECT_TRUE(report) << report.error().message();
    return std::move(report->matrix);
  }

  std::vector<float> tensor(const std::string& name) const {
    const auto file = open_gguf(path_);
    const TensorInfo* info = file->tensors.find(name);
    const int64_t n = std::accumulate(info->shape.begin(), info->shape.end(), int64_t{1}, std::multiplies<>());
    std::vector<float> values(static_cast<size_t>(n));
    info->codec->decode(file->tensors.data(*info).data(), values.data(), n);
    return values;
  }

  const format_test::TempFolder folder_;
  const std::filesystem::path path_ = folder_ / "tales.gguf";
  std::vector<int> ids_;
};

// The first layer's q, k and v are computed from the normed embedding, which the file alone gives.
TEST_F(ImportanceTest, TheFirstLayersSumsAreThoseOfTheEmbedding) {
  const ImportanceMatrix matrix = collected();
  const std::vector<float> rows = tensor("token_embd.weight"), gain = tensor("blk.0.attn_norm.weight");
  const size_t cols = gain.size();
  std::vector<double> want(cols);
  for (int t = 0; t < kWindow * kWindows; ++t) {
    if (t % kWindow == kWindow - 1) continue;  // a window's last token is only predicted
    const float* row = rows.data() + static_cast<size_t>(ids_[static_cast<size_t>(t)]) * cols;
    double squares = 0;
    for (size_t i = 0; i < cols; ++i) squares += double{row[i]} * row[i];
    for (size_t i = 0; i < cols; ++i)
      want[i] += std::pow(row[i] * double{gain[i]}, 2) / (squares / static_cast<double>(cols) + 1e-5);
  }
  for (const char* name : {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight"}) {
    const ActivationSums& sums = matrix.at(name);
    ASSERT_EQ(sums.squares.size(), cols);
    EXPECT_THAT(sums.counts, testing::ElementsAre((kWindow - 1) * kWindows));
    for (size_t i = 0; i < cols; ++i) ASSERT_NEAR(sums.squares[i], want[i], 1e-5 * want[i]) << name << " " << i;
  }
}

TEST_F(ImportanceTest, EveryMatrixOfALayerIsThereAndThreadsDoNotShow) {
  const ImportanceMatrix matrix = collected(1), threads = collected(2);
  EXPECT_EQ(matrix.size(), 6u * 7);
  EXPECT_FALSE(matrix.contains("output.weight"));
  EXPECT_EQ(matrix.at("blk.5.ffn_down.weight").cols, 512);
  EXPECT_EQ(matrix.at("blk.5.ffn_gate.weight").squares, matrix.at("blk.5.ffn_up.weight").squares);
  for (const auto& [name, sums] : matrix) EXPECT_EQ(threads.at(name).squares, sums.squares) << name;
}

TEST_F(ImportanceTest, AFileIsReadAsItWasWritten) {
  ImportanceMatrix matrix;
  matrix["blk.0.ffn_down_exps.weight"] = {2, {1, 2, 3, 4, 0, 0}, {2, 4, 0}};
  ASSERT_TRUE(write_importance(folder_ / "i.gguf", matrix, "a text", 3, 512));
  const auto read = read_importance(folder_ / "i.gguf");
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_EQ(read->size(), 1u);
  const ActivationSums& sums = read->at("blk.0.ffn_down_exps.weight");
  EXPECT_EQ(sums.cols, 2);
  EXPECT_THAT(sums.means(), testing::ElementsAre(0.5f, 1.0f, 0.75f, 1.0f, 1.0f, 1.0f)) << "no rows: 1";
}

TEST_F(ImportanceTest, FilesThatAreNoneAreRefused) {
  EXPECT_FALSE(read_importance(folder_ / "no.gguf"));
  EXPECT_THAT(read_importance(path_).error().message(), HasSubstr("is not an importance matrix"));
  GgufEntries entries;
  entries.string("general.type", "imatrix");
  const std::vector<float> values = {1, -1};
  const auto refused = [&](std::vector<TensorDecl> decls, std::span<const float> data) {
    GgufWriter writer;
    EXPECT_TRUE(writer.create(folder_ / "x.gguf", entries, std::move(decls)));
    EXPECT_TRUE(writer.write(std::as_bytes(data)));
    EXPECT_TRUE(writer.finish());
    const auto read = read_importance(folder_ / "x.gguf");
    return read ? "no error" : read.error().message();
  };
  const std::vector<float> good = {1, 2, 3};
  EXPECT_THAT(refused({{"a.in_sum2", &codec_f32(), {1, 2}}}, values), HasSubstr("no counts"));
  EXPECT_THAT(refused({{"a.in_sum2", &codec_f32(), {1, 1}}, {"a.counts", &codec_f32(), {1, 1}}}, values),
              HasSubstr("negative"));
  EXPECT_THAT(refused({{"a.in_sum2", &codec_f32(), {1, 1}}, {"a.counts", &codec_f32(), {2, 1}}}, good),
              HasSubstr("other counts"));
}

// Errors move from the columns that matter to the others.
TEST_F(ImportanceTest, WhatMattersIsStoredBetter) {
  const std::string name = "blk.0.ffn_down.weight";
  ImportanceMatrix matrix;
  ActivationSums& sums = matrix[name] = {512, std::vector<float>(512, 1e-4f), {1}};
  for (size_t i = 0; i < 512; i += 4) sums.squares[i] = 1;
  ASSERT_TRUE(write_importance(folder_ / "i.gguf", matrix, "a text", 1, 1));
  for (const char* type : {"q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs", "iq4_nl"}) {
    double errors[2][2] = {};  // [without, with][others, those that matter]
    for (const int with : {0, 1}) {
      const std::filesystem::path out = folder_ / "out.gguf";
      QuantizeOptions options{.model = path_.string(), .out = out, .type = "f16", .force = true};
      options.types = {name + "=" + type};
      if (with == 1) options.importance = (folder_ / "i.gguf").string();
      ASSERT_TRUE(quantize(options));
      const auto file = open_gguf(out);
      const TensorInfo* info = file->tensors.find(name);
      ASSERT_STREQ(info->codec->name, type);
      const std::vector<float> x = tensor(name);
      std::vector<float> y(x.size());
      info->codec->decode(file->tensors.data(*info).data(), y.data(), static_cast<int64_t>(y.size()));
      for (size_t i = 0; i < x.size(); ++i) errors[with][i % 512 % 4 == 0] += std::pow(double{x[i]} - y[i], 2);
    }
    EXPECT_LT(errors[1][1], 0.9 * errors[0][1]) << type;
    EXPECT_GT(errors[1][0], errors[0][0]) << type;
  }
}

TEST_F(ImportanceTest, OfAnotherModelIsRefused) {
  ImportanceMatrix matrix;
  matrix["blk.0.ffn_down.weight"] = {256, std::vector<float>(256, 1.0f), {1}};
  ASSERT_TRUE(write_importance(folder_ / "i.gguf", matrix, "a text", 1, 1));
  QuantizeOptions options{.model = path_.string(), .out = folder_ / "out.gguf", .type = "q4_k"};
  options.importance = (folder_ / "i.gguf").string();
  const auto refused = quantize(options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("other columns"));
}

TEST_F(ImportanceTest, NothingIsDroppedWithoutAWord) {
  ImportanceMatrix matrix;
  matrix["blk.9.ffn_down.weight"] = {512, std::vector<float>(512, 1.0f), {1}};
  QuantizeOptions options{.model = path_.string(), .out = folder_ / "out.gguf", .type = "q8_0", .force = true};
  options.importance = (folder_ / "i.gguf").string();
  ASSERT_TRUE(write_importance(options.importance, matrix, "a text", 1, 1));
  EXPECT_THAT(quantize(options).error().message(), HasSubstr("names no tensor of this model"));
  matrix["blk.0.ffn_down.weight"] = matrix.begin()->second;
  ASSERT_TRUE(write_importance(options.importance, matrix, "a text", 1, 1));
  const auto report = quantize(options);
  ASSERT_TRUE(report);
  EXPECT_THAT(report->notes, testing::IsSupersetOf({HasSubstr("1 of its 2 tensors are not in this model"),
                                                    HasSubstr("no effect on tensors of type q8_0")}));
  options.types = {"ffn_sideways=q8_0"};
  EXPECT_THAT(quantize(options).error().message(), HasSubstr("no matrix \"ffn_sideways\""));
}

TEST_F(ImportanceTest, TheModelIsNotOverwritten) {
  ImportanceOptions options{.model = path_.string(), .out = path_, .force = true};
  options.windows.session.ctx = kWindow;
  EXPECT_THAT(measure_importance(options, "Once upon a time").error().message(), HasSubstr("is the model itself"));
  options.out = folder_ / "new.gguf";
  const auto report = measure_importance(options,
                                         "Once upon a time there was a fox. It lived in a wood near a river. "
                                         "One day the fox met a bear. They played and were happy.");
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_THAT(report->missing, testing::IsEmpty());
  EXPECT_EQ(read_importance(options.out)->size(), report->matrix.size());
}

}  // namespace
}  // namespace kvasir
