// Small random models that tests write to a folder of their own: a Llama and a GPT-2, every weight a different value.
// Test code only.
#pragma once

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "format/safetensors.h"
#include "tests/support/temp_files.h"

namespace kvasir::tiny {

namespace fs = std::filesystem;
using format_test::message_of;
using format_test::outside_data;
using format_test::put;
using format_test::slurp;
using format_test::TempFolder;

/// Sets an environment variable for the lifetime of this object.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name); old != nullptr) old_ = old, had_ = true;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedEnv() {
    if (had_)
      setenv(name_, old_.c_str(), 1);
    else
      unsetenv(name_);
  }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;

 private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

/// A value in [-1, 1), different for every index.
inline float noise(uint64_t id) {
  uint64_t x = (id + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return static_cast<float>(static_cast<int32_t>((x ^ (x >> 31)) >> 40) - (1 << 23)) * 0x1p-23f;
}

struct Tensor {
  TensorDecl decl;
  std::vector<float> values;
};

/// A model before it is written: tests remove tensors, reshape them or spoil a value.
struct Model {
  std::string config;
  std::vector<Tensor> tensors;

  void add(const std::string& name, const Codec& codec, std::vector<int64_t> shape, float scale, float center = 0) {
    size_t count = 1;
    for (int64_t dim : shape) count *= static_cast<size_t>(dim);
    Tensor tensor{{name, &codec, std::move(shape)}, {}};
    for (size_t i = 0; i < count; ++i) tensor.values.push_back(center + scale * noise(i + 1000003 * tensors.size()));
    tensors.push_back(std::move(tensor));
  }
  Tensor& at(std::string_view name) {
    for (Tensor& tensor : tensors)
      if (tensor.decl.name == name) return tensor;
    ADD_FAILURE() << "no tensor " << name;
    return tensors.front();
  }
  void erase(std::string_view name) {
    std::erase_if(tensors, [&](const Tensor& tensor) { return tensor.decl.name == name; });
  }
  /// Replaces the first `from` of the config.
  void edit_config(std::string_view from, std::string_view to) {
    const size_t at = config.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    config.replace(at, from.size(), to);
  }

  static void write_file(const fs::path& path, const std::vector<Tensor>& tensors) {
    std::vector<TensorDecl> decls;
    for (const Tensor& tensor : tensors) decls.push_back(tensor.decl);
    SafetensorsWriter writer;
    ASSERT_TRUE(writer.create(path, decls));
    for (const Tensor& tensor : tensors) {
      const int64_t n = static_cast<int64_t>(tensor.values.size());
      std::vector<std::byte> bytes(tensor.decl.codec->row_bytes(n));
      tensor.decl.codec->encode(tensor.values.data(), bytes.data(), n);
      ASSERT_TRUE(writer.write(bytes));
    }
    ASSERT_TRUE(writer.finish());
  }
  void write(const fs::path& folder) const {
    fs::create_directories(folder);
    put(folder / "config.json", config);
    write_file(folder / "model.safetensors", tensors);
  }
  /// The same model in two files; the second holds its tensors in reverse order.
  void write_sharded(const fs::path& folder) const {
    fs::create_directories(folder);
    put(folder / "config.json", config);
    const auto half = tensors.begin() + static_cast<std::ptrdiff_t>(tensors.size() / 2);
    write_file(folder / "a.safetensors", {tensors.begin(), half});
    write_file(folder / "b.safetensors", {tensors.rbegin(), std::make_reverse_iterator(half)});
    std::string map;
    for (auto it = tensors.begin(); it != tensors.end(); ++it)
      map += (map.empty() ? "\"" : ",\"") + it->decl.name + "\":\"" + (it < half ? "a" : "b") + ".safetensors\"";
    put(folder / "model.safetensors.index.json", "{\"metadata\":{},\"weight_map\":{" + map + "}}");
  }
};

/// 2 layers, 24 channels, 6 heads that share 2 KV heads of 8, vocabulary of 50, context of 160.
inline Model llama(const Codec& codec = codec_f32(), bool biases = false) {
  Model m;
  m.config = R"({"model_type":"llama","hidden_size":24,"num_hidden_layers":2,"num_attention_heads":6,"head_dim":8,
"num_key_value_heads":2,"intermediate_size":40,"vocab_size":50,"max_position_embeddings":160,"rms_norm_eps":1e-5,
"rope_theta":1000.0,"tie_word_embeddings":false,"eos_token_id":7,"attention_bias":)" +
             std::string(biases ? "true" : "false") + R"(,"mlp_bias":)" + (biases ? "true" : "false") + "}";
  m.add("model.embed_tokens.weight", codec, {50, 24}, 1.0f);
  for (const std::string& p : {std::string("model.layers.0."), std::string("model.layers.1.")}) {
    m.add(p + "input_layernorm.weight", codec, {24}, 0.3f, 1.0f);
    m.add(p + "self_attn.q_proj.weight", codec, {48, 24}, 0.5f);
    m.add(p + "self_attn.k_proj.weight", codec, {16, 24}, 0.5f);
    m.add(p + "self_attn.v_proj.weight", codec, {16, 24}, 0.4f);
    m.add(p + "self_attn.o_proj.weight", codec, {24, 48}, 0.3f);
    m.add(p + "post_attention_layernorm.weight", codec, {24}, 0.3f, 1.0f);
    m.add(p + "mlp.gate_proj.weight", codec, {40, 24}, 0.4f);
    m.add(p + "mlp.up_proj.weight", codec, {40, 24}, 0.4f);
    m.add(p + "mlp.down_proj.weight", codec, {24, 40}, 0.3f);
    if (!biases) continue;
    m.add(p + "self_attn.q_proj.bias", codec, {48}, 0.2f);
    m.add(p + "self_attn.k_proj.bias", codec, {16}, 0.2f);
    m.add(p + "self_attn.v_proj.bias", codec, {16}, 0.2f);
    m.add(p + "self_attn.o_proj.bias", codec, {24}, 0.2f);
    m.add(p + "mlp.gate_proj.bias", codec, {40}, 0.2f);
    m.add(p + "mlp.up_proj.bias", codec, {40}, 0.2f);
    m.add(p + "mlp.down_proj.bias", codec, {24}, 0.2f);
  }
  m.add("model.norm.weight", codec, {24}, 0.3f, 1.0f);
  m.add("lm_head.weight", codec, {50, 24}, 0.6f);
  return m;
}

