// What Llama's relatives take from it: the names of its tensors, their roles, and its parts of the forward pass.
#pragma once

#include "arch/experts.h"
#include "arch/family.h"

namespace kvasir::llama {

/// The first roles of a layer; a relative may add its own after them.
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
/// Roles that with_norms() appends.
enum NormRole {
  kQNorm = kRoles,
  kKNorm,
  kPostAttnNorm,
  kPostMlpNorm,
  kAttnNormBias,  ///< LayerNorm's, of the norms before
  kMlpNormBias,
  kNormedRoles
};

/// "attention_bias": biases of q, k, v and of the attention's output; a GGUF file may have either.
Result<void> parse_attention_biases(const ConfigView& view, ModelConfig* c);
std::vector<TensorSpec> layer_table(const ModelConfig& c, int l);

/// Names of a layer's norms, without ".weight"; empty: it has none.
struct NormNames {
  std::string_view before_attention = "input_layernorm", before_mlp = "post_attention_layernorm";
  std::string_view q = {}, k = {};  ///< of each head or, by the config, of whole rows
  std::string_view after_attention = {}, after_mlp = {};
  bool less_one = false;  ///< all of them are stored less one
  bool biases = false;    ///< of the norms before, which are LayerNorms
};
/// layer_table() with these norms, those of NormRole too.
std::vector<TensorSpec> with_norms(const ModelConfig& c, int l, const NormNames& names);

/// In a layer with experts these stand in the place of the MLP; from kNormedRoles on.
std::vector<TensorSpec> with_experts(const ModelConfig& c, int l, const ExpertNames& names,
                                     std::vector<TensorSpec> table);

TensorTable tensor_table(const ModelConfig& c);
/// Embedding, layers made by `layer`, final norm, head.
TensorTable tensor_table(const ModelConfig& c, std::vector<TensorSpec> (*layer)(const ModelConfig& c, int l));

void embed(Pass& pass, const Weights& w);
/// x += attention(norm x), x += mlp(norm x).
void layer(Pass& pass, int l, const Weights& w);
/// x += norm(attention(x)), x += norm(mlp(x)).
void post_norm_layer(Pass& pass, int l, const Weights& w);
/// x += norm(attention(norm x)), x += norm(mlp(norm x)).
void sandwich_layer(Pass& pass, int l, const Weights& w);
/// Attention over h [tokens][hidden]: projects q, k and v, norms their heads or rows where the layer has such norms,
/// rotates them, attends, and projects the result.
Rows attention(Pass& pass, int l, const Rows& h, const Weights& w);
/// W_down (f(W_gate h) * W_up h), with gate and up in one matrix, or without a gate; or the layer's experts.
Rows mlp(Pass& pass, int l, const Rows& h, const Weights& w);
Rows final_norm(Pass& pass, Rows x, const Weights& w);

inline constexpr std::string_view kPrefixes[] = {"model.", ""};
/// Names of layers that norm the results of both halves, and heads or rows of q and k.
inline constexpr NormNames kPostNorms{.before_attention = "",
                                      .before_mlp = "",
                                      .q = "self_attn.q_norm",
                                      .k = "self_attn.k_norm",
                                      .after_attention = "post_attention_layernorm",
                                      .after_mlp = "post_feedforward_layernorm"};
inline constexpr GgufName kGgufPostNorms[] = {{"post_attention_norm", "post_attention_layernorm"},
                                              {"post_ffw_norm", "post_feedforward_layernorm"}};
/// q and k of files whose rotation pairs lie side by side, as GGUF's of a Llama do.
inline constexpr std::string_view kGgufPaired[] = {"attn_q", "attn_k"};

}  // namespace kvasir::llama
