// A model whose experts are MXFP4 with separate scales, as published: the same model in every weights mode and for any
// number of files; and which faults of such a folder are refused.
#include <nlohmann/json.hpp>

#include <kvasir/plan.h>

#include "engine/model_impl.h"
#include "format/safetensors.h"
#include "tests/support/engines.h"

namespace kvasir {
namespace {

using namespace engine_test;
using Json = nlohmann::json;

constexpr int kHidden = 64, kFfn = 32, kExperts = 3, kLayers = 2, kVocab = 50;

struct Stored {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

class PlanesModel : public testing::Test {
 protected:
  void SetUp() override {
    floats("model.embed_tokens.weight", {kVocab, kHidden}, 1.0f);
    for (int l = 0; l < kLayers; ++l) layer("model.layers." + std::to_string(l) + ".");
    floats("model.norm.weight", {kHidden}, 1.0f);
    floats("lm_head.weight", {kVocab, kHidden}, 0.6f);
    config_ = Json::parse(R"({"model_type":"gpt_oss","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,
"head_dim":16,"num_key_value_heads":2,"intermediate_size":32,"vocab_size":50,"max_position_embeddings":160,
"num_local_experts":3,"num_experts_per_tok":2,"sliding_window":5,"eos_token_id":7,"tie_word_embeddings":false,
"quantization_config":{"quant_method":"mxfp4","modules_to_not_convert":["lm_head"]}})");
  }
  void layer(const std::string& at) {
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
      floats(at + norm + ".weight", {kHidden}, 1);
    for (const auto& [name, rows] : {std::pair("q", 64), {"k", 32}, {"v", 32}, {"o", 64}}) {
      floats(at + "self_attn." + name + "_proj.weight", {rows, kHidden}, 0.3f);
      floats(at + "self_attn." + name + "_proj.bias", {rows}, 0.2f);
    }
    floats(at + "self_attn.sinks", {4}, 1.0f);
    floats(at + "mlp.router.weight", {kExperts, kHidden}, 0.3f);
    floats(at + "mlp.router.bias", {kExperts}, 0.2f);
    planes(at + "mlp.experts.gate_up_proj", 2 * kFfn, kHidden);
    floats(at + "mlp.experts.gate_up_proj_bias", {kExperts, 2 * kFfn}, 0.2f);
    planes(at + "mlp.experts.down_proj", kHidden, kFfn);
    floats(at + "mlp.experts.down_proj_bias", {kExperts, kHidden}, 0.2f);
  }
  void floats(const std::string& name, std::vector<int64_t> shape, float scale) {
    int64_t n = 1;
    for (int64_t dim : shape) n *= dim;
    std::vector<float> values;
    for (int64_t i = 0; i < n; ++i)
      values.push_back(scale * tiny::noise(static_cast<uint64_t>(i) + 1000003 * tensors_.size()));
    tensors_[name] = {"F32", std::move(shape), format_test::raw(values)};
  }
  void planes(const std::string& name, int64_t rows, int64_t cols) {
    const int64_t blocks = kExperts * rows * cols / 32;
    std::string scales = format_test::pattern(static_cast<size_t>(blocks) + 100 * tensors_.size());
    scales.erase(0, 100 * tensors_.size());
    for (char& scale : scales) scale = static_cast<char>(119 + (scale & 3));
    std::string codes = format_test::pattern(static_cast<size_t>(16 * blocks) + 100 * tensors_.size());
    codes.erase(0, 100 * tensors_.size());
    tensors_[name + "_blocks"] = {"U8", {kExperts, rows, cols / 32, 16}, std::move(codes)};
    tensors_[name + "_scales"] = {"U8", {kExperts, rows, cols / 32}, std::move(scales)};
  }

