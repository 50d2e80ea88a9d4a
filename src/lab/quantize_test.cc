// A model and the GGUF file written from it: equal if the type is the same, close to it if the type is narrower. A
// model that cannot be written is refused with the reason.
#include "lab/quantize.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/model_files.h"
#include "lab/synth.h"
#include "tests/support/engines.h"
#include "tests/support/gguf_models.h"

namespace kvasir {
namespace {

using engine_test::AllOf;
using engine_test::greedy_tokens;
using engine_test::HasSubstr;
using engine_test::message_of;
using engine_test::with_receipt;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using tiny::outside_data;
using tiny::put;
using tiny::slurp;
using tiny::TempFolder;

const std::string kModels = KVASIR_SOURCE_DIR "/models/";

class Quantize : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Writes a model to NAME.gguf and returns the report.
  QuantizeReport write(const std::string& model, const std::string& type, const std::string& name,
                       bool with_tokenizer = true) const {
    const auto report = quantize({.model = model,
                                  .out = folder_ / (name + ".gguf"),
                                  .type = type,
                                  .with_tokenizer = with_tokenizer,
                                  .threads = 2});
    EXPECT_TRUE(report) << message_of(report);
    return report.value_or(QuantizeReport{});
  }
  std::string gguf(const std::string& name) const { return path(name + ".gguf"); }

  Generation generated(const std::string& model, int n = 6) const {
    const auto opened = Model::open(model);
    EXPECT_TRUE(opened) << message_of(opened);
    auto engine = Engine::create(*opened, {.threads = 2});
    auto session = (*engine)->open_session({});
    EXPECT_TRUE(session) << message_of(session);
    const auto g = generate(**engine, *session, tiny::ids(40), with_receipt(greedy_tokens(n)));
    EXPECT_TRUE(g) << message_of(g);
    return g ? *g : Generation{};
  }

