// DeepSeek-MoE 16B: a Llama with experts in all layers except the first, some experts shared (arXiv:2401.06066).
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_deepseek;

namespace {

Result<ModelConfig> parse_config(const ConfigView& view) {
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_deepseek.name, {}));
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  KVASIR_CHECK(parse_experts(view, {.normalised = false, .used = 6}, &c));
  return c;
}

std::vector<TensorSpec> deepseek_layer_table(const ModelConfig& c, int l) {
  return llama::with_experts(c, l, {}, llama::with_norms(c, l, {}));
}

TensorTable deepseek_tensor_table(const ModelConfig& c) { return llama::tensor_table(c, deepseek_layer_table); }

constexpr std::array<std::string_view, 1> kAliases{"deepseek"};

}  // namespace

const Family family_deepseek{.name = "deepseek",
                             .summary = "DeepSeek-MoE 16B: Llama with experts, some of them shared",
                             .aliases = kAliases,
                             .prefixes = llama::kPrefixes,
                             .gguf = {.arch = "deepseek", .experts = true, .paired = llama::kGgufPaired},
                             .parse_config = parse_config,
                             .tensor_table = deepseek_tensor_table,
                             .cache_needs = uniform_cache,
                             .embed = llama::embed,
                             .layer = llama::layer,
                             .final_norm = llama::final_norm};

}  // namespace kvasir
