// The names that flags take, from the registries of the library.
#include "cli/flag_list.h"

#include "cache/kv_type.h"
#include "cache/layout.h"
#include "dtype/codec.h"
#include "format/weight_source.h"
#include "lab/quantize.h"
#include "lab/synth.h"

namespace kvasir::cli {

std::vector<std::string> weight_mode_choices() {
  std::vector<std::string> names{"auto"};
  for (const WeightMode mode : {WeightMode::resident, WeightMode::mapped, WeightMode::streamed})
    names.emplace_back(weight_mode_name(mode));
  return names;
}

std::vector<std::string> layout_choices() {
  std::vector<std::string> names;
  for (const LayoutInfo* layout : layouts()) names.emplace_back(layout->name);
  return names;
}

std::vector<std::string> kv_type_choices() {
  std::vector<std::string> names;
  for (const KvType& type : kv_types()) names.push_back(type.name);
  return names;
}

std::vector<std::string> weight_type_choices() {
  std::vector<std::string> names;
  for (const Codec* codec : codecs()) names.emplace_back(codec->name);
  return names;
}

std::vector<std::string> quantize_type_choices() {
  const auto types = quantize_types();
  return {types.begin(), types.end()};
}

std::vector<std::string> synth_type_choices() {
  const auto types = synth_types();
  return {types.begin(), types.end()};
}

std::vector<std::string> on_full_choices() { return {"stop", "recompute", "slide"}; }
std::vector<std::string> pooling_choices() { return {"mean", "last"}; }

bool is_kv_type(const std::string& name) { return find_kv_type(name).has_value(); }

// As config.json spells them too.
bool is_weight_type(const std::string& name) {
  return find_codec(name) != nullptr || name == "float32" || name == "float16" || name == "bfloat16";
}

}  // namespace kvasir::cli
