// GLM-4.5 and GLM-4.5-Air: partial rotary (half of each head); experts chosen by sigmoid plus a bias, and one shared
// expert (arXiv:2508.06471).
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_glm4_moe;

namespace {

constexpr ExpertNames kNames{.choice_bias = "mlp.gate.e_score_correction_bias"};

Result<ModelConfig> parse_config(const ConfigView& file) {
  constexpr DecoderDefaults kDefaults{.kv_heads = 8, .head_dim = 128, .max_ctx = 131072, .norm_eps = 1e-5};
  ConfigView view = file;
  if (!from_gguf(view) && !view.has("partial_rotary_factor")) view.set("partial_rotary_factor", 0.5);
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_glm4_moe.name, kDefaults));
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  c.o_bias = false;
  KVASIR_TRY(c.qk_norm, view.get_bool_or("use_qk_norm", false));
  KVASIR_CHECK(parse_experts(view, {.gate = ExpertGate::sigmoid, .used = 8}, &c));
  return c;
}

std::vector<TensorSpec> glm4_moe_layer_table(const ModelConfig& c, int l) {
  const llama::NormNames norms =
      c.qk_norm ? llama::NormNames{.q = "self_attn.q_norm", .k = "self_attn.k_norm"} : llama::NormNames{};
  return llama::with_experts(c, l, kNames, llama::with_norms(c, l, norms));
}

TensorTable glm4_moe_tensor_table(const ModelConfig& c) { return llama::tensor_table(c, glm4_moe_layer_table); }

constexpr std::array<std::string_view, 1> kAliases{"glm4_moe"};
constexpr GgufName kGgufTensors[] = {{"post_attention_norm", "post_attention_layernorm"}};

}  // namespace

const Family family_glm4_moe{.name = "glm4_moe",
                             .summary = "GLM-4.5: experts chosen by sigmoids and a bias, half of each head rotated",
                             .aliases = kAliases,
                             .prefixes = llama::kPrefixes,
                             .gguf = {.arch = "glm4moe", .more_layer_tensors = kGgufTensors, .experts = true},
                             .parse_config = parse_config,
                             .tensor_table = glm4_moe_tensor_table,
                             .cache_needs = uniform_cache,
                             .embed = llama::embed,
                             .layer = llama::layer,
                             .final_norm = llama::final_norm};

}  // namespace kvasir
