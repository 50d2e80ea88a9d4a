// A key or tensor of a model file is used, refused by name, or listed as not used. Each of those below used to be
// dropped silently.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kvasir/plan.h>

#include "lab/inspect.h"
#include "tests/support/engines.h"
#include "tests/support/gguf_models.h"

namespace kvasir {
namespace {

using engine_test::AllOf;
using engine_test::greedy_tokens;
using engine_test::HasSubstr;
using engine_test::message_of;
using engine_test::with_receipt;
using gguf_test::Bytes;
using tiny::put;
using tiny::TempFolder;

class RegressModelFiles : public testing::Test {
 protected:
  std::string gguf(const tiny::Model& model, const Bytes& more = {}, uint64_t count = 0) const {
    put(folder_ / "m.gguf", tiny::llama_gguf(model, 0, more, count).data);
    return (folder_ / "m.gguf").string();
  }
  std::string folder(const tiny::Model& model) const {
    model.write(folder_ / "model");
    return (folder_ / "model").string();
  }
  // Returns the receipt, or the error that refused the model.
  static std::string outcome(const std::string& path) {
    const auto model = Model::open(path);
    if (!model) return message_of(model);
    auto engine = Engine::create(*model, {.threads = 1});
    auto session = (*engine)->open_session({});
    const auto g = generate(**engine, *session, tiny::ids(20), with_receipt(greedy_tokens(3)));
    return g ? g->receipt : message_of(g);
  }
  static tiny::Model with(const std::string& name, std::vector<int64_t> shape) {
    tiny::Model model = tiny::llama();
    model.add(name, codec_f32(), std::move(shape), 0.7f);
    return model;
  }
  static std::string why(const std::string& path, const std::string& name) {
    const auto model = Model::open(path);
    if (!model) return message_of(model);
    for (const Ignored& one : (*model)->info().ignored)
      if (one.name == name) return one.why + (one.noted ? ", noted" : "");
    return "not listed";
  }

