// Qwen1.5-MoE and Qwen2 with experts: a Qwen2 with experts, one of them shared and weighted by its own gate
// (arXiv:2407.10671).
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_qwen2_moe;

namespace {

constexpr ExpertNames kNames{.shared = "mlp.shared_expert.", .shared_mix = "mlp.shared_expert_gate"};

Result<ModelConfig> parse_config(const ConfigView& view) {
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_qwen2_moe.name, {.kv_heads = 16, .max_ctx = 32768}));
  KVASIR_TRY(auto windows, parse_switched_windows(view, c.layers));
  set_windows(std::move(windows), &c);
  c.qkv_bias = true;
  KVASIR_CHECK(parse_experts(view, {.normalised = false, .used = 4}, &c));
  return c;
}

std::vector<TensorSpec> qwen2_moe_layer_table(const ModelConfig& c, int l) {
  return llama::with_experts(c, l, kNames, llama::with_norms(c, l, {}));
}

TensorTable qwen2_moe_tensor_table(const ModelConfig& c) { return llama::tensor_table(c, qwen2_moe_layer_table); }

constexpr std::array<std::string_view, 1> kAliases{"qwen2_moe"};
constexpr GgufName kGgufTensors[] = {{"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
                                     {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
                                     {"ffn_down_shexp", "mlp.shared_expert.down_proj"}};

}  // namespace

const Family family_qwen2_moe{.name = "qwen2_moe",
                              .summary = "Qwen1.5-MoE, Qwen2-57B-A14B: Qwen2 with experts",
                              .aliases = kAliases,
                              .prefixes = llama::kPrefixes,
                              .gguf = {.arch = "qwen2moe", .more_layer_tensors = kGgufTensors, .experts = true},
                              .parse_config = parse_config,
                              .tensor_table = qwen2_moe_tensor_table,
                              .cache_needs = uniform_cache,
                              .embed = llama::embed,
                              .layer = llama::layer,
                              .final_norm = llama::final_norm};

}  // namespace kvasir
