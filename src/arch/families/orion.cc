// Orion 14B: a Llama with LayerNorm (arXiv:2401.12246).
#include <array>

#include "arch/families/starcoder2.h"

namespace kvasir {

extern const Family family_orion;

namespace {

constexpr starcoder2::Names kNames{.gate = "mlp.gate_proj", .up = "mlp.up_proj", .down = "mlp.down_proj"};

// Folders use RMSNorm's key for the epsilon of LayerNorm.
Result<ModelConfig> parse_config(const ConfigView& view) {
  const DecoderDefaults defaults{
      .max_ctx = 4096, .norm_eps = 1e-5, .eps_key = from_gguf(view) ? "layer_norm_eps" : "rms_norm_eps"};
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_orion.name, defaults));
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  return c;
}

TensorTable orion_tensor_table(const ModelConfig& c) { return starcoder2::tensor_table(c, kNames); }

constexpr std::array<std::string_view, 1> kAliases{"orion"};

}  // namespace

const Family family_orion{.name = "orion",
                          .summary = "Orion: Llama with LayerNorm",
                          .aliases = kAliases,
                          .prefixes = llama::kPrefixes,
                          .gguf = {.arch = "orion", .keys = kGgufLayerNormKeys},
                          .parse_config = parse_config,
                          .tensor_table = orion_tensor_table,
                          .cache_needs = uniform_cache,
                          .embed = llama::embed,
                          .layer = starcoder2::layer,
                          .final_norm = starcoder2::final_norm};

}  // namespace kvasir
