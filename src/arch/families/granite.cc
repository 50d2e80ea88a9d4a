// Granite 3: a Llama with configured multipliers on embeddings, residual adds, scores and logits; with experts or
// without.
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_granite;

namespace {

Result<ModelConfig> parse_config(const ConfigView& view) {
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_granite.name));
  // Without the key, transformers scales scores by 1, and a GGUF file means 1 / sqrt(head_dim).
  KVASIR_TRY(const double scores, view.get_number_or("attention_multiplier", from_gguf(view) ? 0.0 : 1.0, 0.0, 1e6));
  KVASIR_TRY(const double embedding, view.get_number_or("embedding_multiplier", 1.0, 1e-6, 1e6));
  KVASIR_TRY(const double residual, view.get_number_or("residual_multiplier", 1.0, 1e-6, 1e6));
  KVASIR_TRY(const double logits, view.get_number_or("logits_scaling", 1.0, 1e-6, 1e6));
  c.score_scale = static_cast<float>(scores);
  c.embedding_scale = static_cast<float>(embedding);
  c.residual_scale = static_cast<float>(residual);
  c.logit_scale = 1.0f / static_cast<float>(logits);
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  KVASIR_TRY(c.mlp_bias, view.get_bool_or("mlp_bias", false));
  KVASIR_CHECK(parse_experts(view, {.gate = ExpertGate::softmax_of_chosen, .normalised = false, .used = 8}, &c));
  return c;
}

constexpr ExpertNames kExpertNames{
    .router = "block_sparse_moe.router.layer", .expert = "block_sparse_moe.experts.*.", .shared = "shared_mlp."};

std::vector<TensorSpec> granite_layer_table(const ModelConfig& c, int l) {
  if (!c.has_experts(l)) return llama::layer_table(c, l);
  return llama::with_experts(c, l, kExpertNames, llama::with_norms(c, l, {}));
}

TensorTable granite_tensor_table(const ModelConfig& c) { return llama::tensor_table(c, granite_layer_table); }

constexpr std::array<std::string_view, 3> kAliases{"granite", "granitemoe", "granitemoeshared"};
constexpr std::array<std::string_view, 1> kGgufWithExperts{"granitemoe"};
constexpr std::string_view kGateUp[] = {"block_sparse_moe.experts.*.gate_proj", "block_sparse_moe.experts.*.up_proj"},
                           kDown[] = {"block_sparse_moe.experts.*.down_proj"},
                           kShared[] = {"shared_mlp.gate_proj", "shared_mlp.up_proj"},
                           kSharedDown[] = {"shared_mlp.down_proj"};
constexpr TensorSplit kSplits[] = {{"block_sparse_moe.input_linear", kGateUp},
                                   {"block_sparse_moe.output_linear", kDown},
                                   {"shared_mlp.input_linear", kShared},
                                   {"shared_mlp.output_linear", kSharedDown}};
constexpr GgufName kGgufTensors[] = {{"ffn_gate_inp", "block_sparse_moe.router.layer"},
                                     {"ffn_gate_exps", "block_sparse_moe.experts.*.gate_proj"},
                                     {"ffn_up_exps", "block_sparse_moe.experts.*.up_proj"},
                                     {"ffn_down_exps", "block_sparse_moe.experts.*.down_proj"},
                                     {"ffn_gate_shexp", "shared_mlp.gate_proj"},
                                     {"ffn_up_shexp", "shared_mlp.up_proj"},
                                     {"ffn_down_shexp", "shared_mlp.down_proj"}};
constexpr GgufKey kGgufKeys[] = {{"embedding_scale", "embedding_multiplier"},
                                 {"residual_scale", "residual_multiplier"},
                                 {"attention.scale", "attention_multiplier"},
                                 {"logit_scale", "logits_scaling"}};

}  // namespace

const Family family_granite{.name = "granite",
                            .summary = "Granite 3: Llama with multipliers",
                            .aliases = kAliases,
                            .prefixes = llama::kPrefixes,
                            .splits = kSplits,
                            .gguf = {.arch = "granite",
                                     .other_archs = kGgufWithExperts,
                                     .more_keys = kGgufKeys,
                                     .more_layer_tensors = kGgufTensors,
                                     .experts = true,
                                     .paired = llama::kGgufPaired},
                            .parse_config = parse_config,
                            .tensor_table = granite_tensor_table,
                            .cache_needs = uniform_cache,
                            .embed = llama::embed,
                            .layer = llama::layer,
                            .final_norm = llama::final_norm};

}  // namespace kvasir
