// Configurations, tokenizer and weights of synthetic models. Uses only integers, IEEE products and square roots, so
// that every machine writes the same file.
#include "lab/synth_content.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/philox.h"
#include "format/config_view.h"
#include "lab/synth.h"
#include "token/byte_map.h"

namespace kvasir {
namespace {

struct Shape {
  std::string_view name, config;
};

// The numbers of the models' own config.json files; the tiny ones are made for tests.
constexpr std::array kShapes{
    Shape{"gpt2", R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "activation_function": "gelu_new",
      "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "n_ctx": 1024, "layer_norm_epsilon": 1e-05,
      "vocab_size": 50257})"},
    Shape{"smollm2-135m", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu",
      "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
      "num_key_value_heads": 3, "max_position_embeddings": 8192, "rms_norm_eps": 1e-05, "rope_theta": 100000,
      "tie_word_embeddings": true, "attention_bias": false, "mlp_bias": false, "vocab_size": 49152})"},
    Shape{"llama-1b", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu",
      "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
      "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05,
      "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
      "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}, "tie_word_embeddings": true,
      "attention_bias": false, "mlp_bias": false, "vocab_size": 128256})"},
    Shape{"tiny", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu",
      "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 256, "rms_norm_eps": 1e-05,
      "rope_theta": 10000.0, "tie_word_embeddings": true, "attention_bias": false, "mlp_bias": false,
      "vocab_size": 512})"},
    // Every row is a multiple of 256, the block of the K types.
    Shape{"tiny-k", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu",
      "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 4,
      "num_key_value_heads": 2, "head_dim": 64, "max_position_embeddings": 512, "rms_norm_eps": 1e-05,
      "rope_theta": 10000.0, "tie_word_embeddings": true, "attention_bias": false, "mlp_bias": false,
      "vocab_size": 512})"},
    Shape{"tiny-gpt2", R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"],
      "activation_function": "gelu_new", "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 256, "n_ctx": 256,
      "layer_norm_epsilon": 1e-05, "vocab_size": 512})"},
};

Result<ConfigView> read_shape(const std::string& shape) {
  for (const Shape& known : kShapes)
    if (known.name == shape) return ConfigView::parse(known.config, shape);
  std::error_code ec;
  if (!std::filesystem::exists(shape, ec))
    return fail(Error::not_found, "no such shape", shape,
                fmt::format("{}, or a config.json", fmt::join(synth_shape_names(), ", ")));
  return ConfigView::read(shape);
}

}  // namespace

std::vector<std::string_view> synth_shape_names() {
  std::vector<std::string_view> names;
  for (const Shape& shape : kShapes) names.push_back(shape.name);
  return names;
}

Result<std::string> synth_config_json(const std::string& shape, const std::string& torch_dtype) {
  KVASIR_TRY(const ConfigView file, read_shape(shape));
  const ConfigView view = text_config(file);
  try {
    auto json = nlohmann::ordered_json::parse(view.json_text());
    for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id", "quantization_config"}) json.erase(key);
    json["torch_dtype"] = torch_dtype;
    return json.dump(2) + "\n";
  } catch (const std::exception& e) {
    return fail(Error::no_room, e.what(), shape);
  }
}

std::string synth_tokenizer_json(int vocab) {
  const std::string byte_level =
      R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})";
  std::string json = fmt::format(R"({{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
"normalizer": null, "pre_tokenizer": {0}, "post_processor": {0}, "decoder": {0},
"model": {{"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
"end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "merges": [], "vocab": {{
)",
                                 byte_level);
  for (int id = 0; id < vocab; ++id) {
    const char byte = static_cast<char>(id);
    const std::string piece = id < 256 ? spell_bytes({&byte, 1}) : spell_bytes(fmt::format(" {}", id));
    json += fmt::format("{}: {}{}\n", nlohmann::json(piece).dump(), id, id + 1 < vocab ? "," : "");
  }
  return json + "}}}\n";
}

SynthValues synth_values(const TensorSpec& spec, bool embedding) {
  // The triangular distribution over -1..1 has the standard deviation 1 / sqrt(6).
  const auto with_deviation = [](double deviation) {
    return SynthValues{0.0f, static_cast<float>(deviation * std::sqrt(6.0))};
  };
  if (spec.shape.size() == 1) {
    if (spec.name.ends_with(".bias")) return with_deviation(0.02);
    return {1.0f, 0.1f};
  }
  const auto inputs = static_cast<double>(spec.shape[spec.conv1d ? 0 : 1]);
  return with_deviation((embedding ? 1.0 : 0.9) / std::sqrt(inputs));
}

void synth_fill(uint64_t seed, uint32_t tensor, uint64_t first, SynthValues values, std::span<float> out) {
  constexpr uint32_t kStream = 0x53594E54;  // separates these random numbers from a sampler's with the same seed
  const float unit = values.spread * 0x1p-16f;
  for (size_t i = 0; i < out.size(); i += 4) {
    const uint64_t block = (first + i) / 4;
    const auto bits =
        philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), tensor, kStream}, seed);
    for (size_t j = 0; j < std::min<size_t>(4, out.size() - i); ++j) {
      const int sum = static_cast<int>(bits[j] & 0xffffu) + static_cast<int>(bits[j] >> 16) - 0xffff;
      out[i + j] = values.center + unit * static_cast<float>(sum);
    }
  }
}

}  // namespace kvasir
