// A tiny model with experts: 5 in a layer, of which a token uses 2. Test code only.
#pragma once

#include <string>

#include <fmt/format.h>

#include "arch/family.h"
#include "tests/support/tiny_models.h"

namespace kvasir::tiny {

inline Model experts(const std::string& type = "qwen3_moe", int layers = 1) {
  Model model;
  model.config = fmt::format(
      R"({{"model_type":"{}","num_hidden_layers":{},"hidden_size":32,"num_attention_heads":2,"num_key_value_heads":1,
      "head_dim":16,"intermediate_size":32,"vocab_size":50,"num_experts":5,"num_experts_per_tok":2,
      "moe_intermediate_size":32,"norm_topk_prob":true,"tie_word_embeddings":true}})",
      type, layers);
  const ConfigView view = *ConfigView::parse(model.config, "test");
  const Family& family = **find_family(view);
  const TensorTable table = family.tensor_table(*family.parse_config(view));
  const auto add = [&](const std::vector<TensorSpec>& specs) {
    for (const TensorSpec& spec : specs)
      if (spec.present) model.add(spec.name, codec_f32(), spec.shape, 0.5f);
  };
  add(table.embed);
  for (const auto& layer : table.layers) add(layer);
  model.add("norm.weight", codec_f32(), {32}, 0.1f, 1.0f);
  return model;
}

}  // namespace kvasir::tiny
