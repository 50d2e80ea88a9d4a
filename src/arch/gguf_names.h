// How GGUF files name what a family reads: the keys of its configuration and its tensors. The names here are those of
// Llama and most of its relatives; a family lists its own where they differ.
// Source: ggml-org/ggml docs/gguf.md and llama.cpp's gguf-py/gguf/constants.py.
#pragma once

#include <span>
#include <string_view>

namespace kvasir {

struct GgufName {
  std::string_view gguf, hf;
};

inline constexpr GgufName kGgufDecoderKeys[] = {
    {"block_count", "num_hidden_layers"},
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
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
  std::span<const GgufName> keys = kGgufDecoderKeys;        ///< metadata after "ARCH." to config.json
  std::span<const GgufName> tensors = kGgufDecoderTensors;  ///< without ".weight", ".bias"
  std::span<const GgufName> layer_tensors = kGgufDecoderLayerTensors;  ///< after "blk.N."
  std::string_view layers = "model.layers.";                           ///< what stands for "blk."
  bool paired_qk = false;   ///< rows of q and k hold their rotation pairs side by side
  bool transposed = false;  ///< matrices of layers are the transposes of Hugging Face's
};

}  // namespace kvasir
