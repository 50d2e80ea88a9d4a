// llama2.c files built here field by field, in the order of its export.py, and the trained 260K model in both versions.
#include "format/llama2c.h"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

using namespace format_test;
using testing::ElementsAre;
using testing::HasSubstr;

struct Fields {
  int32_t dim = 8, hidden = 6, layers = 2, heads = 4, kv_heads = 2, vocab = 5, max_seq = 3;
  std::vector<int32_t> list() const { return {dim, hidden, layers, heads, kv_heads, vocab, max_seq}; }
};

/// Floats 0, 1, 2, ... so that the first value of a tensor is its place in the file.
std::string counted(size_t floats) {
  std::vector<float> values(floats);
  for (size_t i = 0; i < floats; ++i) values[i] = static_cast<float>(i);
  return raw(values);
}

constexpr size_t kLayerFloats = 8 + 64 + 32 + 32 + 64 + 8 + 3 * 48;  // norm, q, k, v, o, norm, three of the MLP
constexpr size_t kTiedFloats = 40 + 2 * kLayerFloats + 8;

std::string legacy(const Fields& f, size_t floats) { return raw(f.list()) + counted(floats); }

std::string v1(const Fields& f, uint8_t shared, size_t floats, int32_t version = 1) {
  std::string header = raw(std::vector<int32_t>{0x616b3432, version}) + raw(f.list()) + static_cast<char>(shared);
  header.resize(256, '\0');
  return header + counted(floats);
}

class Llama2c : public testing::Test {
 protected:
  Result<Llama2cFile> open(const std::string& bytes) {
    put(folder_ / "m.bin", bytes);
    return open_llama2c(folder_ / "m.bin");
  }
  std::string error(const std::string& bytes) { return message_of(open(bytes)); }

  /// The tensor's first value.
  static float first(const Llama2cFile& file, const std::string& name) {
    const TensorInfo* tensor = file.tensors.find(name);
    if (tensor == nullptr) return -1;
    float value;
    std::memcpy(&value, file.tensors.data(*tensor).data(), sizeof value);
    return value;
  }
  static std::vector<int64_t> shape(const Llama2cFile& file, const std::string& name) {
    const TensorInfo* tensor = file.tensors.find(name);
    return tensor == nullptr ? std::vector<int64_t>{-1} : tensor->shape;
  }

  TempFolder folder_;
};

TEST_F(Llama2c, LegacyTiedIsLaidOutAsExported) {
  const auto file = open(legacy({}, kTiedFloats + 3 * 2));
  ASSERT_TRUE(file) << message_of(file);
  EXPECT_EQ(file->tensors.tensors.size(), 2u + 2 * 9);
  EXPECT_EQ(first(*file, "model.embed_tokens.weight"), 0);
  EXPECT_EQ(first(*file, "model.layers.0.input_layernorm.weight"), 40);
  EXPECT_EQ(first(*file, "model.layers.1.input_layernorm.weight"), 48);
  EXPECT_EQ(first(*file, "model.layers.0.self_attn.q_proj.weight"), 56);
  EXPECT_EQ(first(*file, "model.layers.1.self_attn.q_proj.weight"), 120);
  EXPECT_EQ(first(*file, "model.layers.1.self_attn.k_proj.weight"), 184 + 32);
  EXPECT_EQ(first(*file, "model.layers.1.self_attn.v_proj.weight"), 248 + 32);
  EXPECT_EQ(first(*file, "model.layers.1.self_attn.o_proj.weight"), 312 + 64);
  EXPECT_EQ(first(*file, "model.layers.0.post_attention_layernorm.weight"), 440);
  EXPECT_EQ(first(*file, "model.layers.0.mlp.gate_proj.weight"), 456);
  EXPECT_EQ(first(*file, "model.layers.0.mlp.down_proj.weight"), 552);
  EXPECT_EQ(first(*file, "model.layers.1.mlp.up_proj.weight"), 648 + 48);
  EXPECT_EQ(first(*file, "model.norm.weight"), 744);
  EXPECT_EQ(file->tensors.find("lm_head.weight"), nullptr);
  EXPECT_THAT(shape(*file, "model.layers.0.self_attn.k_proj.weight"), ElementsAre(4, 8));
  EXPECT_THAT(shape(*file, "model.layers.0.mlp.down_proj.weight"), ElementsAre(8, 6));
  EXPECT_THAT(shape(*file, "model.layers.0.mlp.up_proj.weight"), ElementsAre(6, 8));
}

TEST_F(Llama2c, LegacyUntiedHasItsHeadAfterTheTables) {
  const auto file = open(legacy({.vocab = -5}, kTiedFloats + 3 * 2 + 40));
  ASSERT_TRUE(file) << message_of(file);
  EXPECT_EQ(first(*file, "lm_head.weight"), 752 + 6);
  EXPECT_THAT(shape(*file, "lm_head.weight"), ElementsAre(5, 8));
  EXPECT_EQ(*file->config.get_int("vocab_size", 1, 99), 5);
  EXPECT_FALSE(*file->config.get_bool_or("tie_word_embeddings", true));
}

