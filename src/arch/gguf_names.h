// GGUF's names for the configuration keys and tensors that a family reads. The lists here fit Llama and most of its
// relatives; a family lists its own where they differ.
// Source: ggml-org/ggml docs/gguf.md and llama.cpp's gguf-py/gguf/constants.py.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "arch/config.h"

namespace kvasir {

struct GgufName {
  std::string_view gguf, hf;
};

/// A key, and the config number that it sets. A key with neither member is more than a plain number; code reads and
/// writes it.
struct GgufKey {
  std::string_view gguf, hf;
  int ModelConfig::*integer = nullptr;
  float ModelConfig::*real = nullptr;
};

inline constexpr auto kGgufDecoderKeys = std::to_array<GgufKey>({
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
});
/// The same for models with LayerNorm.
inline constexpr auto kGgufLayerNormKeys = [] {
  auto keys = kGgufDecoderKeys;
  for (GgufKey& key : keys)
    if (key.hf == "rms_norm_eps") key.gguf = "attention.layer_norm_epsilon", key.hf = "layer_norm_eps";
  return keys;
}();
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

/// 1 softmax, 2 sigmoid, 3 softmax of the chosen. The family fixes its gate; this key only confirms it.
inline constexpr const char* kGgufGate = "gguf.gate";

/// Keys of experts, looked up after the family's own.
inline constexpr GgufKey kGgufExpertKeys[] = {{"expert_count", "num_experts"},
                                              {"expert_used_count", "num_experts_per_tok"},
                                              {"expert_feed_forward_length", "moe_intermediate_size"},
                                              {"expert_shared_count", "n_shared_experts"},
                                              {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
                                              {"leading_dense_block_count", "first_k_dense_replace"},
                                              {"expert_weights_norm", "norm_topk_prob"},
                                              {"expert_weights_scale", "routed_scaling_factor"},
                                              {"expert_gating_func", kGgufGate},
                                              {"expert_group_count", "n_group"},
                                              {"expert_group_used_count", "topk_group"},
                                              {"interleave_moe_layer_step", "moe_layer_interval"}};

/// Tensors of experts. A '*' stands for the expert's number: the file has one tensor for all experts, or one per expert
/// with the number in its own name.
inline constexpr GgufName kGgufExpertTensors[] = {
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_exps", "mlp.experts.*.gate_proj"},
    {"ffn_up_exps", "mlp.experts.*.up_proj"},
    {"ffn_down_exps", "mlp.experts.*.down_proj"},
    {"ffn_gate.*", "mlp.experts.*.gate_proj"},
    {"ffn_up.*", "mlp.experts.*.up_proj"},
    {"ffn_down.*", "mlp.experts.*.down_proj"},
    {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
    {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
    {"ffn_down_shexp", "mlp.shared_experts.down_proj"},
    {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
};

struct GgufNames {
  std::string_view arch;                                    ///< "general.architecture"; empty: not in GGUF files
  std::span<const std::string_view> other_archs = {};       ///< other values of it that mean this family
  std::span<const GgufKey> keys = kGgufDecoderKeys;         ///< metadata key after "ARCH." -> config.json key
  std::span<const GgufKey> more_keys = {};                  ///< further keys, which a file may leave out
  std::span<const GgufName> tensors = kGgufDecoderTensors;  ///< without ".weight", ".bias"
  std::span<const GgufName> layer_tensors = kGgufDecoderLayerTensors;  ///< after "blk.N."
  std::span<const GgufName> more_layer_tensors = {};                   ///< looked up before layer_tensors
  bool experts = false;                        ///< also use kGgufExpertKeys and kGgufExpertTensors
  std::string_view layers = "model.layers.";   ///< replaces "blk."
  std::span<const std::string_view> paired{};  ///< layer tensors whose rows hold rotation pairs side by side
  bool transposed = false;                     ///< layer matrices are the transposes of Hugging Face's
  /// Added tokens of a SentencePiece vocabulary that do not strip the white space after them; all others do. Absent:
  /// none strips. GGUF has no key for this.
  std::optional<std::span<const std::string_view>> rstrip_but{};

  bool has_arch(std::string_view name) const {
    return !arch.empty() && (name == arch || std::ranges::find(other_archs, name) != other_archs.end());
  }
  /// `layer_tensor` is its name in a layer, for example "attn_q".
  bool is_paired(std::string_view layer_tensor) const {
    return std::find(paired.begin(), paired.end(), layer_tensor) != paired.end();
  }
};

}  // namespace kvasir
