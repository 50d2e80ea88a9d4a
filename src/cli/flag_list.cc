// The allowed names of each flag, from the registries of the library.
#include "cli/flag_list.h"

#include <kvasir/catalog.h>
#include <kvasir/sampling.h>

#include "lab/quantize.h"
#include "lab/synth.h"

namespace kvasir::cli {

namespace {

std::vector<std::string> names_of(const auto& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(entry.name);
  return names;
}

}  // namespace

std::vector<std::string> weight_mode_choices() {
  std::vector<std::string> names;
  for (const WeightsMode mode : weights_modes()) names.emplace_back(weights_mode_name(mode));
  return names;
}

std::vector<std::string> layout_choices() { return names_of(catalog::layouts()); }
std::vector<std::string> kv_type_choices() { return names_of(catalog::kv_types()); }
std::vector<std::string> weight_type_choices() { return names_of(catalog::weight_types()); }

std::vector<std::string> quantize_type_choices() {
  const auto types = quantize_types();
  return {types.begin(), types.end()};
}

std::vector<std::string> synth_type_choices() {
  const auto types = synth_types();
  return {types.begin(), types.end()};
}

std::vector<std::string> sampler_choices() {
  std::vector<std::string> names;
  for (const SamplerInfo& sampler : samplers()) names.emplace_back(sampler.name);
  return names;
}

std::vector<std::string> on_full_choices() { return {"stop", "recompute", "slide"}; }
std::vector<std::string> pooling_choices() { return {"mean", "last"}; }
std::vector<std::string> chat_format_choices() { return {"auto", "plain", "none"}; }
std::vector<std::string> conversation_format_choices() { return {"auto", "plain"}; }
std::vector<std::string> metrics_names_choices() { return {"kvasir", "vllm"}; }

bool is_kv_type(const std::string& name) { return catalog::find_kv_type(name).has_value(); }

bool is_weight_type(const std::string& name) { return catalog::find_weight_type(name).has_value(); }

}  // namespace kvasir::cli
