// Shared with Gemma 3: the scale of scores and the names of the norms.
#pragma once

#include "arch/families/llama.h"

namespace kvasir::gemma2 {

/// "query_pre_attn_scalar"^-0.5. GGUF files lack it: it is 1 / sqrt(head_dim), but for the 27B, known by its layers,
/// where hidden / heads stands in the place of head_dim.
Result<float> parse_score_scale(const ConfigView& view, const ModelConfig& c, int layers_of_27b);

inline constexpr llama::NormNames kNorms{.before_mlp = "pre_feedforward_layernorm",
                                         .after_attention = "post_attention_layernorm",
                                         .after_mlp = "post_feedforward_layernorm",
                                         .less_one = true};
inline constexpr GgufName kGgufNorms[] = {{"post_attention_norm", "post_attention_layernorm"},
                                          {"ffn_norm", "pre_feedforward_layernorm"},
                                          {"post_ffw_norm", "post_feedforward_layernorm"}};
/// Llama's tensors with layers made by `layer`; the final norm is stored less one too.
TensorTable tensor_table(const ModelConfig& c, std::vector<TensorSpec> (*layer)(const ModelConfig& c, int l));

}  // namespace kvasir::gemma2
