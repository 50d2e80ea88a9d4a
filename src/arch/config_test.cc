// Configurations: real ones of many families, the numbers that they give, and refusals that name their cause.
#include "arch/config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arch/family.h"
#include "tests/support/tiny_models.h"

namespace kvasir {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using tiny::message_of;

Result<ModelConfig> parse(const ConfigView& view) {
  KVASIR_TRY(const Family* family, find_family(view));
  return family->parse_config(view);
}

ConfigView view_of(std::string_view json) {
  auto view = ConfigView::parse(json, "test.json");
  EXPECT_TRUE(view) << message_of(view);
  return view ? *view : ConfigView();
}

ConfigView real(const std::string& name) {
  auto view = ConfigView::read(tiny::outside_data() / "hf-configs" / (name + ".config.json"));
  EXPECT_TRUE(view) << message_of(view);
  return view ? *view : ConfigView();
}

#define NEED_OUTSIDE_DATA() \
  if (tiny::outside_data().empty()) GTEST_SKIP() << "outside data folder is absent"

ConfigView llama_view() {
  return view_of(R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,
                     "intermediate_size":96,"vocab_size":100})");
}
ConfigView gpt2_view() {
  return view_of(R"({"model_type":"gpt2","n_embd":64,"n_layer":2,"n_head":4,"vocab_size":100})");
}

// A llama config with this "rope_scaling".
ConfigView scaled_view(const std::string& scaling) {
  return view_of(R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,
                     "intermediate_size":96,"vocab_size":100,"rope_scaling":)" +
                 scaling + "}");
}

// Each file is either read, or refused with an error that names the file and the cause.
TEST(Config, EveryRealConfigParsesOrSaysWhyNot) {
  NEED_OUTSIDE_DATA();
  std::set<std::string> refused;
  int files = 0;
  for (const auto& entry : tiny::fs::directory_iterator(tiny::outside_data() / "hf-configs")) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    const auto file = ConfigView::read(entry.path());
    ASSERT_TRUE(file) << message_of(file);
    const ConfigView view = text_config(*file);
    const std::string name = entry.path().filename().string().substr(0, entry.path().filename().string().size() - 12),
                      type = view.get_string_or("model_type", "").value_or("");
    const auto config = parse(view);
    if (config) continue;
    refused.insert(name);
    EXPECT_THAT(config.error().message(), AllOf(HasSubstr(entry.path().string()), HasSubstr("model_type \"" + type)))
        << name;
  }
  EXPECT_EQ(files, 67);
  EXPECT_THAT(refused, testing::UnorderedElementsAre("chatglm", "deepseek_v2_lite", "gpt_bigcode", "gpt_j", "phi-1_5",
                                                     "phi-2", "qwen", "rwkv5_3b", "snowflake-arctic-embed-m"));
}

