// Qwen2 and Qwen2.5: a Llama whose q, k and v have biases (arXiv:2407.10671).
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_qwen2;

namespace {

Result<ModelConfig> parse_config(const ConfigView& view) {
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_qwen2.name, {.kv_heads = 32, .max_ctx = 32768}));
  KVASIR_TRY(c.windows, parse_switched_windows(view, c.layers));
  c.qkv_bias = true;
  return c;
}

constexpr std::array<std::string_view, 1> kAliases{"qwen2"};

TensorTable tensor_table(const ModelConfig& c) { return llama::tensor_table(c); }

}  // namespace

const Family family_qwen2{.name = "qwen2",
                          .summary = "Qwen2 and Qwen2.5: Llama with biases of q, k and v",
                          .aliases = kAliases,
                          .prefixes = llama::kPrefixes,
                          .gguf = {.arch = "qwen2"},
                          .parse_config = parse_config,
                          .tensor_table = tensor_table,
                          .cache_needs = uniform_cache,
                          .embed = llama::embed,
                          .layer = llama::layer,
                          .final_norm = llama::final_norm};

}  // namespace kvasir
