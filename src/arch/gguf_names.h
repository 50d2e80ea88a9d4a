// How GGUF files name what a family reads: the keys of its configuration and its tensors. The names here are those of
// Llama and most of its relatives; a family lists its own where they differ.
// Source: ggml-org/ggml docs/gguf.md and llama.cpp's gguf-py/gguf/constants.py.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "arch/config.h"

namespace kvasir {

struct GgufName {
  std::string_view gguf, hf;
};

/// A key, and the number that it is. Without one the key needs more than a number, and its readers and writers know it.
struct GgufKey {
  std::string_view gguf, hf;
  int ModelConfig::*integer = nullptr;
  float ModelConfig::*real = nullptr;
};

inline constexpr GgufKey kGgufDecoderKeys[] = {
    {"block_count", "num_hidden_layers", &ModelConfig::layers},
    {"context_length", "max_position_embeddings", &ModelConfig::max_ctx},
    {"embedding_length", "hidden_size", &ModelConfig::hidden},
    {"feed_forward_length", "intermediate_size", &ModelConfig::ffn},
    {"attention.head_count", "num_attention_heads", &ModelConfig::heads},
    {"attention.head_count_kv", "num_key_value_heads", &ModelConfig::kv_heads},
    {"attention.key_length", "head_dim", &ModelConfig::head_dim},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", nullptr, &ModelConfig::norm_eps},
    {"attention.sliding_window", "sliding_window"},
    {"rope.freq_base", "rope_theta"},
};
inline constexpr GgufName kGgufDecoderTensors[] = {
    {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
inline constexpr GgufName kGgufDecoderLayerTensors[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};

struct GgufNames {
  std::string_view arch;                                    ///< "general.architecture"; empty: not in GGUF files
  std::span<const GgufKey> keys = kGgufDecoderKeys;         ///< metadata after "ARCH." to config.json
  std::span<const GgufName> tensors = kGgufDecoderTensors;  ///< without ".weight", ".bias"
  std::span<const GgufName> layer_tensors = kGgufDecoderLayerTensors;  ///< after "blk.N."
  std::string_view layers = "model.layers.";                           ///< what stands for "blk."
  std::span<const std::string_view> paired{};  ///< layer tensors whose rows hold their rotation pairs side by side
  bool transposed = false;                     ///< matrices of layers are the transposes of Hugging Face's
  /// Added tokens of a SentencePiece vocabulary swallow the white space after them, but for these. Absent: none does.
  /// GGUF has no key for it.
  std::optional<std::span<const std::string_view>> rstrip_but{};

  /// By the name of a layer's tensor, "attn_q".
  bool is_paired(std::string_view layer_tensor) const {
    return std::find(paired.begin(), paired.end(), layer_tensor) != paired.end();
  }
};

}  // namespace kvasir