TEST(Config, WindowsAreReadAsEachFamilyMeansThem) {
  const auto windows = [](const std::string& type, const std::string& more) {
    const auto c = parse(view_of(R"({"hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,
        "num_key_value_heads":4,"intermediate_size":96,"vocab_size":100,"max_position_embeddings":9000,"model_type":")" +
                                 type + "\"" + more + "}"));
    EXPECT_TRUE(c) << message_of(c);
    return c ? c->windows : std::vector<int>{-1};
  };
  EXPECT_THAT(windows("mistral", ""), ElementsAre(4096, 4096)) << "what a file means that does not speak of it";
  EXPECT_THAT(windows("mistral", R"(,"sliding_window":null)"), IsEmpty());
  EXPECT_THAT(windows("mistral", R"(,"sliding_window":77)"), ElementsAre(77, 77));
  EXPECT_THAT(windows("mixtral", ""), IsEmpty());
  EXPECT_THAT(windows("mixtral", R"(,"sliding_window":77)"), ElementsAre(77, 77));
  EXPECT_THAT(windows("llama", ""), IsEmpty());
  EXPECT_THAT(windows("llama", R"(,"sliding_window":77)"), IsEmpty());
  EXPECT_THAT(windows("llama", R"(,"sliding_window":77,"gguf.sliding_window":true)"), ElementsAre(77, 77));
  const std::string used = R"(,"sliding_window":77,"use_sliding_window":true)";
  EXPECT_THAT(windows("qwen2", R"(,"sliding_window":77,"use_sliding_window":false)"), IsEmpty());
  EXPECT_THAT(windows("qwen2", used), ElementsAre(0, 0)) << "only from layer 28 on";
  EXPECT_THAT(windows("qwen2", used + R"(,"max_window_layers":0)"), ElementsAre(77, 77));
  EXPECT_THAT(windows("qwen2", used + R"(,"max_window_layers":1)"), ElementsAre(0, 77));
  EXPECT_THAT(windows("qwen3", R"(,"use_sliding_window":true,"max_window_layers":0)"), ElementsAre(4096, 4096));
  const std::string none = R"(,"use_sliding_window":true,"sliding_window":null,"max_window_layers":0)";
  EXPECT_THAT(windows("qwen2", none), IsEmpty()) << "null is no window, absent is 4096";
  EXPECT_THAT(windows("qwen3", none), IsEmpty());
  EXPECT_THAT(windows("phi3", R"(,"sliding_window":2047)"), ElementsAre(2047, 2047));
  EXPECT_THAT(windows("phi3", ""), IsEmpty());
  EXPECT_THAT(windows("qwen2", used + R"(,"layer_types":["sliding_attention","full_attention"])"), ElementsAre(77, 0));
  EXPECT_THAT(windows("mistral", R"(,"sliding_window":9,"gguf.sliding_window_pattern":[0,1])"), ElementsAre(0, 9));
}

TEST(Config, LayersThatAreDescribedWronglyAreRefused) {
  ConfigView view = llama_view();
  const auto types = [&](const char* list) {
    return message_of(windows_by_layer(view_of(std::string("{\"layer_types\":") + list + "}"), 2, 9));
  };
  EXPECT_THAT(types(R"(["full_attention"])"), AllOf(HasSubstr("of 1 layers"), HasSubstr("the model has 2")));
  EXPECT_THAT(types(R"(["full_attention","chunked_attention"])"), AllOf(HasSubstr("layer 1"), HasSubstr("chunked")));
  EXPECT_THAT(types(R"(["full_attention",3])"), HasSubstr("layer_types"));
  const auto of_no_size = windows_by_layer(view_of(R"({"layer_types":["full_attention","sliding_attention"]})"), 2, 0);
  EXPECT_THAT(message_of(of_no_size), HasSubstr("whose size the configuration does not give"));
}

TEST(Config, RopeByKindOfLayer) {
  const auto with = [](const std::string& json) {
    return parse(view_of(R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,
                             "intermediate_size":96,"vocab_size":100,)" +
                         json + "}"));
  };
  const std::string full = R"("rope_parameters":{"full_attention":{"rope_type":"default","rope_theta":500.0}})";
  ASSERT_TRUE(with(full)) << message_of(with(full));
  EXPECT_EQ(with(full)->ropes[0].theta, 500.0);
  const std::string both = R"("rope_parameters":{"full_attention":{"rope_theta":500.0,"rope_type":"default"},
      "sliding_attention":{"rope_type":"default","rope_theta":)";
  EXPECT_EQ(with(both + "500.0}}")->ropes[0].theta, 500.0);
  EXPECT_EQ(with(both + "700.0}}")->ropes[1].theta, 700.0);
  EXPECT_EQ(with(both + R"(700.0}},"layer_types":["full_attention","full_attention"])")->ropes[0].theta, 500.0);
  EXPECT_THAT(message_of(with(full + R"(,"layer_types":["full_attention","linear_attention"])")),
              HasSubstr("\"linear_attention\", which is not supported"));
}

