// SmolLM3: a Llama in which every fourth layer has no positions (arXiv:2501.18795's NoPE layers).
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_smollm3;

namespace {

// "no_rope_layers" is a list with 1 for each layer with RoPE. GGUF files have no such list.
Result<ModelConfig> parse_config(const ConfigView& view) {
  constexpr DecoderDefaults kDefaults{.kv_heads = 4, .max_ctx = 32768, .theta = 2e6};
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_smollm3.name, kDefaults));
  KVASIR_TRY(auto windows, parse_switched_windows(view, c.layers));
  set_windows(std::move(windows), &c);
  KVASIR_TRY(const int64_t step, view.get_int_or("no_rope_layer_interval", 4, 1, 4096));
  KVASIR_TRY(const auto rotated, view.get_ints_or_empty("no_rope_layers"));
  if (!rotated.empty() && rotated.size() != static_cast<size_t>(c.layers))
    return fail(Error::damaged, "\"no_rope_layers\" does not list every layer", view.where());
  for (int l = 0; l < c.layers; ++l)
    c.rope_kinds.push_back((rotated.empty() ? l % step != step - 1 : rotated[static_cast<size_t>(l)] != 0) ? 0 : -1);
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  KVASIR_TRY(c.mlp_bias, view.get_bool_or("mlp_bias", false));
  return c;
}

constexpr std::array<std::string_view, 1> kAliases{"smollm3"};

TensorTable smollm3_tensor_table(const ModelConfig& c) { return llama::tensor_table(c); }

}  // namespace

const Family family_smollm3{.name = "smollm3",
                            .summary = "SmolLM3: Llama with every fourth layer without RoPE",
                            .aliases = kAliases,
                            .prefixes = llama::kPrefixes,
                            .gguf = {.arch = "smollm3", .paired = llama::kGgufPaired},
                            .parse_config = parse_config,
                            .tensor_table = smollm3_tensor_table,
                            .cache_needs = uniform_cache,
                            .embed = llama::embed,
                            .layer = llama::layer,
                            .final_norm = llama::final_norm};

}  // namespace kvasir
