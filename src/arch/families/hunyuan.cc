// Hunyuan, dense models: a Llama that norms every head of q and k after the rotation.
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_hunyuan;

namespace {

Result<ModelConfig> parse_config(const ConfigView& view) {
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_hunyuan.name, {.norm_eps = 1e-5}));
  KVASIR_TRY(c.qk_norm, view.get_bool_or("use_qk_norm", true));
  c.norm_after_rope = true;
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  return c;
}

std::vector<TensorSpec> hunyuan_layer_table(const ModelConfig& c, int l) {
  if (!c.qk_norm) return llama::layer_table(c, l);
  return llama::with_norms(c, l, {.q = "self_attn.query_layernorm", .k = "self_attn.key_layernorm"});
}

TensorTable hunyuan_tensor_table(const ModelConfig& c) { return llama::tensor_table(c, hunyuan_layer_table); }

constexpr std::array<std::string_view, 1> kAliases{"hunyuan_v1_dense"};
constexpr GgufName kGgufTensors[] = {{"attn_q_norm", "self_attn.query_layernorm"},
                                     {"attn_k_norm", "self_attn.key_layernorm"}};

}  // namespace

const Family family_hunyuan{.name = "hunyuan",
                            .summary = "Hunyuan dense: Llama with a norm for each head of q and k after the rotation",
                            .aliases = kAliases,
                            .prefixes = llama::kPrefixes,
                            .gguf = {.arch = "hunyuan-dense", .more_layer_tensors = kGgufTensors},
                            .parse_config = parse_config,
                            .tensor_table = hunyuan_tensor_table,
                            .cache_needs = uniform_cache,
                            .embed = llama::embed,
                            .layer = llama::layer,
                            .final_norm = llama::final_norm};

}  // namespace kvasir