TEST(Config, RopeThatContradictsItselfIsRefused) {
  const auto with = [](const std::string& json) {
    return message_of(parse(view_of(R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":2,
        "num_attention_heads":4,"intermediate_size":96,"vocab_size":100,)" +
                                    json + "}")));
  };
  EXPECT_THAT(with(R"("rope_scaling":{"factor":4.0})"), HasSubstr("without a type"));
  EXPECT_THAT(with(R"("rope_parameters":{"factor":4.0,"rope_theta":500.0})"), HasSubstr("without a type"));
  EXPECT_THAT(with(R"("rope_theta":10000.0,"rope_parameters":{"rope_theta":500.0})"), HasSubstr("10000 and 500"));
  EXPECT_THAT(with(R"("rope_scaling":{"type":"linear","factor":2.0},"rope_parameters":{"type":"linear","factor":4.0})"),
              HasSubstr("both present and differ"));
  EXPECT_THAT(with(R"("rope_theta":null)"), AllOf(HasSubstr("rope_theta"), HasSubstr("null")));
  EXPECT_THAT(with(R"("rms_norm_eps":null)"), AllOf(HasSubstr("rms_norm_eps"), HasSubstr("null")));
}

// The defaults are transformers' own for each model type.
TEST(Config, DefaultsOfTheModelType) {
  const auto of = [](const char* type) {
    const auto c = parse(view_of(R"({"hidden_size":1024,"num_hidden_layers":2,"num_attention_heads":32,
        "intermediate_size":96,"vocab_size":100,"sliding_window":null,"model_type":")" +
                                 std::string(type) + "\"}"));
    EXPECT_TRUE(c) << message_of(c);
    return c ? *c : ModelConfig();
  };
  EXPECT_EQ(of("llama").kv_heads, 32);
  EXPECT_EQ(of("mistral").kv_heads, 8);
  EXPECT_EQ(of("qwen3").head_dim, 128);
  EXPECT_EQ(of("qwen2").head_dim, 32);
  EXPECT_EQ(of("phi3").norm_eps, 1e-5f);
  EXPECT_EQ(of("qwen2").norm_eps, 1e-6f);
  EXPECT_EQ(of("mistral").max_ctx, 131072);
}

TEST(Config, HeadsMayBeRotatedInPart) {
  ConfigView view = llama_view();
  view.set("partial_rotary_factor", 0.75);
  const auto c = parse(view);
  ASSERT_TRUE(c) << message_of(c);
  EXPECT_EQ(c->ropes[0].channels, 12);
  EXPECT_EQ(c->ropes[0].frequencies().size(), 6u);
  view.set("partial_rotary_factor", 0.2);  // 3 channels
  EXPECT_THAT(message_of(parse(view)), HasSubstr("3 of the 16 channels"));
}

TEST(Config, FactorsMustFitTheHead) {
  const auto with = [](const std::string& list) {
    return parse(scaled_view(R"({"rope_type":"gguf.factors","gguf.factors":)" + list + "}"));
  };
  ASSERT_TRUE(with("[1,2,3,4,5,6,7,8]"));
  EXPECT_EQ(with("[1,2,3,4,5,6,7,8]")->ropes[0].frequencies()[3],
            with("[1,1,1,1,1,1,1,1]")->ropes[0].frequencies()[3] / 4);
  EXPECT_THAT(message_of(with("[1,2,3]")), AllOf(HasSubstr("3 RoPE factors"), HasSubstr("16")));
  EXPECT_FALSE(with("[1,2,3,4,5,6,7,0]"));
  EXPECT_FALSE(with("[1,2,3,4,5,6,7,-1]"));
  EXPECT_FALSE(with("[1,2,3,4,5,6,7,1e300]"));
  EXPECT_FALSE(with(R"([1,2,3,4,5,6,7,"8"])"));
}

TEST(Config, TheTextPartOfAModelOfTextAndImages) {
  const ConfigView view = text_config(view_of(R"({"model_type":"llava","eos_token_id":[4,5],"vocab_size":7,
      "text_config":{"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,
      "intermediate_size":96,"vocab_size":100}})"));
  const auto c = parse(view);
  ASSERT_TRUE(c) << message_of(c);
  EXPECT_EQ(c->vocab, 100);
  EXPECT_THAT(c->eos, ElementsAre(4, 5)) << "from outside, where the part has none";
}