  // Writes a file with the tensors that `take` chooses.
  template <class F>
  void write_file(const std::string& file, F take) const {
    Json header = Json::object();
    std::string data;
    for (const auto& [name, tensor] : tensors_) {
      if (!take(name)) continue;
      header[name] = {{"dtype", tensor.dtype},
                      {"shape", tensor.shape},
                      {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
      data += tensor.bytes;
    }
    tiny::put(folder_ / file, format_test::safetensors_file(header.dump(), data));
  }
  std::string write() const {
    tiny::put(folder_ / "config.json", config_.dump());
    write_file("model.safetensors", [](const std::string&) { return true; });
    return folder_.path().string();
  }
  // Writes the scales to another file than their blocks.
  std::string write_apart() const {
    const auto other = [](const std::string& name) { return name.ends_with("_scales"); };
    tiny::fs::remove(folder_ / "model.safetensors");
    write_file("a.safetensors", [&](const std::string& name) { return !other(name); });
    write_file("b.safetensors", other);
    Json map;
    for (const auto& [name, tensor] : tensors_) map[name] = other(name) ? "b.safetensors" : "a.safetensors";
    tiny::put(folder_ / "model.safetensors.index.json", Json{{"weight_map", map}}.dump());
    return folder_.path().string();
  }
  static std::shared_ptr<const Model> open(const std::string& path, std::string_view weights, size_t ram = 0) {
    ModelOptions options = with_weights(weights);
    options.ram = ram;
    auto model = Model::open(path, options);
    EXPECT_TRUE(model) << message_of(model);
    return model ? *model : nullptr;
  }
  static std::vector<float> logits(const std::string& path, std::string_view weights) {
    const auto engine = Engine::create(open(path, weights), {.threads = 2});
    EXPECT_TRUE(engine) << message_of(engine);
    auto session = (*engine)->open_session();
    engine_test::Copied out;
    const std::vector<int> more{3};
    EXPECT_TRUE(engine_test::prefill(**engine, *session, tiny::ids(20), &out));
    EXPECT_TRUE(engine_test::prefill(**engine, *session, more, &out));
    return out.logits;
  }

  std::map<std::string, Stored> tensors_;
  Json config_;
  tiny::TempFolder folder_;
  tiny::ScopedEnv remembered_{"XDG_CACHE_HOME", (folder_ / "cache").string()};
};

constexpr const char* kBlocks = "model.layers.1.mlp.experts.gate_up_proj_blocks";
constexpr const char* kScales = "model.layers.1.mlp.experts.gate_up_proj_scales";

TEST_F(PlanesModel, IsOneModelWhateverTheModeAndTheFiles) {
  const std::string path = write();
  const std::vector<float> want = logits(path, "resident");
  const std::string fingerprint = *open(path, "resident")->fingerprint();
  EXPECT_TRUE(same_bits(logits(path, "streamed"), want));
  for (const char* mode : {"streamed", "mapped"}) {
    tiny::fs::remove_all(folder_ / "cache");
    EXPECT_EQ(*open(path, mode)->fingerprint(), fingerprint) << mode;
  }
  write_apart();
  for (const char* mode : {"resident", "streamed"}) {
    EXPECT_TRUE(same_bits(logits(path, mode), want)) << mode;
    EXPECT_EQ(*open(path, mode)->fingerprint(), fingerprint) << mode;
  }
}

// plan() predicts the right memory for layers that are assembled while loading.
TEST_F(PlanesModel, ItsBytesArePlanned) {
  size_t stored = 0;
  for (const auto& [name, tensor] : tensors_) stored += tensor.bytes.size();
  PlanRequest request;
  request.model = write();
  request.threads = 2;
  request.ram = size_t{64} << 20;
  const auto planned = plan(request);
  ASSERT_TRUE(planned) << message_of(planned);
  EXPECT_EQ(planned->weights_bytes, stored);
  const auto model = open(request.model, "auto");
  EXPECT_EQ(model->info().weights_mode, WeightsMode::resident);
  EXPECT_EQ(model->info().weights_bytes, stored);
  EXPECT_EQ(open(request.model, "auto", request.ram)->info().weights_mode, planned->weights_mode);
  const auto streamed = open(request.model, "streamed", request.ram);
  ASSERT_TRUE(streamed);
  const size_t held = streamed->impl().network->source().resident_bytes();
  EXPECT_LE(held, planned->choices[1].weights_bytes);
  EXPECT_GE(held, 2 * streamed->impl().network->weight_sizes().largest_layer);
}

TEST_F(PlanesModel, MappedWeightsAreRefusedByTheTensorsName) {
  const auto engine = Engine::create(open(write(), "mapped"), {.threads = 1});
  EXPECT_THAT(message_of(engine), AllOf(HasSubstr("_blocks\""), HasSubstr("mapped"),
                                        HasSubstr("ModelOptions::weights = resident or streamed")));
}

TEST_F(PlanesModel, WhatDoesNotFitIsRefusedByName) {
  const auto tensors = tensors_;
  const auto said = [&] {
    auto message = message_of(Model::open(write()));
    tensors_ = tensors;
    return message;
  };
  EXPECT_EQ(said(), "no error");
  tensors_.erase(kScales);
  EXPECT_THAT(said(), AllOf(HasSubstr(kBlocks), HasSubstr("without"), HasSubstr(kScales)));
  tensors_.erase(kBlocks);
  EXPECT_THAT(said(), AllOf(HasSubstr(kBlocks), HasSubstr("without"), HasSubstr(kScales)));
  tensors_[kBlocks].dtype = tensors_[kBlocks].dtype = "I8";
  EXPECT_THAT(said(), AllOf(HasSubstr(kBlocks), HasSubstr("I8"), HasSubstr("MXFP4")));
  tensors_[kScales].shape = {kExperts, kHidden / 32, 2 * kFfn};
  EXPECT_THAT(said(), AllOf(HasSubstr(kScales), HasSubstr("[3, 2, 64]"), HasSubstr("[3, 64, 2, 16]")));
  tensors_[kBlocks].shape = {kExperts, 2 * kFfn, 1, 32};
  EXPECT_THAT(said(), AllOf(HasSubstr(kBlocks), HasSubstr("[3, 64, 1, 32]")));
  for (const char* which : {kBlocks, kScales}) std::swap(tensors_[which].shape[1], tensors_[which].shape[2]);
  EXPECT_THAT(said(), AllOf(HasSubstr("experts.0.gate_proj"), HasSubstr("[1, 2048]"), HasSubstr("[32, 64]")));
  tensors_["model.layers.0.mlp.experts.down_proj_bias"].shape = {kHidden, kExperts};
  EXPECT_THAT(said(), HasSubstr("down_proj"));
  floats("model.layers.0.mlp.experts.gate_up_proj", {kExperts, kHidden, 2 * kFfn}, 1);
  EXPECT_THAT(said(), AllOf(HasSubstr("\"model.layers.0.mlp.experts.gate_up_proj\""), HasSubstr("by column")));
}

TEST_F(PlanesModel, AnotherQuantisationOrClampIsRefused) {
  config_["quantization_config"]["quant_method"] = "fp8";
  EXPECT_THAT(message_of(Model::open(write())), AllOf(HasSubstr("quantization_config"), HasSubstr("\"fp8\"")));
  config_["quantization_config"]["quant_method"] = "mxfp4";
  config_["swiglu_limit"] = 5.0;
  EXPECT_THAT(message_of(Model::open(write())), HasSubstr("\"swiglu_limit\" is 5"));
  config_["swiglu_limit"] = 7.0;
  config_["quantization_config"] = true;
  EXPECT_THAT(message_of(Model::open(write())), HasSubstr("quantization_config"));
}

}  // namespace
}  // namespace kvasir