/// 2 layers, 24 channels in 3 heads, vocabulary of 50, context of 160, tied head.
inline Model gpt2(const Codec& codec = codec_f32()) {
  Model m;
  m.config = R"({"model_type":"gpt2","n_embd":24,"n_layer":2,"n_head":3,"n_inner":40,"vocab_size":50,"n_positions":160,
"eos_token_id":7})";
  m.add("transformer.wte.weight", codec, {50, 24}, 0.8f);
  m.add("transformer.wpe.weight", codec, {160, 24}, 0.5f);
  for (const std::string& p : {std::string("transformer.h.0."), std::string("transformer.h.1.")}) {
    m.add(p + "ln_1.weight", codec, {24}, 0.3f, 1.0f);
    m.add(p + "ln_1.bias", codec, {24}, 0.2f);
    m.add(p + "attn.c_attn.weight", codec, {24, 72}, 0.5f);
    m.add(p + "attn.c_attn.bias", codec, {72}, 0.2f);
    m.add(p + "attn.c_proj.weight", codec, {24, 24}, 0.3f);
    m.add(p + "attn.c_proj.bias", codec, {24}, 0.2f);
    m.add(p + "ln_2.weight", codec, {24}, 0.3f, 1.0f);
    m.add(p + "ln_2.bias", codec, {24}, 0.2f);
    m.add(p + "mlp.c_fc.weight", codec, {24, 40}, 0.4f);
    m.add(p + "mlp.c_fc.bias", codec, {40}, 0.2f);
    m.add(p + "mlp.c_proj.weight", codec, {40, 24}, 0.3f);
    m.add(p + "mlp.c_proj.bias", codec, {24}, 0.2f);
  }
  m.add("transformer.ln_f.weight", codec, {24}, 0.3f, 1.0f);
  m.add("transformer.ln_f.bias", codec, {24}, 0.2f);
  return m;
}

/// n ids of the tiny models' vocabulary, a different sequence for every seed.
inline std::vector<int> ids(int n, uint64_t seed = 0, int vocab = 50) {
  std::vector<int> out;
  for (int i = 0; i < n; ++i)
    out.push_back(
        static_cast<int>((noise(static_cast<uint64_t>(i) + 7919 * seed) + 1.0f) * 0.5f * static_cast<float>(vocab)));
  return out;
}

/// Succeeds if the bits of both are the same.
inline testing::AssertionResult same_bits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " values, " << b.size() << " expected";
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0)
      return testing::AssertionFailure() << "value " << i << " of " << a.size() << ": " << a[i] << " is not " << b[i];
  return testing::AssertionSuccess();
}

}  // namespace kvasir::tiny
