// Gemma 3: a Gemma 2 without caps and with a norm on every head of q and k. Five of six layers have a window; those use
// a theta of their own, without scaling (arXiv:2503.19786).
#include <array>
#include <cmath>

#include "arch/families/gemma2.h"

namespace kvasir {

extern const Family family_gemma3;

namespace {

constexpr int kLayersOf27B = 62, kStep = 6;

// Files may leave out the theta of layers with a window, in either spelling; it is 10000 then.
ConfigView with_local_theta(const ConfigView& file) {
  ConfigView view = file;
  const auto parameters = view.object("rope_parameters");
  const bool by_layer = parameters && parameters->has("sliding_attention");
  if (!by_layer && !view.has("rope_local_base_freq")) view.set("rope_local_base_freq", 10000.0);
  return view;
}

Result<ModelConfig> parse_config(const ConfigView& file) {
  constexpr DecoderDefaults kDefaults{.heads = 8,
                                      .vocab = 262208,
                                      .kv_heads = 4,
                                      .head_dim = 256,
                                      .max_ctx = 131072,
                                      .theta = 1e6,
                                      .tied_head = true,
                                      .activation = "gelu_pytorch_tanh"};
  const ConfigView view = with_local_theta(file);
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_gemma3.name, kDefaults));
  KVASIR_TRY(c.score_scale, gemma2::parse_score_scale(view, c, kLayersOf27B));
  KVASIR_TRY(const double logit_cap, view.get_number_or("final_logit_softcapping", 0.0, 0.0, 1e6));
  c.logit_cap = static_cast<float>(logit_cap);
  c.embedding_scale = std::sqrt(static_cast<float>(c.hidden));
  KVASIR_TRY(const int64_t window, view.get_int_or("sliding_window", 4096, 0, 1 << 28));
  KVASIR_TRY(const int64_t step, view.get_int_or("sliding_window_pattern", kStep, 1, 4096));
  KVASIR_TRY(auto windows, stepped_windows(view, c.layers, window, step));
  set_windows(std::move(windows), &c);
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  return c;
}

std::vector<TensorSpec> gemma3_layer_table(const ModelConfig& c, int l) {
  llama::NormNames names = gemma2::kNorms;
  names.q = "self_attn.q_norm";
  names.k = "self_attn.k_norm";
  return llama::with_norms(c, l, names);
}

TensorTable gemma3_tensor_table(const ModelConfig& c) { return gemma2::tensor_table(c, gemma3_layer_table); }

constexpr std::array<std::string_view, 2> kAliases{"gemma3_text", "gemma3"};
constexpr GgufKey kGgufKeys[] = {{"final_logit_softcapping", "final_logit_softcapping"},
                                 {"rope.freq_base_swa", "rope_local_base_freq"}};

}  // namespace

const Family family_gemma3{.name = "gemma3",
                           .summary = "Gemma 3: Gemma 2 with normed heads, five of six layers with a window",
                           .aliases = kAliases,
                           .prefixes = llama::kPrefixes,
                           .gguf = {.arch = "gemma3", .more_keys = kGgufKeys, .more_layer_tensors = gemma2::kGgufNorms},
                           .parse_config = parse_config,
                           .tensor_table = gemma3_tensor_table,
                           .cache_needs = uniform_cache,
                           .embed = llama::embed,
                           .layer = llama::sandwich_layer,
                           .final_norm = llama::final_norm};

}  // namespace kvasir
