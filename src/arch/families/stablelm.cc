// StableLM 2 and StableLM-3B: a Llama with LayerNorm and partial rotary (a quarter of each head; arXiv:2402.17834).
#include <array>

#include "arch/families/starcoder2.h"

namespace kvasir {

extern const Family family_stablelm;

namespace {

constexpr starcoder2::Names kNames{.gate = "mlp.gate_proj", .up = "mlp.up_proj", .down = "mlp.down_proj"};

// The 12B has normed heads and parallel layers; it is a different model and refused.
Result<void> refuse_variants(const ConfigView& view) {
  for (const char* key : {"qk_layernorm", "use_parallel_residual"}) {
    KVASIR_TRY(const bool used, view.get_bool_or(key, false));
    if (used)
      return fail(Error::unsupported, std::string("\"") + key + "\" is not supported for this family", view.where(),
                  "StableLM of 1.6B or 3B");
  }
  return {};
}

Result<ModelConfig> parse_config(const ConfigView& file) {
  constexpr DecoderDefaults kDefaults{.max_ctx = 4096, .norm_eps = 1e-5, .eps_key = "layer_norm_eps"};
  ConfigView view = file;
  KVASIR_CHECK(refuse_variants(view));
  if (!from_gguf(view) && !view.has("partial_rotary_factor") && !view.has("rope_pct"))
    view.set("partial_rotary_factor", 0.25);
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_stablelm.name, kDefaults));
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  if (!from_gguf(view)) {
    KVASIR_TRY(c.qkv_bias, view.get_bool_or("use_qkv_bias", false));
    c.o_bias = false;
  }
  return c;
}

TensorTable stablelm_tensor_table(const ModelConfig& c) { return starcoder2::tensor_table(c, kNames); }

constexpr std::array<std::string_view, 2> kAliases{"stablelm", "stablelm_epoch"};
constexpr GgufKey kGgufKeys[] = {{"use_parallel_residual", "use_parallel_residual"}};

}  // namespace

const Family family_stablelm{.name = "stablelm",
                             .summary = "StableLM: Llama with LayerNorm, a quarter of each head rotated",
                             .aliases = kAliases,
                             .prefixes = llama::kPrefixes,
                             .gguf = {.arch = "stablelm", .keys = kGgufLayerNormKeys, .more_keys = kGgufKeys},
                             .parse_config = parse_config,
                             .tensor_table = stablelm_tensor_table,
                             .cache_needs = uniform_cache,
                             .embed = llama::embed,
                             .layer = starcoder2::layer,
                             .final_norm = starcoder2::final_norm};

}  // namespace kvasir