  TempFolder folder_;
  tiny::ScopedEnv remembered_{"XDG_CACHE_HOME", (folder_ / "cache").string()};
};

// cases/gguf-ignored-tensors: attn_output.bias, ffn_down.bias and biases in only one layer had no effect.
TEST_F(RegressModelFiles, BiasesOfAGgufFileAreAdded) {
  const std::string plain = outcome(gguf(tiny::llama()));
  EXPECT_EQ(plain.size(), 32u) << plain;
  std::set<std::string> all{plain};
  for (const auto& [name, size] : {std::pair("blk.0.attn_output.bias", 24),
                                   {"blk.0.ffn_down.bias", 24},
                                   {"blk.1.attn_q.bias", 48},
                                   {"blk.1.attn_v.bias", 16},
                                   {"blk.1.ffn_gate.bias", 40}}) {
    const std::string biased = outcome(gguf(with(name, {size})));
    EXPECT_EQ(biased.size(), 32u) << name << ": " << biased;
    EXPECT_TRUE(all.insert(biased).second) << name << " changes nothing";
  }
}

// A bias of zeros must change nothing and another bias must: so the bias is added, not only read.
TEST_F(RegressModelFiles, ABiasInOneLayerIsAddedThere) {
  const auto logits = [&](float bias) {
    tiny::Model model = with("blk.1.attn_output.bias", {24});
    std::fill(model.tensors.back().values.begin(), model.tensors.back().values.end(), bias);
    const auto opened = Model::open(gguf(model));
    const auto engine = Engine::create(*opened, {.threads = 1});
    auto session = (*engine)->open_session({});
    engine_test::Copied out;
    EXPECT_TRUE(engine_test::prefill(**engine, *session, tiny::ids(9), &out));
    return out.logits;
  };
  const auto plain = Model::open(gguf(tiny::llama()));
  const auto engine = Engine::create(*plain, {.threads = 1});
  auto session = (*engine)->open_session({});
  engine_test::Copied out;
  ASSERT_TRUE(engine_test::prefill(**engine, *session, tiny::ids(9), &out));
  EXPECT_TRUE(tiny::same_bits(logits(0.0f), out.logits));
  EXPECT_FALSE(tiny::same_bits(logits(0.7f), out.logits));
}

TEST_F(RegressModelFiles, TensorsThatNothingUsesAreRefusedByName) {
  const auto refused = [&](const std::string& name, std::vector<int64_t> shape = {24}) {
    return outcome(gguf(with(name, std::move(shape))));
  };
  EXPECT_THAT(refused("output.bias", {50}), HasSubstr("\"output.bias\" is not part of a llama model"));
  EXPECT_THAT(refused("rope_factors_short.weight", {4}), HasSubstr("rope_factors_long.weight is missing"));
  EXPECT_THAT(refused("rope_factors_long.weight", {4}), HasSubstr("rope_factors_short.weight is missing"));
  EXPECT_THAT(refused("blk.0.attn_norm.bias"), HasSubstr("\"blk.0.attn_norm.bias\""));
  EXPECT_THAT(refused("blk.0.attn_q_norm.weight", {8}), HasSubstr("\"blk.0.attn_q_norm.weight\""));
  EXPECT_THAT(refused("blk.2.attn_norm.weight"), AllOf(HasSubstr("of layer 2"), HasSubstr("has 2 layers")));
  EXPECT_THAT(refused("token_embd_norm.weight"), HasSubstr("\"token_embd_norm.weight\""));
}

// cases/gguf-ignored-tensors, block1: a model with more layers than its number of layers ran with fewer.
TEST_F(RegressModelFiles, LayersPastTheLastOneAreRefused) {
  tiny::Model model = tiny::llama();
  model.edit_config("\"num_hidden_layers\":2", "\"num_hidden_layers\":1");
  EXPECT_THAT(outcome(folder(model)), AllOf(HasSubstr("model.layers.1."), HasSubstr("has 1 layers")));
  Bytes bytes = tiny::llama_gguf(tiny::llama());
  const size_t at = bytes.data.find("llama.block_count") + 17 + 4;
  ASSERT_EQ(bytes.data[at], 2);
  bytes.data[at] = 1;
  put(folder_ / "m.gguf", bytes.data);
  EXPECT_THAT(outcome((folder_ / "m.gguf").string()), AllOf(HasSubstr("\"blk.1."), HasSubstr("has 1 layers")));
}

// block_count includes the layers of multi-token prediction, num_hidden_layers does not.
TEST_F(RegressModelFiles, LayersOfMultiTokenPredictionAreListed) {
  tiny::Model model = tiny::llama();
  model.edit_config("\"num_hidden_layers\":2", "\"num_hidden_layers\":1,\"num_nextn_predict_layers\":1");
  EXPECT_EQ(why(folder(model), "model.layers.1.mlp.up_proj.weight"), "multi-token prediction, noted");
  Bytes more;
  more.entry("llama.nextn_predict_layers", GgufType::u32, uint32_t{1});
  const std::string path = gguf(tiny::llama(), more, 1);
  EXPECT_EQ(why(path, "blk.1.ffn_up.weight"), "multi-token prediction, noted");
  EXPECT_EQ(outcome(path), outcome(folder(model)));
}

// cases/gguf-ignored-keys: a factor without a type, and the key of 2023.
TEST_F(RegressModelFiles, ARopeFactorWithoutATypeIsLinear) {
  Bytes typed, untyped, old;
  typed.text_entry("llama.rope.scaling.type", "linear").entry("llama.rope.scaling.factor", GgufType::f32, 4.0f);
  untyped.entry("llama.rope.scaling.factor", GgufType::f32, 4.0f);
  old.entry("llama.rope.scale_linear", GgufType::f32, 4.0f);
  const std::string expected = outcome(gguf(tiny::llama(), typed, 2));
  EXPECT_NE(expected, outcome(gguf(tiny::llama())));
  EXPECT_EQ(outcome(gguf(tiny::llama(), untyped, 1)), expected);
  EXPECT_EQ(outcome(gguf(tiny::llama(), old, 1)), expected);
  old.entry("llama.rope.scaling.factor", GgufType::f32, 2.0f);
  EXPECT_THAT(outcome(gguf(tiny::llama(), old, 2)), HasSubstr("both present and differ"));
}

// Both divide the frequencies; the factor used to be dropped if the tensor was there.
TEST_F(RegressModelFiles, RopeFactorsAndALinearFactorAreBothUsed) {
  Bytes linear;
  linear.entry("llama.rope.scaling.factor", GgufType::f32, 4.0f);
  tiny::Model ones = with("rope_freqs.weight", {4}), fours = ones;
  std::fill(ones.tensors.back().values.begin(), ones.tensors.back().values.end(), 1.0f);
  std::fill(fours.tensors.back().values.begin(), fours.tensors.back().values.end(), 4.0f);
  const auto logits = [&](const std::string& path) {
    const auto opened = Model::open(path);
    const auto engine = Engine::create(*opened, {.threads = 1});
    auto session = (*engine)->open_session({});
    engine_test::Copied out;
    EXPECT_TRUE(engine_test::prefill(**engine, *session, tiny::ids(9), &out));
    return out.logits;
  };
  EXPECT_TRUE(tiny::same_bits(logits(gguf(ones, linear, 1)), logits(gguf(fours))));
  EXPECT_FALSE(tiny::same_bits(logits(gguf(ones, linear, 1)), logits(gguf(ones))));
}

TEST_F(RegressModelFiles, KeysOfTheArchitectureAreKnownOrRefused) {
  const auto outcome_with = [&](const char* key, float value) {
    Bytes more;
    more.entry(std::string("llama.") + key, GgufType::f32, value);
    return outcome(gguf(tiny::llama(), more, 1));
  };
  const std::string plain = outcome(gguf(tiny::llama()));
  EXPECT_THAT(outcome_with("stranger", 1), HasSubstr("\"llama.stranger\" is not known"));
  EXPECT_EQ(outcome_with("attn_logit_softcapping", 0), plain);
  EXPECT_THAT(outcome_with("attn_logit_softcapping", 50), HasSubstr("attn_logit_softcapping"));
  EXPECT_EQ(outcome_with("logit_scale", 1), plain);
  EXPECT_THAT(outcome_with("logit_scale", 0.25f), HasSubstr("logit_scale"));
  Bytes order;
  order.text_entry("llama.tensor_data_layout", "reference");
  EXPECT_THAT(outcome(gguf(tiny::llama(), order, 1)), HasSubstr("tensor_data_layout"));
  EXPECT_THAT(outcome_with("rope.scaling.yarn_beta_fast", 32), HasSubstr("yarn_beta_fast"));
  EXPECT_THAT(outcome_with("expert_count", 8), HasSubstr("experts"));
  EXPECT_EQ(outcome_with("rope.scaling.original_context_length", 99), plain);
}

TEST_F(RegressModelFiles, NumbersThatAreSaidTwiceMustAgree) {
  const auto outcome_with = [&](const char* key, uint32_t value) {
    Bytes more;
    more.entry(std::string("llama.") + key, GgufType::u32, value);
    return outcome(gguf(tiny::llama(), more, 1));
  };
  const std::string plain = outcome(gguf(tiny::llama()));
  EXPECT_EQ(outcome_with("attention.value_length", 8), plain);
  EXPECT_THAT(outcome_with("attention.value_length", 4), AllOf(HasSubstr("value_length"), HasSubstr("requires 8")));
  EXPECT_EQ(outcome_with("vocab_size", 50), plain);
  EXPECT_THAT(outcome_with("vocab_size", 51), AllOf(HasSubstr("vocab_size"), HasSubstr("requires 50")));
}

TEST_F(RegressModelFiles, AGgufFileThatIsNoModelIsRefused) {
  Bytes adapter, lora;
  adapter.text_entry("general.type", "adapter");
  lora.entry("adapter.lora.alpha", GgufType::f32, 16.0f);
  EXPECT_THAT(outcome(gguf(tiny::llama(), adapter, 1)), HasSubstr("type \"adapter\""));
  EXPECT_THAT(outcome(gguf(tiny::llama(), lora, 1)), HasSubstr("adapter.lora.alpha"));
}

// llama.cpp's converter writes a list of booleans. It used to be dropped, and all layers had the window.
TEST_F(RegressModelFiles, AWindowPatternOfBooleansIsRead) {
  Bytes more;
  more.entry("llama.attention.sliding_window", GgufType::u32, uint32_t{9});
  more.array("llama.attention.sliding_window_pattern", GgufType::boolean, 2).number<uint8_t>(0).number<uint8_t>(1);
  const auto model = Model::open(gguf(tiny::llama(), more, 2));
  ASSERT_TRUE(model) << message_of(model);
  const auto engine = Engine::create(*model, {.threads = 1});
  EXPECT_EQ((*engine)->open_session()->cache_stats().window, "0,9");
  Bytes scalar;
  scalar.entry("llama.attention.sliding_window_pattern", GgufType::u32, uint32_t{6});
  EXPECT_THAT(outcome(gguf(tiny::llama(), scalar, 1)), HasSubstr("not a list of layers"));
}

TEST_F(RegressModelFiles, SamplingThatAGgufFileRecommendsIsUsed) {
  Bytes more;
  more.entry("general.sampling.temp", GgufType::f32, 0.6f).entry("general.sampling.top_k", GgufType::i32, int32_t{7});
  more.entry("general.sampling.penalty_repeat", GgufType::f32, 1.1f);
  const auto model = Model::open(gguf(tiny::llama(), more, 3));
  ASSERT_TRUE(model) << message_of(model);
  EXPECT_EQ((*model)->sampling_defaults().temperature, 0.6) << "and not the f32 beside it";
  EXPECT_EQ((*model)->sampling_defaults().top_k, 7);
  EXPECT_EQ((*model)->sampling_defaults().repeat_penalty, 1.1);
  EXPECT_EQ((*model)->sampling_defaults().top_p, SamplingParams().top_p) << "which the file does not give";
  EXPECT_EQ((*model)->sampling_defaults().repeat_last_n, SamplingParams().repeat_last_n);
  more.entry("general.sampling.penalty_last_n", GgufType::i32, int32_t{-1});
  EXPECT_EQ((*Model::open(gguf(tiny::llama(), more, 4)))->sampling_defaults().repeat_last_n, -1);
  Bytes mirostat;
  mirostat.entry("general.sampling.mirostat", GgufType::i32, int32_t{2});
  EXPECT_THAT(why(gguf(tiny::llama(), mirostat, 1), "general.sampling.mirostat"), HasSubstr("noted"));
}

TEST_F(RegressModelFiles, TensorsOfOtherPartsAreListed) {
  tiny::Model model = tiny::llama();
  model.add("vision_tower.encoder.weight", codec_f32(), {3}, 1);
  model.add("model.visual.merger.bias", codec_f32(), {3}, 1);
  model.add("mtp.fc.weight", codec_f32(), {3}, 1);
  model.add("model.layers.0.self_attn.rotary_emb.inv_freq", codec_f32(), {4}, 1);
  const std::string path = folder(model);
  EXPECT_EQ(why(path, "vision_tower.encoder.weight"), "vision or sound tower, noted");
  EXPECT_EQ(why(path, "model.visual.merger.bias"), "vision or sound tower, noted");
  EXPECT_EQ(why(path, "mtp.fc.weight"), "multi-token prediction, noted");
  EXPECT_EQ(why(path, "model.layers.0.self_attn.rotary_emb.inv_freq"), "RoPE's frequencies, which Kvasir computes");
  model.add("score.weight", codec_f32(), {2, 24}, 1);
  EXPECT_THAT(outcome(folder(model)), HasSubstr("\"score.weight\""));
}

TEST_F(RegressModelFiles, AHeadBesideATiedOneMustBeTheEmbedding) {
  tiny::Model model = tiny::llama();
  model.edit_config("\"tie_word_embeddings\":false", "\"tie_word_embeddings\":true");
  EXPECT_THAT(outcome(folder(model)), HasSubstr("the head is tied"));
  model.at("lm_head.weight").values = model.at("model.embed_tokens.weight").values;
  EXPECT_THAT(why(folder(model), "lm_head.weight"), HasSubstr("the embedding again"));
}

TEST_F(RegressModelFiles, KeysOfAConfigThatChangeResultsAreRefused) {
  const auto outcome_with = [&](const std::string& json) {
    tiny::Model model = tiny::llama();
    model.edit_config("{", "{" + json + ",");
    return outcome(folder(model));
  };
  const std::string plain = outcome(folder(tiny::llama()));
  EXPECT_THAT(outcome_with(R"("quantization_config":{"quant_method":"awq","bits":4})"), HasSubstr("\"awq\""));
  EXPECT_THAT(outcome_with(R"("compression_config":{"format":"pack-quantized"})"), HasSubstr("compression_config"));
  EXPECT_THAT(outcome_with(R"("num_local_experts":8)"), HasSubstr("block_sparse_moe.gate.weight"));
  EXPECT_EQ(outcome_with(R"("num_local_experts":0)"), plain);
  EXPECT_THAT(outcome_with(R"("logits_scaling":8.0)"), HasSubstr("logits_scaling"));
  EXPECT_EQ(outcome_with(R"("logits_scaling":1.0)"), plain);
  EXPECT_THAT(outcome_with(R"("use_sliding_window":true)"), HasSubstr("use_sliding_window"));
  EXPECT_THAT(outcome_with(R"("layer_types":["full_attention","sliding_attention"])"), HasSubstr("have a window"));
  EXPECT_EQ(outcome_with(R"("rope_scaling":{"type":"linear","factor":1.0,"extra":2})"), plain);
}

TEST_F(RegressModelFiles, KeysOfAConfigThatNobodyKnowsAreNoted) {
  tiny::Model model = tiny::llama();
  model.edit_config("{", R"({"stranger":{"a":1},"use_cache":true,"temperature":0.5,"rope_scaling":{"type":"linear",
      "factor":1.0,"extra":2},)");
  const std::string path = folder(model);
  EXPECT_EQ(why(path, "config.json: stranger"), "not known to Kvasir, noted");
  EXPECT_EQ(why(path, "config.json: rope_scaling.extra"), "not known to Kvasir, noted");
  EXPECT_EQ(why(path, "config.json: use_cache"), "speed or memory of another program");
  EXPECT_THAT(why(path, "config.json: temperature"), HasSubstr("noted"));
  const auto opened = Model::open(path);
  EXPECT_THAT(note_of((*opened)->info().ignored), AllOf(HasSubstr("stranger"), HasSubstr("temperature")));
  EXPECT_EQ(note_of((*opened)->info().ignored).find("use_cache"), std::string::npos);
}

TEST_F(RegressModelFiles, GenerationSettingsThatAreNotUsedAreNoted) {
  const std::string path = folder(tiny::llama());
  put(folder_ / "model/generation_config.json",
      R"({"temperature":0.5,"do_sample":true,"num_beams":4,"num_return_sequences":1,"max_length":99})");
  EXPECT_THAT(why(path, "generation_config.json: num_beams"), HasSubstr("noted"));
  EXPECT_THAT(why(path, "generation_config.json: num_return_sequences"), testing::Not(HasSubstr("noted")));
  EXPECT_THAT(why(path, "generation_config.json: max_length"), testing::Not(HasSubstr("noted")));
}

// `plan` used to show the bytes of 16-bit weights.
TEST_F(RegressModelFiles, APlanOfQuantisedWeightsIsRefused) {
  tiny::Model model = tiny::llama();
  model.edit_config("{", R"({"quantization_config":{"quant_method":"gptq","bits":4},)");
  put(folder_ / "config.json", model.config);
  PlanRequest request;
  request.model = (folder_ / "config.json").string();
  EXPECT_THAT(message_of(plan(request)), HasSubstr("\"gptq\""));
}

// cases/qwen2-window-null: null was read as the default of 4,096 positions. 4 layers, K and V of 2 heads of 16 in f32
// for 8,192 positions are 8,388,608 bytes.
TEST_F(RegressModelFiles, Qwen2WindowNull) {
  for (const char* window : {"", R"("sliding_window":null,)"}) {
    put(folder_ / "config.json", fmt::format(R"({{"model_type":"qwen2","hidden_size":64,"intermediate_size":64,{}
        "num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":300,"rms_norm_eps":1e-5,
        "max_position_embeddings":8192,"tie_word_embeddings":true,"use_sliding_window":{},"max_window_layers":0}})",
                                             window, *window != '\0'));
    PlanRequest request;
    request.model = (folder_ / "config.json").string();
    request.session.layout = "windowed";
    const auto report = plan(request);
    ASSERT_TRUE(report) << message_of(report);
    EXPECT_EQ(report->kv_bytes, 8388608u) << window;
  }
}

