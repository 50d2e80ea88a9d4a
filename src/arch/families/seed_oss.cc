// ByteDance's Seed-OSS: a Qwen2 with a configured head_dim.
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_seed_oss;

namespace {

Result<ModelConfig> parse_config(const ConfigView& view) {
  constexpr DecoderDefaults kDefaults{.kv_heads = 8, .head_dim = 128, .max_ctx = 524288, .theta = 1e7};
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_seed_oss.name, kDefaults));
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  if (!from_gguf(view)) {
    KVASIR_TRY(c.qkv_bias, view.get_bool_or("attention_bias", true));
    KVASIR_TRY(c.o_bias, view.get_bool_or("attention_out_bias", false));
  }
  KVASIR_TRY(c.mlp_bias, view.get_bool_or("mlp_bias", false));
  return c;
}

TensorTable seed_oss_tensor_table(const ModelConfig& c) { return llama::tensor_table(c); }

constexpr std::array<std::string_view, 1> kAliases{"seed_oss"};
constexpr GgufName kGgufTensors[] = {{"post_attention_norm", "post_attention_layernorm"}};

}  // namespace

const Family family_seed_oss{.name = "seed_oss",
                             .summary = "Seed-OSS: Llama with biases of q, k and v",
                             .aliases = kAliases,
                             .prefixes = llama::kPrefixes,
                             .gguf = {.arch = "seed_oss", .more_layer_tensors = kGgufTensors},
                             .parse_config = parse_config,
                             .tensor_table = seed_oss_tensor_table,
                             .cache_needs = uniform_cache,
                             .embed = llama::embed,
                             .layer = llama::layer,
                             .final_norm = llama::final_norm};

}  // namespace kvasir