TEST(Config, Gpt2Small) {
  NEED_OUTSIDE_DATA();
  const auto c = parse(real("gpt2"));
  ASSERT_TRUE(c) << message_of(c);
  EXPECT_EQ(c->layers, 12);
  EXPECT_EQ(c->hidden, 768);
  EXPECT_EQ(c->heads, 12);
  EXPECT_EQ(c->kv_heads, 12);
  EXPECT_EQ(c->head_dim, 64);
  EXPECT_EQ(c->ffn, 3072);
  EXPECT_EQ(c->vocab, 50257);
  EXPECT_EQ(c->max_ctx, 1024);
  EXPECT_EQ(c->norm_eps, 1e-5f);
  EXPECT_TRUE(c->tied_head);
  EXPECT_TRUE(c->ropes.empty());
  EXPECT_EQ(c->bos, 50256);
  EXPECT_THAT(c->eos, ElementsAre(50256));
  EXPECT_EQ(c->attention_scale(), 0.125f);
}

TEST(Config, Smollm2) {
  NEED_OUTSIDE_DATA();
  const auto c = parse(real("smollm2_135m"));
  ASSERT_TRUE(c) << message_of(c);
  EXPECT_EQ(c->layers, 30);
  EXPECT_EQ(c->hidden, 576);
  EXPECT_EQ(c->heads, 9);
  EXPECT_EQ(c->kv_heads, 3);
  EXPECT_EQ(c->group(), 3);
  EXPECT_EQ(c->head_dim, 64);
  EXPECT_EQ(c->kv_dim(), 192);
  EXPECT_EQ(c->ffn, 1536);
  EXPECT_EQ(c->vocab, 49152);
  EXPECT_EQ(c->max_ctx, 8192);
  EXPECT_TRUE(c->tied_head);
  ASSERT_EQ(c->ropes.size(), 1u);
  EXPECT_EQ(c->ropes[0].theta, 100000.0);
  EXPECT_FALSE(c->ropes[0].interleaved);
  EXPECT_EQ(c->ropes[0].linear, 1.0);
  EXPECT_TRUE(c->ropes[0].factors.empty());
  EXPECT_THAT(c->eos, ElementsAre(2));
  EXPECT_EQ(c->bos, 1);
}

// Llama 3's rule in terms of turns: the number of turns within the original context decides the divisor.
double llama3_frequency(int i, int head_dim, double theta, double factor, double low, double high, double original) {
  const double frequency = std::exp(-2.0 * i / head_dim * std::log(theta));
  const double turns = original * frequency / (2 * 3.14159265358979323846);
  const double kept = std::min(1.0, std::max(0.0, (turns - low) / (high - low)));
  return frequency * (kept + (1 - kept) / factor);
}

TEST(Config, Llama32WithItsScaledRotations) {
  NEED_OUTSIDE_DATA();
  const auto c = parse(real("llama3_2_1b"));
  ASSERT_TRUE(c) << message_of(c);
  EXPECT_EQ(c->layers, 16);
  EXPECT_EQ(c->hidden, 2048);
  EXPECT_EQ(c->heads, 32);
  EXPECT_EQ(c->kv_heads, 8);
  EXPECT_EQ(c->head_dim, 64);
  EXPECT_EQ(c->ffn, 8192);
  EXPECT_EQ(c->vocab, 128256);
  EXPECT_EQ(c->max_ctx, 131072);
  EXPECT_TRUE(c->tied_head);
  EXPECT_THAT(c->eos, ElementsAre(128001, 128008, 128009));
  ASSERT_EQ(c->ropes.size(), 1u);
  const std::vector<double> f = c->ropes[0].frequencies();
  ASSERT_EQ(f.size(), 32u);
  int kept = 0, stretched = 0;
  for (int i = 0; i < 32; ++i) {
    const double expected = llama3_frequency(i, 64, 500000.0, 32.0, 1.0, 4.0, 8192.0);
    const double plain = std::pow(500000.0, -i / 32.0);
    EXPECT_NEAR(f[static_cast<size_t>(i)] / expected, 1.0, 6.1e-8) << i << ": the factor is an f32";
    kept += std::fabs(expected / plain - 1) < 1e-12;
    stretched += std::fabs(expected / plain * 32 - 1) < 1e-12;
  }
  EXPECT_GT(kept, 5);
  EXPECT_GT(stretched, 5);
  EXPECT_LT(kept + stretched, 32) << "some are blended";
}