  TempFolder folder_;
  tiny::ScopedEnv remembered_{"XDG_CACHE_HOME", (folder_ / "cache").string()};
};

// ---- the same model -----------------------------------------------------------------------------------------------

TEST_F(Quantize, TalesInItsOwnTypeKeepsItsReceiptAndItsIds) {
  EXPECT_THAT(write(kModels + "tales", "bf16", "t").notes, IsEmpty());
  EXPECT_EQ(generated(gguf("t")).receipt, generated(kModels + "tales").receipt);
  const auto folder = open_tokenizer(kModels + "tales"), file = open_tokenizer(gguf("t"));
  ASSERT_TRUE(folder && file) << message_of(file);
  std::ifstream prompts(kModels + "prompts.txt");
  int lines = 0;
  for (std::string line; std::getline(prompts, line); ++lines) {
    EXPECT_EQ(*(*file)->encode(line), *(*folder)->encode(line)) << line;
    EXPECT_EQ(*(*file)->encode(line + "<|endoftext|>\n  1234 é\xff"),
              *(*folder)->encode(line + "<|endoftext|>\n  1234 é\xff"));
  }
  EXPECT_GE(lines, 20);
  EXPECT_EQ((*file)->bos(), (*folder)->bos());
  EXPECT_EQ((*Model::open(gguf("t")))->info().eos, (*Model::open(kModels + "tales"))->info().eos);
}

TEST_F(Quantize, BothShippedModelsSurviveEveryFloatType) {
  for (const char* name : {"tales", "tales-gpt2"}) {
    const std::vector<int> tokens = generated(kModels + name, 12).tokens;
    for (const char* type : {"f32", "bf16"}) {
      write(kModels + name, type, std::string(name) + type);
      EXPECT_EQ(generated(gguf(std::string(name) + type), 12).tokens, tokens) << name << " " << type;
    }
  }
}

// tests/support/gguf_models.h writes the same files independently.
TEST_F(Quantize, EveryByteIsTheConverters) {
  const std::pair<const char*, uint32_t> types[] = {{"f32", 0}, {"f16", 1}, {"bf16", 30}};
  for (const auto& [type, number] : types) {
    for (const bool untied : {true, false}) {
      tiny::Model model = tiny::llama(*find_codec(type));
      if (!untied) {
        model.erase("lm_head.weight");
        model.edit_config("\"tie_word_embeddings\":false", "\"tie_word_embeddings\":true");
      }
      const std::string name = std::string(type) + (untied ? "u" : "t");
      model.write(folder_ / name);
      write(path(name), type, name);
      put(folder_ / "want.gguf", tiny::llama_gguf(model, number).data);
      const auto want = open_gguf(folder_ / "want.gguf"), got = open_gguf(gguf(name));
      ASSERT_TRUE(want && got) << message_of(got);
      ASSERT_EQ(got->tensors.tensors.size(), want->tensors.tensors.size());
      for (const TensorInfo& w : want->tensors.tensors) {
        const TensorInfo* g = got->tensors.find(w.name);
        ASSERT_NE(g, nullptr) << w.name;
        EXPECT_EQ(g->codec, w.codec) << w.name;
        EXPECT_EQ(g->shape, w.shape) << w.name;
        EXPECT_TRUE(std::ranges::equal(got->tensors.data(*g), want->tensors.data(w))) << w.name;
      }
      for (const auto& [key, value] : want->metadata.entries) {
        const GgufValue* g = got->metadata.find(key);
        ASSERT_NE(g, nullptr) << key;
        EXPECT_EQ(g->type, value.type) << key;
        EXPECT_TRUE(std::ranges::equal(g->bytes, value.bytes)) << key;
      }
    }
  }
}

// Families, biases, kinds of RoPE: a random model of each keeps its receipt.
TEST_F(Quantize, EveryFamilyKeepsItsReceipt) {
  const std::string shape = R"("hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2,
"num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-6,
"hidden_act": "silu", "vocab_size": 300)";
  const std::map<std::string, std::string> configs = {
      {"llama", R"({"model_type": "llama", "attention_bias": true, "mlp_bias": true, )" + shape + "}"},
      {"mistral", R"({"model_type": "mistral", "sliding_window": 100, )" + shape + "}"},
      {"linear", R"({"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 2.5}, )" + shape + "}"},
      {"llama3", R"({"model_type": "llama", "tie_word_embeddings": true, "rope_theta": 500000.0,
"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
"original_max_position_embeddings": 64}, )" +
                     shape + "}"},
      {"qwen2", R"({"model_type": "qwen2", "rope_theta": 1000000.0, )" + shape + "}"},
      {"qwen2 layers", R"({"model_type": "qwen2", "use_sliding_window": true, "sliding_window": 6,
"layer_types": ["full_attention", "sliding_attention"], )" +
                           shape + "}"},
      {"qwen3", R"({"model_type": "qwen3", "head_dim": 16, )" + shape + "}"},
      {"phi3", R"({"model_type": "phi3", "sliding_window": 64, )" + shape + "}"},
      {"gpt2", R"({"model_type": "gpt2", "n_embd": 48, "n_layer": 2, "n_head": 3, "n_inner": 80, "n_positions": 128,
"vocab_size": 300, "eos_token_id": 299})"},
  };
  for (const auto& [name, config] : configs) {
    put(folder_ / (name + ".json"), config);
    const auto made = synthesize({.shape = path(name + ".json"), .out = folder_ / name, .dtype = "f16"});
    ASSERT_TRUE(made) << message_of(made);
    EXPECT_THAT(write(path(name), "f16", name).notes, IsEmpty()) << name;
    EXPECT_EQ(generated(gguf(name)).receipt, generated(path(name)).receipt) << name;
    EXPECT_EQ((*Model::open(gguf(name)))->info().max_ctx, (*Model::open(path(name)))->info().max_ctx) << name;
    EXPECT_EQ(*(*open_tokenizer(gguf(name)))->encode("Hé \xff!"), *(*open_tokenizer(path(name)))->encode("Hé \xff!"));
  }
}