// cases/rope-parameters-by-layer-type: theta was left at the default, and a factor without a type was ignored.
TEST_F(RegressModelFiles, RopeParametersByLayerType) {
  const auto outcome_with = [&](const std::string& rope) {
    tiny::Model model = tiny::llama();
    model.edit_config(R"("rope_theta":1000.0)", rope);
    return outcome(folder(model));
  };
  const std::string expected = outcome_with(R"("rope_theta":500.0)");
  EXPECT_EQ(expected.size(), 32u) << expected;
  EXPECT_NE(expected, outcome(folder(tiny::llama())));
  EXPECT_EQ(outcome_with(R"("rope_parameters":{"full_attention":{"rope_type":"default","rope_theta":500.0}})"),
            expected);
  EXPECT_THAT(outcome_with(R"("rope_theta":500.0,"rope_scaling":{"factor":4.0})"), HasSubstr("without a type"));
}

TEST_F(RegressModelFiles, AdaptersBesideAModelAreRefused) {
  const std::string path = folder(tiny::llama());
  put(folder_ / "model/adapter_config.json", "{}");
  EXPECT_THAT(outcome(path), HasSubstr("adapter_config.json"));
}

// Types that are known but not read are refused by their names, and `inspect` shows the file.
TEST_F(RegressModelFiles, NewWeightTypesAreNamed) {
  for (const auto& [id, name] :
       {std::pair<uint32_t, const char*>{40, "NVFP4"}, {41, "Q1_0"}, {42, "Q2_0"}, {10, "Q2_K"}, {99, "type 99"}}) {
    Bytes b = gguf_test::head(1, 6);
    b.text_entry("general.architecture", "llama");
    for (const auto& [key, value] : {std::pair<const char*, uint32_t>{"block_count", 1},
                                     {"context_length", 8},
                                     {"embedding_length", 256},
                                     {"feed_forward_length", 8},
                                     {"attention.head_count", 1}})
      b.entry(std::string("llama.") + key, GgufType::u32, value);
    b.tensor("token_embd.weight", {256, 4}, id, 0).data_section(4096);
    put(folder_ / "t.gguf", b.data);
    const auto report = inspect((folder_ / "t.gguf").string());
    ASSERT_TRUE(report) << name << ": " << message_of(report);
    EXPECT_EQ(report->tensors.at(0).type, name);
  }
}

}  // namespace
}  // namespace kvasir