TEST(Config, PlainAndLinearFrequencies) {
  RopeConfig rope;
  rope.theta = 500.0;
  rope.channels = 48;
  const std::vector<double> plain = rope.frequencies();
  rope.linear = 4.0;
  const std::vector<double> linear = rope.frequencies();
  ASSERT_EQ(plain.size(), 24u);
  EXPECT_EQ(plain[0], 1.0);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_NEAR(plain[i] / std::pow(500.0, -static_cast<double>(i) / 24), 1.0, 1e-14);
    EXPECT_EQ(linear[i], plain[i] / 4.0);
  }
}

TEST(Config, ScalingKindsAreReadFromBothSpellings) {
  for (const char* key : {"type", "rope_type"}) {
    const auto c = parse(scaled_view(std::string("{\"") + key + "\":\"linear\",\"factor\":2.5}"));
    ASSERT_TRUE(c) << message_of(c);
    EXPECT_EQ(c->ropes[0].linear, 2.5);
  }
  EXPECT_EQ(parse(scaled_view("null"))->ropes[0].linear, 1.0);
  EXPECT_EQ(parse(scaled_view(R"({"rope_type":"default"})"))->ropes[0].linear, 1.0);
}

// Newer files keep theta and scaling in one object.
TEST(Config, RopeParametersAreRead) {
  ConfigView view = view_of(R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":2,
      "num_attention_heads":4,"intermediate_size":96,"vocab_size":100,"rope_parameters":{"rope_theta":500000.0,
      "rope_type":"llama3","factor":8.0,
      "low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192}})");
  const auto c = parse(view);
  ASSERT_TRUE(c) << message_of(c);
  EXPECT_EQ(c->ropes[0].theta, 500000.0);
  ASSERT_EQ(c->ropes[0].factors.size(), 8u);
  EXPECT_EQ(c->ropes[0].factors.front(), 1.0f);
  EXPECT_EQ(c->ropes[0].factors.back(), 8.0f);
}

TEST(Config, UnsupportedScalingIsRefusedByName) {
  for (const char* kind : {"ntk-by-parts", "xpos"})
    for (const char* key : {"type", "rope_type"}) {
      const auto c = parse(scaled_view(std::string("{\"") + key + "\":\"" + kind + "\",\"factor\":2.0}"));
      ASSERT_FALSE(c) << kind;
      EXPECT_THAT(c.error().message(), AllOf(HasSubstr(kind), HasSubstr("test.json")));
    }
  const std::map<std::string, const char*> bad = {
      {R"({"rope_type":"linear"})", "factor"},
      {R"({"rope_type":"linear","factor":0.5})", "0.5"},
      {R"({"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4})",
       "original_max_position_embeddings"},
      {R"({"rope_type":"llama3","factor":8,"low_freq_factor":4,"high_freq_factor":4,
           "original_max_position_embeddings":9})",
       "high_freq_factor"},
      {R"("linear")", "rope_scaling"},
      {R"({"rope_type":3})", "rope_type"},
  };
  for (const auto& [scaling, word] : bad) {
    const auto c = parse(scaled_view(scaling));
    ASSERT_FALSE(c) << scaling;
    EXPECT_THAT(c.error().message(), HasSubstr(word));
  }
}

