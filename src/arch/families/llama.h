// The parts of Llama that other families reuse: tensor names and roles, and the pieces of its forward pass.
#pragma once

#include "arch/experts.h"
#include "arch/family.h"

namespace kvasir::llama {

/// Roles of a layer's tensors. A family may add its own after them.
enum LayerRole {
  kAttnNorm,
  kQ,
  kK,
  kV,
  kO,
  kMlpNorm,
  kGate,
  kUp,
  kDown,
  kQBias,
  kKBias,
  kVBias,
  kOBias,
  kGateBias,
  kUpBias,
  kDownBias,
  kRoles
};
/// Roles of the specs that with_norms() appends.
enum NormRole {
  kQNorm = kRoles,
  kKNorm,
  kPostAttnNorm,
  kPostMlpNorm,
  kAttnNormBias,  ///< bias of the norm before attention, if it is a LayerNorm
  kMlpNormBias,
  kNormedRoles
};

/// Reads "attention_bias": whether q, k, v and the attention's output have biases. A GGUF file may have either.
Result<void> parse_attention_biases(const ConfigView& view, ModelConfig* c);
std::vector<TensorSpec> layer_table(const ModelConfig& c, int l);

/// Names of a layer's norms, without ".weight"; an empty name: no such norm.
struct NormNames {
  std::string_view before_attention = "input_layernorm", before_mlp = "post_attention_layernorm";
  std::string_view q = {}, k = {};  ///< norms of each head, or of whole rows if ModelConfig::qk_norm_rows
  std::string_view after_attention = {}, after_mlp = {};
  bool less_one = false;  ///< all of these gains are stored minus one
  bool biases = false;    ///< the norms before are LayerNorms with biases
};
/// layer_table() with these norm names, plus the specs of NormRole.
std::vector<TensorSpec> with_norms(const ModelConfig& c, int l, const NormNames& names);

/// Replaces the MLP's specs of a layer with experts; the experts' roles start at kNormedRoles. `table` comes from
/// with_norms().
/// with_norms()'.
std::vector<TensorSpec> with_experts(const ModelConfig& c, int l, const ExpertNames& names,
                                     std::vector<TensorSpec> table);

TensorTable tensor_table(const ModelConfig& c);
/// Lists the embedding, layers made by `layer`, the final norm and the head.
TensorTable tensor_table(const ModelConfig& c, std::vector<TensorSpec> (*layer)(const ModelConfig& c, int l));

void embed(Pass& pass, const Weights& w);
/// x += attention(norm x), x += mlp(norm x).
void layer(Pass& pass, int l, const Weights& w);
/// x += norm(attention(x)), x += norm(mlp(x)).
void post_norm_layer(Pass& pass, int l, const Weights& w);
/// x += norm(attention(norm x)), x += norm(mlp(norm x)).
void sandwich_layer(Pass& pass, int l, const Weights& w);
/// Attention over h [tokens, hidden]: projects q, k and v, norms their heads or rows if the layer has such norms,
/// rotates them, attends, and projects the result.
Rows attention(Pass& pass, int l, const Rows& h, const Weights& w);
/// W_down (f(W_gate h) * W_up h), with gate and up in two matrices, in one, or without a gate; or the layer's experts.
Rows mlp(Pass& pass, int l, const Rows& h, const Weights& w);
Rows final_norm(Pass& pass, Rows x, const Weights& w);

inline constexpr std::string_view kPrefixes[] = {"model.", ""};
/// Norm names of layers that norm the results of both halves, and q and k.
inline constexpr NormNames kPostNorms{.before_attention = "",
                                      .before_mlp = "",
                                      .q = "self_attn.q_norm",
                                      .k = "self_attn.k_norm",
                                      .after_attention = "post_attention_layernorm",
                                      .after_mlp = "post_feedforward_layernorm"};
inline constexpr GgufName kGgufPostNorms[] = {{"post_attention_norm", "post_attention_layernorm"},
                                              {"post_ffw_norm", "post_feedforward_layernorm"}};
/// GGUF stores q and k of a Llama with interleaved rotation pairs.
inline constexpr std::string_view kGgufPaired[] = {"attn_q", "attn_k"};

}  // namespace kvasir::llama
