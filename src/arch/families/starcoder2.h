// The parts of StarCoder 2 that other families with LayerNorm reuse, on top of Llama's: biases of the norms, and an MLP
// of two matrices.
#pragma once

#include "arch/families/llama.h"

namespace kvasir::starcoder2 {

/// Tensor names without ".weight"; an empty name: the layer has no such tensor.
struct Names {
  std::string_view attn_norm = "input_layernorm", mlp_norm = "post_attention_layernorm";
  std::string_view o = "self_attn.o_proj";
  std::string_view gate = {}, up = "mlp.fc1", down = "mlp.fc2";
  bool norm_bias = true;
  std::string_view final_norm = "norm";
  bool head_bias = false;
};

std::vector<TensorSpec> layer_table(const ModelConfig& c, int l, const Names& names);
TensorTable tensor_table(const ModelConfig& c, const Names& names);

/// x += attention(norm x), x += mlp(norm x).
void layer(Pass& pass, int l, const Weights& w);
/// h = norm x, x += attention(h) + mlp(h).
void parallel_layer(Pass& pass, int l, const Weights& w);
Rows final_norm(Pass& pass, Rows x, const Weights& w);

}  // namespace kvasir::starcoder2