TEST(Config, HeadsMustFit) {
  ConfigView view = llama_view();
  view.set("num_key_value_heads", 3);
  EXPECT_THAT(message_of(parse(view)), AllOf(HasSubstr("4 query heads"), HasSubstr("3 KV heads")));
  view = llama_view();
  view.set("head_dim", 15);
  EXPECT_THAT(message_of(parse(view)), HasSubstr("15"));
  view = llama_view();
  view.set("num_attention_heads", 128);
  EXPECT_THAT(message_of(parse(view)), AllOf(HasSubstr("64"), HasSubstr("128")))
      << "64 channels, 128 heads, no head_dim";
  view = llama_view();
  view.set("num_attention_heads", 5);
  view.set("num_key_value_heads", 5);
  EXPECT_THAT(message_of(parse(view)), AllOf(HasSubstr("64"), HasSubstr("5 heads")));
  view.set("head_dim", 12);  // a given head_dim need not divide
  EXPECT_TRUE(parse(view)) << message_of(parse(view));
  view = gpt2_view();
  view.set("n_head", 5);
  EXPECT_THAT(message_of(parse(view)), AllOf(HasSubstr("64"), HasSubstr("5 heads")));
  view = gpt2_view();
  view.set("n_head", 64);  // heads of one channel: nothing is rotated
  EXPECT_TRUE(parse(view)) << message_of(parse(view));
}

TEST(Config, BadValuesAreRefusedByKey) {
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size",
                          "max_position_embeddings", "num_key_value_heads", "head_dim"})
    for (const int64_t value : {int64_t{0}, int64_t{-4}, int64_t{1} << 40}) {
      ConfigView view = llama_view();
      view.set(key, value);
      EXPECT_THAT(message_of(parse(view)), AllOf(HasSubstr(key), HasSubstr(std::to_string(value))));
    }
  for (const char* key : {"rms_norm_eps", "rope_theta"})
    for (const double value :
         {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      ConfigView view = llama_view();
      view.set(key, value);
      EXPECT_THAT(message_of(parse(view)), HasSubstr(key)) << value;
    }
  ConfigView view = llama_view();
  view.set("hidden_act", "quick_gelu");
  EXPECT_THAT(message_of(parse(view)), HasSubstr("quick_gelu"));
  view = gpt2_view();
  view.set("activation_function", "relu");
  EXPECT_THAT(message_of(parse(view)), HasSubstr("relu"));
  view = gpt2_view();
  view.set("scale_attn_by_inverse_layer_idx", true);
  EXPECT_THAT(message_of(parse(view)), HasSubstr("head_dim"));
  EXPECT_FALSE(ConfigView::parse(R"({"model_type":"llama","rms_norm_eps":NaN})", "nan.json"));
}

TEST(Config, SpecialIds) {
  ConfigView view = gpt2_view();
  view.set("eos_token_id", std::vector<int64_t>{3, 99});
  view.set("bos_token_id", 0);
  const auto c = parse(view);
  ASSERT_TRUE(c) << message_of(c);
  EXPECT_THAT(c->eos, ElementsAre(3, 99));
  EXPECT_EQ(c->bos, 0);
  EXPECT_FALSE(parse(gpt2_view())->bos);
  view.set("eos_token_id", int64_t{-1});
  view.set("bos_token_id", int64_t{-1});
  EXPECT_THAT(parse(view)->eos, IsEmpty()) << "-1 is no token";
  EXPECT_FALSE(parse(view)->bos);
  for (const int64_t id : {int64_t{100}, int64_t{-2}, int64_t{1} << 33}) {
    for (const char* key : {"eos_token_id", "bos_token_id"}) {
      ConfigView bad = gpt2_view();
      bad.set(key, id);
      EXPECT_THAT(message_of(parse(bad)), HasSubstr(std::to_string(id))) << key;
    }
  }
}

TEST(Config, UnknownFamilyIsNamedWithTheKnownOnes) {
  ConfigView view = llama_view();
  view.set("model_type", "mamba");
  EXPECT_THAT(message_of(parse(view)), AllOf(HasSubstr("mamba"), HasSubstr("llama"), HasSubstr("gpt2")));
  EXPECT_THAT(message_of(parse(view_of("{}"))), HasSubstr("model_type"));
}

