// Mixture of Experts (arXiv:1701.06538, arXiv:2101.03961): each token uses a few of a layer's many MLPs. Contains the
// block, its config keys, and the specs of the tensors that it reads.
#pragma once

#include <string_view>
#include <vector>

#include "arch/family.h"
#include "arch/forward_pass.h"

namespace kvasir {

/// Names of a layer's expert tensors, after "layers.N.", without ".weight". An empty name: there is no such tensor.
struct ExpertNames {
  std::string_view router = "mlp.gate";
  std::string_view router_bias = {};  ///< whole name
  std::string_view choice_bias = {};  ///< whole name; added to a score for the choice alone, not to the share
  std::string_view expert = "mlp.experts.*.";
  std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
  bool biases = false;  ///< whether gate, up and down have biases
  std::string_view shared = "mlp.shared_experts.";
  std::string_view shared_mix = {};  ///< one row; the sigmoid of its product multiplies the shared expert
};

/// Values for keys that a file leaves out.
struct ExpertDefaults {
  ExpertGate gate = ExpertGate::softmax;
  bool normalised = true;
  int used = 2;
};

/// Reads the keys of experts into c->experts. A file without them gives a dense model. Errors: numbers that do not fit
/// together.
Result<void> parse_experts(const ConfigView& view, const ExpertDefaults& defaults, ModelConfig* c);

/// Appends the specs of layer l's experts, in the order of roles that moe() expects; none if layer l is dense.
void add_experts(const ModelConfig& c, int l, const ExpertNames& names, std::vector<TensorSpec>* table);

/// out = sum over the chosen experts, best first, of share * down(f(gate h) * up h), plus the shared expert. h and out
/// [tokens, hidden]; `first` is the role of the first spec of add_experts(). A token's choice and sums depend on its
/// own row alone; of equal scores the lower expert number wins. Each chosen expert is read once per pass.
Rows moe(Pass& pass, int layer, const Rows& h, const Weights& w, int first);

}  // namespace kvasir