TEST_F(Quantize, Gpt2sMatricesAreTransposed) {
  const tiny::Model model = tiny::gpt2();
  model.write(folder_ / "g");
  write(path("g"), "f32", "g");
  const auto file = open_gguf(gguf("g"));
  ASSERT_TRUE(file) << message_of(file);
  const TensorInfo* qkv = file->tensors.find("blk.1.attn_qkv.weight");
  ASSERT_NE(qkv, nullptr);
  EXPECT_THAT(qkv->shape, ElementsAre(72, 24));
  std::vector<float> values(72 * 24);
  qkv->codec->decode(file->tensors.data(*qkv).data(), values.data(), 72 * 24);
  tiny::Model copy = model;
  const std::vector<float>& source = copy.at("transformer.h.1.attn.c_attn.weight").values;  // [24][72]
  for (size_t out = 0; out < 72; ++out)
    for (size_t in = 0; in < 24; ++in) ASSERT_EQ(values[out * 24 + in], source[in * 72 + out]) << out << " " << in;
}

TEST_F(Quantize, AGgufFileGivesWhatItsFolderGives) {
  write(kModels + "tales", "bf16", "bf16");
  for (const char* type : {"q8_0", "f32"}) {
    const std::string name = type;
    write(kModels + "tales", type, name);
    write(gguf("bf16"), type, name + "2");
    const auto a = open_gguf(gguf(name)), b = open_gguf(gguf(name + "2"));
    ASSERT_TRUE(a && b) << message_of(b);
    ASSERT_EQ(a->tensors.tensors.size(), b->tensors.tensors.size());
    for (size_t i = 0; i < a->tensors.tensors.size(); ++i) {
      const TensorInfo &x = a->tensors.tensors[i], &y = b->tensors.tensors[i];
      EXPECT_EQ(x.name, y.name);
      EXPECT_TRUE(std::ranges::equal(a->tensors.data(x), b->tensors.data(y))) << x.name;
    }
    ASSERT_EQ(a->metadata.entries.size(), b->metadata.entries.size());
    for (const auto& [key, value] : a->metadata.entries) {
      const GgufValue* other = b->metadata.find(key);
      ASSERT_NE(other, nullptr) << key;
      EXPECT_TRUE(std::ranges::equal(other->bytes, value.bytes)) << key;
    }
  }
}

TEST_F(Quantize, ALlama2cFileWritesTheSameStory) {
  if (outside_data().empty()) GTEST_SKIP() << "outside data folder is absent";
  const std::string bin = (outside_data() / "models/stories260K/stories260K.bin").string();
  write(bin, "f32", "stories");
  const auto a = open_tokenizer(bin), b = open_tokenizer(gguf("stories"));
  ASSERT_TRUE(a && b) << message_of(b);
  for (const char* text : {"Once upon a time", "  two  spaces\n", "é \xff unseen: \u4e16", "", "<unk>\n<s>\n</s>"})
    EXPECT_EQ(*(*a)->encode(text), *(*b)->encode(text)) << text;
  EXPECT_EQ(generated(bin, 40).tokens, generated(gguf("stories"), 40).tokens);
}

// ---- smaller types ------------------------------------------------------------------------------------------------

// For each type, the largest relative root-mean-square error of a matrix against the folder's.
std::map<std::string, double> errors_of(const std::string& folder, const std::string& gguf) {
  const auto a = read_model_files(folder), b = read_model_files(gguf);
  EXPECT_TRUE(a && b) << message_of(b);
  std::map<std::string, double> errors;
  for (const TensorInfo& x : a->tensors.tensors) {
    const TensorInfo* y = b->tensors.find(x.name);
    if (x.shape.size() != 2) continue;
    EXPECT_NE(y, nullptr) << x.name;
    const int64_t rows = x.shape[0], cols = x.shape[1];
    std::vector<float> want(static_cast<size_t>(cols)), got(static_cast<size_t>(cols));
    double squares = 0, error = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t pair = y->pair_dim, in = pair > 0 ? r % pair : 0;
      const int64_t stored = pair > 0 ? r - in + in % (pair / 2) * 2 + in / (pair / 2) : r;
      x.codec->decode(a->tensors.data(x).data() + static_cast<size_t>(r) * x.codec->row_bytes(cols), want.data(), cols);
      y->codec->decode(b->tensors.data(*y).data() + static_cast<size_t>(stored) * y->codec->row_bytes(cols), got.data(),
                       cols);
      for (size_t i = 0; i < want.size(); ++i) {
        squares += double{want[i]} * want[i];
        error += (double{want[i]} - got[i]) * (double{want[i]} - got[i]);
      }
    }
    errors[y->codec->name] = std::max(errors[y->codec->name], std::sqrt(error / squares));
  }
  return errors;
}