TEST(Config, CanonicalTextChangesWithEveryNumberThatBitsDependOn) {
  const ModelConfig base = *parse(llama_view());
  ASSERT_FALSE(base.tied_head || base.qkv_bias || base.o_bias || base.mlp_bias);
  std::set<std::string> texts{base.canonical()};
  const auto changed = [&](auto change) {
    ModelConfig c = base;
    change(c);
    EXPECT_TRUE(texts.insert(c.canonical()).second) << texts.size();
  };
  changed([](ModelConfig& c) { c.layers = 3; });
  changed([](ModelConfig& c) { c.heads = 2; });
  changed([](ModelConfig& c) { c.kv_heads = 2; });
  changed([](ModelConfig& c) { c.head_dim = 32; });
  changed([](ModelConfig& c) { c.norm_eps = std::nextafter(c.norm_eps, 1.0f); });
  changed([](ModelConfig& c) { c.ropes[0].theta = std::nextafter(c.ropes[0].theta, 1e9); });
  changed([](ModelConfig& c) { c.ropes[0].interleaved = true; });
  changed([](ModelConfig& c) { c.ropes[0].linear = 2; });
  changed([](ModelConfig& c) { c.ropes[0].factors = {1, 2, 3, 4, 5, 6, 7, 8}; });
  changed([](ModelConfig& c) { c.ropes[0].factors = {1, 2, 3, 4, 5, 6, 7, 9}; });
  changed([](ModelConfig& c) { c.family = "qwen2"; });
  changed([](ModelConfig& c) { c.qkv_bias = true; });
  changed([](ModelConfig& c) { c.o_bias = true; });
  changed([](ModelConfig& c) { c.mlp_bias = true; });
  changed([](ModelConfig& c) { c.tied_head = true; });
  changed([](ModelConfig& c) { c.ropes.clear(); });
  changed([](ModelConfig& c) { c.ropes.push_back(c.ropes[0]); });
  changed([](ModelConfig& c) { c.ropes[0].channels = 8; });
  changed([](ModelConfig& c) { c.ropes[0].magnitude = 1.25f; });
  changed([](ModelConfig& c) { c.ropes[0].yarn = YarnScaling{.factor = 4, .original_ctx = 64}; });
  changed([](ModelConfig& c) { c.ropes[0].yarn = YarnScaling{.factor = 4, .original_ctx = 64, .rounded = false}; });
  changed([](ModelConfig& c) { c.ropes[0].long_factors = {1, 2, 3, 4, 5, 6, 7, 8}; });
  changed([](ModelConfig& c) { c.rope_kinds = {0, -1}; });
  changed([](ModelConfig& c) { c.activation = Activation::gelu_tanh; });
  changed([](ModelConfig& c) { c.score_scale = 0.5f; });
  changed([](ModelConfig& c) { c.score_cap = 50; });
  changed([](ModelConfig& c) { c.logit_cap = 30; });
  changed([](ModelConfig& c) { c.embedding_scale = 8; });
  changed([](ModelConfig& c) { c.residual_scale = 8; });
  changed([](ModelConfig& c) { c.logit_scale = 8; });
  changed([](ModelConfig& c) { c.q_temperature_beta = 0.1, c.q_temperature_ctx = 64; });
  changed([](ModelConfig& c) { c.parallel_residual = false; });
  ModelConfig with_experts = base;
  with_experts.experts = {.count = 8, .used = 2, .ffn = 32, .layers = {false, true}};
  texts.insert(with_experts.canonical());
  const auto changed_experts = [&](auto change) {
    ModelConfig c = with_experts;
    change(c.experts);
    EXPECT_TRUE(texts.insert(c.canonical()).second) << texts.size();
  };
  changed_experts([](ExpertConfig& e) { e.used = 3; });
  changed_experts([](ExpertConfig& e) { e.shared_ffn = 32; });
  changed_experts([](ExpertConfig& e) { e.gate = ExpertGate::sigmoid; });
  changed_experts([](ExpertConfig& e) { e.gate = ExpertGate::softmax_of_near; });
  changed_experts([](ExpertConfig& e) { e.nearness = 0.02f; });
  changed_experts([](ExpertConfig& e) { e.normalised = false; });
  changed_experts([](ExpertConfig& e) { e.scale = 2; });
  changed_experts([](ExpertConfig& e) { e.groups = 2; });
  changed_experts([](ExpertConfig& e) { e.groups_used = 2; });
  changed_experts([](ExpertConfig& e) { e.layers = {true, true}; });
}

