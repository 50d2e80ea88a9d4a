// Gemma 2: a Gemma with norms before and after both halves of a layer, a window in every other layer, and soft caps on
// scores and logits (arXiv:2408.00118).
#include "arch/families/gemma2.h"

#include <array>
#include <cmath>

namespace kvasir {

extern const Family family_gemma2;

namespace gemma2 {

Result<float> parse_score_scale(const ConfigView& view, const ModelConfig& c, int layers_of_27b) {
  const double unsaid = c.layers == layers_of_27b ? static_cast<double>(c.hidden) / c.heads : c.head_dim;
  KVASIR_TRY(const double scalar, view.get_number_or("query_pre_attn_scalar", unsaid, 1e-3, 1e6));
  return static_cast<float>(1.0 / std::sqrt(scalar));
}

TensorTable tensor_table(const ModelConfig& c, std::vector<TensorSpec> (*layer)(const ModelConfig& c, int l)) {
  TensorTable table = llama::tensor_table(c, layer);
  table.head.front().less_one = true;
  return table;
}

}  // namespace gemma2

namespace {

constexpr int kLayersOf27B = 46;

Result<ModelConfig> parse_config(const ConfigView& view) {
  constexpr DecoderDefaults kDefaults{.heads = 8,
                                      .vocab = 256000,
                                      .kv_heads = 4,
                                      .head_dim = 256,
                                      .max_ctx = 8192,
                                      .tied_head = true,
                                      .activation = "gelu_pytorch_tanh"};
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_gemma2.name, kDefaults));
  if (!view.has("hidden_activation")) c.activation = Activation::gelu_tanh;
  KVASIR_TRY(c.score_scale, gemma2::parse_score_scale(view, c, kLayersOf27B));
  KVASIR_TRY(const double score_cap, view.get_number_or("attn_logit_softcapping", 50.0, 0.0, 1e6));
  KVASIR_TRY(const double logit_cap, view.get_number_or("final_logit_softcapping", 30.0, 0.0, 1e6));
  c.score_cap = view.is_null("attn_logit_softcapping") ? 0.0f : static_cast<float>(score_cap);
  c.logit_cap = view.is_null("final_logit_softcapping") ? 0.0f : static_cast<float>(logit_cap);
  c.embedding_scale = std::sqrt(static_cast<float>(c.hidden));
  KVASIR_TRY(const int64_t window, view.get_int_or("sliding_window", 4096, 0, 1 << 28));
  KVASIR_TRY(auto windows, stepped_windows(view, c.layers, window, 2));
  set_windows(std::move(windows), &c);
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  return c;
}

std::vector<TensorSpec> gemma2_layer_table(const ModelConfig& c, int l) {
  return llama::with_norms(c, l, gemma2::kNorms);
}

TensorTable gemma2_tensor_table(const ModelConfig& c) { return gemma2::tensor_table(c, gemma2_layer_table); }

constexpr std::array<std::string_view, 1> kAliases{"gemma2"};
constexpr GgufKey kGgufKeys[] = {{"attn_logit_softcapping", "attn_logit_softcapping"},
                                 {"final_logit_softcapping", "final_logit_softcapping"}};

}  // namespace

const Family family_gemma2{.name = "gemma2",
                           .summary = "Gemma 2: norms before and after, soft caps, a window in every other layer",
                           .aliases = kAliases,
                           .prefixes = llama::kPrefixes,
                           .gguf = {.arch = "gemma2", .more_keys = kGgufKeys, .more_layer_tensors = gemma2::kGgufNorms},
                           .parse_config = parse_config,
                           .tensor_table = gemma2_tensor_table,
                           .cache_needs = uniform_cache,
                           .embed = llama::embed,
                           .layer = llama::sandwich_layer,
                           .final_norm = llama::final_norm};

}  // namespace kvasir
