// Qwen2 and Qwen2.5: a Llama with biases on q, k and v (arXiv:2407.10671). Also the text model of Qwen2-VL and
// Qwen2.5-VL.
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_qwen2;

namespace {

Result<ModelConfig> parse_config(const ConfigView& view) {
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_qwen2.name, {.kv_heads = 32, .max_ctx = 32768}));
  KVASIR_TRY(auto windows, parse_switched_windows(view, c.layers));
  set_windows(std::move(windows), &c);
  c.qkv_bias = true;
  return c;
}

constexpr std::array<std::string_view, 5> kAliases{"qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl",
                                                   "qwen2_5_vl_text"};
constexpr std::array<std::string_view, 1> kGgufTextTower{"qwen2vl"};

TensorTable tensor_table(const ModelConfig& c) { return llama::tensor_table(c); }

}  // namespace

const Family family_qwen2{.name = "qwen2",
                          .summary = "Qwen2 and Qwen2.5: Llama with biases of q, k and v",
                          .aliases = kAliases,
                          .prefixes = llama::kPrefixes,
                          .gguf = {.arch = "qwen2", .other_archs = kGgufTextTower},
                          .parse_config = parse_config,
                          .tensor_table = tensor_table,
                          .cache_needs = uniform_cache,
                          .embed = llama::embed,
                          .layer = llama::layer,
                          .final_norm = llama::final_norm};

}  // namespace kvasir