TEST_F(Quantize, IntegersAreNearTheFolders) {
  put(folder_ / "c.json", R"({"model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
"num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
"hidden_act": "silu", "vocab_size": 300})");
  ASSERT_TRUE(synthesize({.shape = path("c.json"), .out = folder_ / "m", .dtype = "f32"}));
  // The values have a triangular distribution, without long tails, so errors are smaller than with a normal one.
  const std::map<std::string, std::map<std::string, double>> most = {{"q8_0", {{"q8_0", 0.0060}}},
                                                                     {"q4_0", {{"q4_0", 0.0850}, {"q6_k", 0.0160}}},
                                                                     {"q4_k", {{"q4_k", 0.0680}, {"q6_k", 0.0160}}}};
  for (const auto& [type, allowed] : most) {
    EXPECT_THAT(write(path("m"), type, type).notes, IsEmpty());
    const std::map<std::string, double> errors = errors_of(path("m"), gguf(type));
    ASSERT_EQ(errors.size(), allowed.size()) << type;
    for (const auto& [name, most_error] : allowed) {
      ASSERT_TRUE(errors.contains(name)) << name;
      EXPECT_LT(errors.at(name), most_error) << type << " " << name;
      EXPECT_GT(errors.at(name), most_error / 4) << type << " " << name;
    }
    const auto file = open_gguf(gguf(type));
    EXPECT_EQ(file->tensors.find("token_embd.weight")->codec->name, type);
    EXPECT_EQ(file->tensors.find("output.weight")->codec->name, type == "q8_0" ? type : "q6_k");
    EXPECT_EQ(file->tensors.find("blk.0.ffn_norm.weight")->codec, &codec_f32());
    EXPECT_EQ(*file->metadata.get_int("general.file_type"), type == "q8_0" ? 7 : type == "q4_0" ? 2 : 14);
    EXPECT_EQ(*file->metadata.get_int("general.quantization_version"), 2);
  }
}

TEST_F(Quantize, RowsThatAreNoWholeBlocksFallBackAndSaySo) {
  const QuantizeReport tales = write(kModels + "tales", "q4_k", "t");
  EXPECT_THAT(tales.notes, Contains(HasSubstr("attn_q.weight: rows of 192 are not whole blocks of 256 (q4_k), so they "
                                              "are q5_0 (6 tensors)")));
  EXPECT_THAT(tales.notes,
              Contains("token_embd.weight: rows of 192 are not whole blocks of 256 (q6_k), so they are q8_0"));
  EXPECT_EQ(tales.parameters, (*Model::open(kModels + "tales"))->info().parameters);
  EXPECT_EQ(tales.file_bytes, std::filesystem::file_size(gguf("t")));
  std::vector<std::string> types;
  for (const auto& type : tales.types) types.push_back(type.name);
  EXPECT_THAT(types, ElementsAre("q5_0", "q8_0", "q4_k", "f32"));

  tiny::llama().write(folder_ / "m");  // rows of 24, 40 and 48
  for (const char* type : {"q8_0", "q4_0", "q4_k"}) {
    const QuantizeReport report = write(path("m"), type, std::string("m") + type);
    EXPECT_THAT(report.notes, Contains(AllOf(HasSubstr("ffn_down.weight: rows of 40"), HasSubstr("f16 (2 tensors)"))));
  }
}

TEST_F(Quantize, LearnedPositionsStayFloats) {
  write(kModels + "tales-gpt2", "q8_0", "g");
  const auto file = open_gguf(gguf("g"));
  EXPECT_EQ(file->tensors.find("position_embd.weight")->codec, &codec_f32());
  EXPECT_EQ(file->tensors.find("token_embd.weight")->codec->name, std::string("q8_0"));
}