// Compares with the formula of arXiv:2309.00071 in long double.
TEST(Config, YarnBlendsFrequencies) {
  RopeConfig rope;
  rope.channels = 16;
  rope.theta = 10000.0;
  const std::vector<double> plain = rope.frequencies();
  rope.yarn = YarnScaling{.factor = 8, .beta_fast = 4, .beta_slow = 0.5, .original_ctx = 256};
  const auto channel = [](long double turns) {
    return 16 * std::log(256 / (turns * 2 * std::numbers::pi_v<long double>)) / (2 * std::log(10000.0L));
  };
  for (const bool rounded : {true, false}) {
    rope.yarn->rounded = rounded;
    long double low = channel(4), high = channel(0.5L);
    if (rounded) low = std::floor(low), high = std::ceil(high);
    const std::vector<double> scaled = rope.frequencies();
    for (size_t i = 0; i < scaled.size(); ++i) {
      const long double r = std::clamp((static_cast<long double>(i) - low) / (high - low), 0.0L, 1.0L);
      const long double want = plain[i] / 8 * r + plain[i] * (1 - r);
      EXPECT_NEAR(scaled[i] / static_cast<double>(want), 1.0, 1e-14) << rounded << " " << i;
    }
  }
}

TEST(Config, LongRopeChoosesByTheSession) {
  const auto c = parse(scaled_view(R"({"rope_type":"longrope","short_factor":[1,1,1,1,1,1,1,2],
      "long_factor":[1,2,3,4,5,6,7,8],"original_max_position_embeddings":512})"));
  ASSERT_TRUE(c) << message_of(c);
  const RopeConfig& rope = c->ropes[0];
  EXPECT_EQ(rope.original_ctx, 512);
  EXPECT_DOUBLE_EQ(rope.frequencies(false)[3] / rope.frequencies(true)[3], 4.0);
  EXPECT_DOUBLE_EQ(rope.frequencies(false)[7] / rope.frequencies(true)[7], 4.0);
  EXPECT_FLOAT_EQ(rope.magnitude, std::sqrt(1.0f + std::log(2048.0f / 512.0f) / std::log(512.0f)));
}

TEST(Config, ExpertsThatDoNotFitTogetherAreRefused) {
  const auto with = [](const std::string& json) {
    return message_of(parse(view_of(R"({"model_type":"qwen3_moe","hidden_size":64,"num_hidden_layers":2,
        "num_attention_heads":4,"intermediate_size":96,"vocab_size":100,"moe_intermediate_size":32,)" +
                                    json + "}")));
  };
  EXPECT_EQ(with(R"("num_experts":8,"num_experts_per_tok":2)"), "no error");
  EXPECT_THAT(with(R"("num_experts":8,"num_experts_per_tok":9)"), HasSubstr("9 of 8 experts"));
  EXPECT_THAT(with(R"("num_experts":8,"num_experts_per_tok":0)"), HasSubstr("0 of 8 experts"));
  EXPECT_THAT(with(R"("num_experts":8,"num_experts_per_tok":2,"n_group":3)"), HasSubstr("fit together"));
  EXPECT_THAT(with(R"("num_experts":-1)"), HasSubstr("num_experts"));
  EXPECT_THAT(with(R"("num_experts":8,"num_experts_per_tok":5,"n_group":2,"topk_group":1)"), HasSubstr("fit together"));
  EXPECT_EQ(with(R"("num_experts":8,"num_experts_per_tok":4,"n_group":2,"topk_group":1)"), "no error");
}

}  // namespace
}  // namespace kvasir
