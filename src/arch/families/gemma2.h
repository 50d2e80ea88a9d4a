// Shared by Gemma 2 and Gemma 3: the scale of scores, the names of the norms, the tensor table.
#pragma once

#include "arch/families/llama.h"

namespace kvasir::gemma2 {

/// "query_pre_attn_scalar"^-0.5. GGUF files lack the key: then it is 1 / sqrt(head_dim), except in the 27B (recognised
/// by its number of layers), where it is 1 / sqrt(hidden / heads).
Result<float> parse_score_scale(const ConfigView& view, const ModelConfig& c, int layers_of_27b);

inline constexpr llama::NormNames kNorms{.before_mlp = "pre_feedforward_layernorm",
                                         .after_attention = "post_attention_layernorm",
                                         .after_mlp = "post_feedforward_layernorm",
                                         .less_one = true};
inline constexpr GgufName kGgufNorms[] = {{"post_attention_norm", "post_attention_layernorm"},
                                          {"ffn_norm", "pre_feedforward_layernorm"},
                                          {"post_ffw_norm", "post_feedforward_layernorm"}};
/// Llama's tensors with layers made by `layer`; the final norm's gain is stored minus one too.
TensorTable tensor_table(const ModelConfig& c, std::vector<TensorSpec> (*layer)(const ModelConfig& c, int l));

}  // namespace kvasir::gemma2