TEST_F(Quantize, ThreadsDoNotShow) {
  for (const int threads : {1, 2, 5})
    ASSERT_TRUE(quantize({.model = kModels + "tales",
                          .out = folder_ / (std::to_string(threads) + ".gguf"),
                          .type = "q4_k",
                          .threads = threads}));
  EXPECT_EQ(slurp(folder_ / "2.gguf"), slurp(folder_ / "1.gguf"));
  EXPECT_EQ(slurp(folder_ / "5.gguf"), slurp(folder_ / "1.gguf"));
}

// ---- metadata -----------------------------------------------------------------------------------------------------

TEST_F(Quantize, ThreeTokensMayEndATextAndMoreAreTold) {
  tiny::Model model = tiny::llama();
  model.edit_config("\"eos_token_id\":7", "\"eos_token_id\":[7,9,11,13],\"bos_token_id\":3");
  model.write(folder_ / "m");
  EXPECT_THAT(write(path("m"), "f32", "m").notes, Contains(HasSubstr("token 13 does not end a text")));
  const auto opened = Model::open(gguf("m"));
  ASSERT_TRUE(opened) << message_of(opened);
  EXPECT_THAT((*opened)->info().eos, ElementsAre(7, 9, 11));
  EXPECT_EQ((*opened)->info().bos, 3);
}

TEST_F(Quantize, GenerationConfigSaysWhatEnds) {
  tiny::llama().write(folder_ / "m");
  put(folder_ / "m/generation_config.json", R"({"eos_token_id": [4, 5]})");
  write(path("m"), "f32", "m");
  EXPECT_THAT((*Model::open(gguf("m")))->info().eos, ElementsAre(4, 5));
}

TEST_F(Quantize, AChatTemplateComesAlong) {
  std::filesystem::copy(kModels + "tales", folder_ / "m");
  put(folder_ / "m/tokenizer_config.json", R"({"chat_template": "{{ messages }} \u00e9"})");
  write(path("m"), "bf16", "m");
  EXPECT_EQ(*open_gguf(gguf("m"))->metadata.get_string("tokenizer.chat_template"), "{{ messages }} é");
}

TEST_F(Quantize, NoTokenizerIsWrittenWhereNoneIsWanted) {
  write(kModels + "tales", "bf16", "t", false);
  write(gguf("t"), "f16", "again");
  write(kModels + "tales", "bf16", "with");
  write(gguf("with"), "f16", "without", false);
  for (const char* name : {"t", "again", "without"}) {
    const auto model = Model::open(gguf(name));
    ASSERT_TRUE(model) << message_of(model);
    EXPECT_EQ((*model)->tokenizer(), nullptr);
    EXPECT_EQ((*model)->info().eos, std::vector<int>{0});
  }
}

TEST_F(Quantize, NumbersThatGgufCannotHoldAreTold) {
  tiny::Model model = tiny::llama();
  model.edit_config("\"rope_theta\":1000.0", "\"rope_theta\":1000.1");
  model.write(folder_ / "m");
  EXPECT_THAT(write(path("m"), "f32", "m").notes,
              Contains(AllOf(HasSubstr("llama.rope.freq_base"), HasSubstr("1000.1"))));
}

// ---- what is refused ----------------------------------------------------------------------------------------------

