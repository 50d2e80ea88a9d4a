// ERNIE 4.5: a Llama with interleaved rotation pairs in folders and in GGUF files; with experts or without.
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_ernie4_5;

namespace {

Result<ModelConfig> parse_config(const ConfigView& file) {
  constexpr DecoderDefaults kDefaults{
      .kv_heads = 2, .head_dim = 128, .max_ctx = 131072, .norm_eps = 1e-5, .theta = 500000.0, .tied_head = true};
  ConfigView view = file;
  view.set("rope_interleaved", true);
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_ernie4_5.name, kDefaults));
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  KVASIR_TRY(c.mlp_bias, view.get_bool_or("mlp_bias", false));
  KVASIR_TRY(const bool biased, view.get_bool_or("use_bias", false));
  c.qkv_bias |= biased, c.o_bias |= biased, c.mlp_bias |= biased;
  KVASIR_CHECK(parse_experts(view, {.used = 6}, &c));
  return c;
}

constexpr ExpertNames kExpertNames{.choice_bias = "mlp.moe_statics.e_score_correction_bias"};

std::vector<TensorSpec> ernie4_5_layer_table(const ModelConfig& c, int l) {
  if (c.experts.count == 0) return llama::layer_table(c, l);
  return llama::with_experts(c, l, kExpertNames, llama::with_norms(c, l, {}));
}

TensorTable ernie4_5_tensor_table(const ModelConfig& c) { return llama::tensor_table(c, ernie4_5_layer_table); }

constexpr std::array<std::string_view, 2> kAliases{"ernie4_5", "ernie4_5_moe"};
constexpr std::array<std::string_view, 1> kGgufWithExperts{"ernie4_5-moe"};
constexpr GgufName kGgufTensors[] = {{"exp_probs_b.bias", "mlp.moe_statics.e_score_correction_bias"}};

}  // namespace

const Family family_ernie4_5{
    .name = "ernie4_5",
    .summary = "ERNIE 4.5: Llama with rotation pairs side by side",
    .aliases = kAliases,
    .prefixes = llama::kPrefixes,
    .gguf = {.arch = "ernie4_5", .other_archs = kGgufWithExperts, .more_layer_tensors = kGgufTensors, .experts = true},
    .parse_config = parse_config,
    .tensor_table = ernie4_5_tensor_table,
    .cache_needs = uniform_cache,
    .embed = llama::embed,
    .layer = llama::layer,
    .final_norm = llama::final_norm};

}  // namespace kvasir
