// GLM-4: norms before and after both halves of a layer, partial rotary (half of each head) with interleaved pairs, gate
// and up in one matrix (arXiv:2406.12793).
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_glm4;

namespace {

Result<ModelConfig> parse_config(const ConfigView& file) {
  constexpr DecoderDefaults kDefaults{.kv_heads = 2, .head_dim = 128, .max_ctx = 131072, .norm_eps = 1.5625e-7};
  ConfigView view = file;
  view.set("rope_interleaved", true);
  if (!from_gguf(view) && !view.has("partial_rotary_factor")) view.set("partial_rotary_factor", 0.5);
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_glm4.name, kDefaults));
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  c.o_bias = false;
  return c;
}

std::vector<TensorSpec> glm4_layer_table(const ModelConfig& c, int l) {
  std::vector<TensorSpec> table =
      llama::with_norms(c, l, {.after_attention = "post_self_attn_layernorm", .after_mlp = "post_mlp_layernorm"});
  table[llama::kGate].present = false;
  table[llama::kUp].name = "layers." + std::to_string(l) + ".mlp.gate_up_proj.weight";
  table[llama::kUp].shape = {2 * int64_t{c.ffn}, c.hidden};
  return table;
}

TensorTable glm4_tensor_table(const ModelConfig& c) { return llama::tensor_table(c, glm4_layer_table); }

constexpr std::array<std::string_view, 1> kAliases{"glm4"};
constexpr GgufName kGgufTensors[] = {{"post_attention_norm", "post_self_attn_layernorm"},
                                     {"post_ffw_norm", "post_mlp_layernorm"},
                                     {"ffn_up", "mlp.gate_up_proj"}};

}  // namespace

const Family family_glm4{.name = "glm4",
                         .summary = "GLM-4: norms before and after, half of each head rotated",
                         .aliases = kAliases,
                         .prefixes = llama::kPrefixes,
                         .gguf = {.arch = "glm4", .more_layer_tensors = kGgufTensors},
                         .parse_config = parse_config,
                         .tensor_table = glm4_tensor_table,
                         .cache_needs = uniform_cache,
                         .embed = llama::embed,
                         .layer = llama::sandwich_layer,
                         .final_norm = llama::final_norm};

}  // namespace kvasir
