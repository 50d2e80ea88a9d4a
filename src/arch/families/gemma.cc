// Gemma: a Llama with a GELU gate, gains stored minus one, embeddings times sqrt(hidden), and a tied head
// (arXiv:2403.08295).
#include <array>
#include <cmath>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_gemma;

namespace {

// As in transformers, "hidden_act" is ignored: the first files gave it as "gelu".
Result<ModelConfig> parse_config(const ConfigView& view) {
  constexpr DecoderDefaults kDefaults{
      .kv_heads = 16, .head_dim = 256, .max_ctx = 8192, .tied_head = true, .activation = "gelu_pytorch_tanh"};
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_gemma.name, kDefaults));
  if (!view.has("hidden_activation")) c.activation = Activation::gelu_tanh;
  c.embedding_scale = std::sqrt(static_cast<float>(c.hidden));
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  return c;
}

std::vector<TensorSpec> gemma_layer_table(const ModelConfig& c, int l) {
  std::vector<TensorSpec> table = llama::layer_table(c, l);
  table[llama::kAttnNorm].less_one = table[llama::kMlpNorm].less_one = true;
  return table;
}

TensorTable gemma_tensor_table(const ModelConfig& c) {
  TensorTable table = llama::tensor_table(c, gemma_layer_table);
  table.head.front().less_one = true;
  return table;
}

constexpr std::array<std::string_view, 1> kAliases{"gemma"};

}  // namespace

const Family family_gemma{.name = "gemma",
                          .summary = "Gemma: Llama with a GELU gate and scaled embeddings",
                          .aliases = kAliases,
                          .prefixes = llama::kPrefixes,
                          .gguf = {.arch = "gemma"},
                          .parse_config = parse_config,
                          .tensor_table = gemma_tensor_table,
                          .cache_needs = uniform_cache,
                          .embed = llama::embed,
                          .layer = llama::layer,
                          .final_norm = llama::final_norm};

}  // namespace kvasir