TEST_F(Quantize, OutputsThatWouldHurtAreRefused) {
  const auto refusal = [&](const std::filesystem::path& out, const std::string& type = "q8_0", bool force = false,
                           const std::string& model = kModels + "tales") {
    return message_of(quantize({.model = model, .out = out, .type = type, .force = force}));
  };
  put(folder_ / "there.gguf", "mine");
  EXPECT_THAT(refusal(folder_ / "there.gguf"), AllOf(HasSubstr("exists"), HasSubstr("QuantizeOptions::force = true")));
  EXPECT_EQ(slurp(folder_ / "there.gguf"), "mine");
  EXPECT_EQ(refusal(folder_ / "there.gguf", "q8_0", true), "no error");
  EXPECT_THAT(refusal(folder_ / "there.gguf", "q8_0", true, path("there.gguf")), HasSubstr("the model itself"));
  EXPECT_THAT(refusal(folder_ / "x.bin"), HasSubstr(".gguf"));
  EXPECT_THAT(refusal(folder_ / "x.gguf", "q3_x"), AllOf(HasSubstr("q3_k"), HasSubstr("q4_k")));
  EXPECT_THAT(refusal(folder_ / "x.gguf", "q5_2"), HasSubstr("q5_0"));
  EXPECT_THAT(refusal(folder_ / "no/x.gguf"), HasSubstr("No such file"));
  EXPECT_THAT(refusal(folder_ / "x.gguf", "f16", false, path("nothing")), HasSubstr("no such model"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.gguf"));
}

TEST_F(Quantize, ModelsThatWouldLoseTwiceAreRefused) {
  write(kModels + "tales", "q8_0", "q");
  const auto again = quantize({.model = gguf("q"), .out = folder_ / "qq.gguf", .type = "q4_0"});
  EXPECT_THAT(message_of(again), AllOf(HasSubstr("Q8_0"), HasSubstr("already")));
}

TEST_F(Quantize, ValuesThatAreNotFiniteAreRefusedForIntegers) {
  ASSERT_TRUE(synthesize({.shape = "tiny", .out = folder_ / "m", .dtype = "bf16"}));
  const auto files = read_model_files(path("m"));
  std::string bytes = slurp(folder_ / "m/model.safetensors");
  const TensorInfo* up = files->tensors.find("model.layers.1.mlp.up_proj.weight");
  ASSERT_NE(up, nullptr);
  bytes.replace(up->offset + up->bytes - 2, 2, "\x80\x7f");  // its last value becomes infinite
  put(folder_ / "m/model.safetensors", bytes);
  EXPECT_THAT(message_of(quantize({.model = path("m"), .out = folder_ / "x.gguf", .type = "q8_0"})),
              AllOf(HasSubstr("blk.1.ffn_up.weight"), HasSubstr("not finite")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.gguf"));
  EXPECT_THAT(write(path("m"), "f16", "y").notes, Contains("blk.1.ffn_up.weight: numbers outside the range of f16: 1"));
  EXPECT_THAT(write(path("m"), "bf16", "z").notes, IsEmpty());
}

TEST_F(Quantize, RowOrdersWithoutAWordAreRefused) {
  put(folder_ / "c.json", R"({"model_type": "qwen2", "hidden_size": 48, "intermediate_size": 80,
"num_hidden_layers": 1, "num_attention_heads": 6, "num_key_value_heads": 6, "hidden_act": "silu", "vocab_size": 50,
"rope_interleaved": true})");
  ASSERT_TRUE(synthesize({.shape = path("c.json"), .out = folder_ / "m", .dtype = "f32"}));
  EXPECT_THAT(message_of(quantize({.model = path("m"), .out = folder_ / "x.gguf", .type = "f16"})), HasSubstr("order"));
}

TEST_F(Quantize, TokenizersWithoutAWordAreRefused) {
  std::filesystem::copy(kModels + "tales", folder_ / "m");
  std::string json = slurp(folder_ / "m/tokenizer.json");
  const std::string off = "\"add_prefix_space\": false";
  ASSERT_NE(json.find(off), std::string::npos);
  for (size_t at = 0; (at = json.find(off)) != std::string::npos;)
    json.replace(at, off.size(), "\"add_prefix_space\": true");
  put(folder_ / "m/tokenizer.json", json);
  EXPECT_THAT(message_of(quantize({.model = path("m"), .out = folder_ / "x.gguf", .type = "f16"})),
              AllOf(HasSubstr("tokenizer.json"), HasSubstr("space before each text"),
                    HasSubstr("QuantizeOptions::with_tokenizer = false")));
  EXPECT_TRUE(quantize(
      {.model = path("m"), .out = folder_ / "x.gguf", .type = "f16", .tokenizer = kModels + "tales/tokenizer.json"}));
}

}  // namespace
}  // namespace kvasir
