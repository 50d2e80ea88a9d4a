// Qwen3: a Llama that norms every head of q and k before the rotation, with a configured head_dim (arXiv:2505.09388).
// Also the text model of Qwen3-VL.
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_qwen3;

namespace {

Result<ModelConfig> parse_config(const ConfigView& view) {
  constexpr DecoderDefaults kDefaults{.kv_heads = 32, .head_dim = 128, .max_ctx = 32768};
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_qwen3.name, kDefaults));
  KVASIR_TRY(auto windows, parse_switched_windows(view, c.layers));
  set_windows(std::move(windows), &c);
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  return c;
}

std::vector<TensorSpec> qwen3_layer_table(const ModelConfig& c, int l) {
  std::vector<TensorSpec> table = llama::with_norms(c, l, {.q = "self_attn.q_norm", .k = "self_attn.k_norm"});
  table.resize(llama::kPostAttnNorm);
  return table;
}

TensorTable qwen3_tensor_table(const ModelConfig& c) { return llama::tensor_table(c, qwen3_layer_table); }

constexpr std::array<std::string_view, 3> kAliases{"qwen3", "qwen3_vl", "qwen3_vl_text"};
constexpr std::array<std::string_view, 1> kGgufTextTower{"qwen3vl"};

}  // namespace

const Family family_qwen3{.name = "qwen3",
                          .summary = "Qwen3: Llama with a norm for each head of q and k",
                          .aliases = kAliases,
                          .prefixes = llama::kPrefixes,
                          .gguf = {.arch = "qwen3", .other_archs = kGgufTextTower},
                          .parse_config = parse_config,
                          .tensor_table = qwen3_tensor_table,
                          .cache_needs = uniform_cache,
                          .embed = llama::embed,
                          .layer = llama::layer,
                          .final_norm = llama::final_norm};

}  // namespace kvasir
