// OLMo 2 and 3: a Llama with norms after both halves of a layer instead of before, and on whole rows of q and k
// (arXiv:2501.00656). In OLMo 3 three of four layers have a window; those rotate without YaRN.
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_olmo2;

namespace {

Result<ModelConfig> parse_config(const ConfigView& view) {
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_olmo2.name, {.norm_eps = 1e-5, .theta = 500000.0}));
  c.qk_norm_rows = true;
  KVASIR_TRY(const int64_t window, view.get_int_or("sliding_window", 0, 0, 1 << 28));
  KVASIR_TRY(auto windows, stepped_windows(view, c.layers, window, 4));
  if (window != 0 && c.ropes.size() == 1 && c.ropes[0].yarn) {
    RopeConfig unscaled = c.ropes[0];
    unscaled.yarn.reset();
    unscaled.magnitude = 1.0f;
    c.ropes.push_back(unscaled);
  }
  set_windows(std::move(windows), &c);
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  return c;
}

std::vector<TensorSpec> olmo2_layer_table(const ModelConfig& c, int l) {
  return llama::with_norms(c, l, llama::kPostNorms);
}

TensorTable olmo2_tensor_table(const ModelConfig& c) { return llama::tensor_table(c, olmo2_layer_table); }

constexpr std::array<std::string_view, 2> kAliases{"olmo2", "olmo3"};

}  // namespace

const Family family_olmo2{.name = "olmo2",
                          .summary = "OLMo 2 and 3: Llama with norms after its halves, and of whole rows of q and k",
                          .aliases = kAliases,
                          .prefixes = llama::kPrefixes,
                          .gguf = {.arch = "olmo2", .more_layer_tensors = llama::kGgufPostNorms},
                          .parse_config = parse_config,
                          .tensor_table = olmo2_tensor_table,
                          .cache_needs = uniform_cache,
                          .embed = llama::embed,
                          .layer = llama::post_norm_layer,
                          .final_norm = llama::final_norm};

}  // namespace kvasir
