// Qwen3 with experts: 30B-A3B and its relatives (arXiv:2505.09388).
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_qwen3_moe;

namespace {

// This family normalises shares. GGUF files have no value for it, so it is the default there.
Result<ModelConfig> parse_config(const ConfigView& view) {
  constexpr DecoderDefaults kDefaults{.kv_heads = 4, .head_dim = 128, .max_ctx = 32768};
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_qwen3_moe.name, kDefaults));
  KVASIR_TRY(auto windows, parse_switched_windows(view, c.layers));
  set_windows(std::move(windows), &c);
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  KVASIR_CHECK(parse_experts(view, {.normalised = from_gguf(view), .used = 8}, &c));
  return c;
}

std::vector<TensorSpec> qwen3_moe_layer_table(const ModelConfig& c, int l) {
  return llama::with_experts(c, l, {}, llama::with_norms(c, l, {.q = "self_attn.q_norm", .k = "self_attn.k_norm"}));
}

TensorTable qwen3_moe_tensor_table(const ModelConfig& c) { return llama::tensor_table(c, qwen3_moe_layer_table); }

constexpr std::array<std::string_view, 3> kAliases{"qwen3_moe", "qwen3_vl_moe", "qwen3_vl_moe_text"};
constexpr std::array<std::string_view, 1> kGgufTextTower{"qwen3vlmoe"};

}  // namespace

const Family family_qwen3_moe{.name = "qwen3_moe",
                              .summary = "Qwen3 with experts: 30B-A3B, 235B-A22B, Coder",
                              .aliases = kAliases,
                              .prefixes = llama::kPrefixes,
                              .gguf = {.arch = "qwen3moe", .other_archs = kGgufTextTower, .experts = true},
                              .parse_config = parse_config,
                              .tensor_table = qwen3_moe_tensor_table,
                              .cache_needs = uniform_cache,
                              .embed = llama::embed,
                              .layer = llama::layer,
                              .final_norm = llama::final_norm};

}  // namespace kvasir
