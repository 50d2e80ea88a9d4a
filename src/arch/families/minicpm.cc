// MiniCPM 1 and 2: a Llama with multipliers derived from its depth and width (arXiv:2404.06395); with experts or
// without.
#include <array>
#include <cmath>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_minicpm;

namespace {

// GGUF files store the derived multipliers themselves.
constexpr const char *kGgufResidual = "gguf.residual_scale", *kGgufLogits = "gguf.logit_scale";

Result<ModelConfig> parse_config(const ConfigView& view) {
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_minicpm.name, {.norm_eps = 1e-5, .tied_head = true}));
  KVASIR_TRY(const double embedding, view.get_number_or("scale_emb", 1.0, 1e-6, 1e6));
  KVASIR_TRY(const double depth, view.get_number_or("scale_depth", 1.0, 1e-6, 1e6));
  KVASIR_TRY(const double width, view.get_number_or("dim_model_base", c.hidden, 1.0, 1e6));
  KVASIR_TRY(const double residual, view.get_number_or(kGgufResidual, depth / std::sqrt(c.layers), 1e-6, 1e6));
  KVASIR_TRY(const double logits, view.get_number_or(kGgufLogits, c.hidden / width, 1e-6, 1e6));
  c.embedding_scale = static_cast<float>(embedding);
  c.residual_scale = static_cast<float>(residual);
  c.logit_scale = 1.0f / static_cast<float>(logits);
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  KVASIR_CHECK(parse_experts(view, {}, &c));
  return c;
}

constexpr ExpertNames kExpertNames{.gate = "w1", .up = "w3", .down = "w2"};

std::vector<TensorSpec> minicpm_layer_table(const ModelConfig& c, int l) {
  if (!c.has_experts(l)) return llama::layer_table(c, l);
  return llama::with_experts(c, l, kExpertNames, llama::with_norms(c, l, {}));
}

TensorTable minicpm_tensor_table(const ModelConfig& c) { return llama::tensor_table(c, minicpm_layer_table); }

constexpr std::array<std::string_view, 1> kAliases{"minicpm"};
constexpr GgufKey kGgufKeys[] = {
    {"embedding_scale", "scale_emb"}, {"residual_scale", kGgufResidual}, {"logit_scale", kGgufLogits}};

}  // namespace

const Family family_minicpm{.name = "minicpm",
                            .summary = "MiniCPM 1 and 2: Llama with multipliers from its depth and width",
                            .aliases = kAliases,
                            .prefixes = llama::kPrefixes,
                            .gguf = {.arch = "minicpm", .more_keys = kGgufKeys, .paired = llama::kGgufPaired},
                            .parse_config = parse_config,
                            .tensor_table = minicpm_tensor_table,
                            .cache_needs = uniform_cache,
                            .embed = llama::embed,
                            .layer = llama::layer,
                            .final_norm = llama::final_norm};

}  // namespace kvasir
