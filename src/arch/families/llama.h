// What Llama's relatives take from it: the names of its tensors, their roles, and its parts of the forward pass.
#pragma once

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

/// "attention_bias": biases of q, k, v and of the attention's output; a GGUF file may have either.
Result<void> parse_attention_biases(const ConfigView& view, ModelConfig* c);
std::vector<TensorSpec> layer_table(const ModelConfig& c, int l);
TensorTable tensor_table(const ModelConfig& c);
/// Embedding, layers made by `layer`, final norm, head.
TensorTable tensor_table(const ModelConfig& c, std::vector<TensorSpec> (*layer)(const ModelConfig& c, int l));

void embed(Pass& pass, const Weights& w);
void layer(Pass& pass, int l, const Weights& w);
/// x += SwiGLU MLP of the norm of x: a layer's second half.
void mlp(Pass& pass, int l, const Weights& w);
Rows final_norm(Pass& pass, Rows x, const Weights& w);

inline constexpr std::string_view kPrefixes[] = {"model.", ""};

}  // namespace kvasir::llama
