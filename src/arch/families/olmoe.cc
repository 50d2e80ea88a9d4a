// OLMoE: a Llama with experts that norms q and k as whole rows (arXiv:2409.02060).
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_olmoe;

namespace {

Result<ModelConfig> parse_config(const ConfigView& view) {
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_olmoe.name, {.max_ctx = 4096, .norm_eps = 1e-5}));
  c.qk_norm_rows = true;
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  KVASIR_CHECK(parse_experts(view, {.normalised = false, .used = 8}, &c));
  return c;
}

std::vector<TensorSpec> olmoe_layer_table(const ModelConfig& c, int l) {
  return llama::with_experts(c, l, {}, llama::with_norms(c, l, {.q = "self_attn.q_norm", .k = "self_attn.k_norm"}));
}

TensorTable olmoe_tensor_table(const ModelConfig& c) { return llama::tensor_table(c, olmoe_layer_table); }

constexpr std::array<std::string_view, 1> kAliases{"olmoe"};

}  // namespace

const Family family_olmoe{.name = "olmoe",
                          .summary = "OLMoE: Llama with experts and norms of whole rows of q and k",
                          .aliases = kAliases,
                          .prefixes = llama::kPrefixes,
                          .gguf = {.arch = "olmoe", .experts = true},
                          .parse_config = parse_config,
                          .tensor_table = olmoe_tensor_table,
                          .cache_needs = uniform_cache,
                          .embed = llama::embed,
                          .layer = llama::layer,
                          .final_norm = llama::final_norm};

}  // namespace kvasir
