// Mixture of Experts: an MLP of which each token uses a few of many parts (arXiv:1701.06538, arXiv:2101.03961). The
// block, and the part of a layer's tensor table that it reads.
#pragma once

#include <string_view>
#include <vector>

#include "arch/family.h"
#include "arch/pass.h"

namespace kvasir {

/// Names of a layer's experts, without ".weight", after "layers.N.". Empty: there is no such tensor.
struct ExpertNames {
  std::string_view router = "mlp.gate";
  std::string_view router_bias = {};  ///< whole name
  std::string_view choice_bias = {};  ///< whole name; added to a share for the choice alone
  std::string_view expert = "mlp.experts.*.";
  std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
  bool biases = false;  ///< of gate, up and down
  std::string_view shared = "mlp.shared_experts.";
  std::string_view shared_mix = {};  ///< a row whose product's sigmoid multiplies the shared expert
};

/// Values of keys that a file leaves out.
struct ExpertDefaults {
  ExpertGate gate = ExpertGate::softmax;
  bool normalised = true;
  int used = 2;
};

/// Reads the keys of experts; none of them: the model has none. Errors: numbers that do not fit together.
Result<void> parse_experts(const ConfigView& view, const ExpertDefaults& defaults, ModelConfig* c);

/// Appends the specs of layer l, in the roles of moe(). Nothing where the config has no experts there.
void add_experts(const ModelConfig& c, int l, const ExpertNames& names, std::vector<TensorSpec>* table);

/// out = sum over the chosen experts, best first, of share * down(f(gate h) * up h), plus the shared expert. h
/// [tokens][hidden]; `first` is the role of the first spec of add_experts(). A token's choice and sums depend on its
/// own row alone; equal scores choose the lower number. Each chosen expert is read once a pass.
Rows moe(Pass& pass, int layer, const Rows& h, const Weights& w, int first);

}  // namespace kvasir