TEST_F(Llama2c, Version1IsLaidOutAsExported) {
  const auto file = open(v1({}, 0, kTiedFloats + 40));
  ASSERT_TRUE(file) << message_of(file);
  EXPECT_EQ(first(*file, "model.layers.1.input_layernorm.weight"), 8);
  EXPECT_EQ(first(*file, "model.layers.0.post_attention_layernorm.weight"), 16);
  EXPECT_EQ(first(*file, "model.norm.weight"), 32);
  EXPECT_EQ(first(*file, "model.embed_tokens.weight"), 40);
  EXPECT_EQ(first(*file, "model.layers.0.self_attn.q_proj.weight"), 80);
  EXPECT_EQ(first(*file, "model.layers.1.mlp.up_proj.weight"), 752 - 48);
  EXPECT_EQ(first(*file, "lm_head.weight"), 752);
  EXPECT_TRUE(open(v1({}, 1, kTiedFloats)));
}

TEST_F(Llama2c, ConfigHasHuggingFaceKeys) {
  const auto file = open(v1({}, 1, kTiedFloats));
  ASSERT_TRUE(file) << message_of(file);
  EXPECT_EQ(file->config.json_text(),
            R"({"bos_token_id":1,"eos_token_id":[1,2],"hidden_size":8,"intermediate_size":6,)"
            R"("max_position_embeddings":3,"model_type":"llama","num_attention_heads":4,"num_hidden_layers":2,)"
            R"("num_key_value_heads":2,"rms_norm_eps":1e-05,"rope_interleaved":true,"rope_theta":10000.0,)"
            R"("tie_word_embeddings":true,"vocab_size":5})");
}

TEST_F(Llama2c, SizeMustBeExact) {
  const std::string old_file = legacy({}, kTiedFloats + 6), new_file = v1({}, 1, kTiedFloats);
  for (const std::string& file : {old_file, new_file}) {
    ASSERT_EQ(error(file), "no error");
    EXPECT_THAT(error(file + "x"), HasSubstr("but the file has"));
  }
  for (size_t n = 0; n < new_file.size(); n += n < 48 ? 1 : 211) EXPECT_NE(error(new_file.substr(0, n)), "no error");
  for (size_t n = 0; n < old_file.size(); n += n < 36 ? 1 : 211) EXPECT_NE(error(old_file.substr(0, n)), "no error");
}

TEST_F(Llama2c, EveryHeaderFieldIsChecked) {
  const auto refused = [&](const Fields& f) { return error(legacy(f, 4)); };
  for (const int32_t bad : {0, -1, INT32_MIN, INT32_MAX}) {
    EXPECT_THAT(refused({.dim = bad}), HasSubstr(fmt::format("dim is {}", bad)));
    EXPECT_THAT(refused({.hidden = bad}), HasSubstr(fmt::format("hidden_dim is {}", bad)));
    EXPECT_THAT(refused({.layers = bad}), HasSubstr(fmt::format("n_layers is {}", bad)));
    EXPECT_THAT(refused({.heads = bad}), HasSubstr(fmt::format("n_heads is {}", bad)));
    EXPECT_THAT(refused({.kv_heads = bad}), HasSubstr(fmt::format("n_kv_heads is {}", bad)));
    EXPECT_THAT(refused({.max_seq = bad}), HasSubstr(fmt::format("max_seq_len is {}", bad)));
  }
  EXPECT_THAT(refused({.vocab = 0}), HasSubstr("vocab_size is 0"));
  EXPECT_THAT(refused({.vocab = INT32_MIN}), HasSubstr("vocab_size is 2147483648"));
  EXPECT_THAT(refused({.heads = 3, .kv_heads = 1}), HasSubstr("does not split into 3 heads"));
  EXPECT_THAT(refused({.heads = 8}), HasSubstr("even size"));
  EXPECT_THAT(refused({.kv_heads = 3}), HasSubstr("4 heads do not split over 3"));
  EXPECT_THAT(refused({.dim = 1 << 17, .hidden = 1 << 20, .layers = 4096, .vocab = 1 << 24, .max_seq = 1 << 24}),
              HasSubstr("the header asks for"));
}

TEST_F(Llama2c, OtherVersionsAreRefusedByName) {
  EXPECT_THAT(error(v1({}, 1, kTiedFloats, 2)), HasSubstr("int8 llama2.c files are not supported"));
  EXPECT_THAT(error(v1({}, 1, kTiedFloats, 3)), HasSubstr("version 3 is unknown"));
  EXPECT_THAT(error(v1({}, 2, kTiedFloats)), HasSubstr("shared_classifier is 2"));
}

TEST_F(Llama2c, BothVersionsOfATrainedModelHoldTheSame) {
  const fs::path data = outside_data();
  if (data.empty()) GTEST_SKIP() << "outside data folder is absent";
  const fs::path folder = data / "models/stories260K";
  const auto v0 = open_llama2c(folder / "stories260K.bin"), one = open_llama2c(folder / "stories260K_v1.bin");
  ASSERT_TRUE(v0 && one) << message_of(v0) << message_of(one);
  EXPECT_EQ(v0->config.json_text(), one->config.json_text());
  EXPECT_EQ(*v0->config.get_int("num_key_value_heads", 1, 99), 4);
  ASSERT_EQ(v0->tensors.tensors.size(), 2u + 5 * 9);
  for (const TensorInfo& tensor : v0->tensors.tensors) {
    const TensorInfo* other = one->tensors.find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(tensor.shape, other->shape);
    const auto a = v0->tensors.data(tensor), b = one->tensors.data(*other);
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size()), 0) << tensor.name;
  }
  EXPECT_THAT(message_of(open_llama2c(folder / "stories260K_q8.bin")), HasSubstr("int8 llama2.c"));
  EXPECT_FALSE(open_llama2c(folder / "tok512.bin"));
}

}  // namespace
}  // namespace kvasir
