// Cohere's Command R, Aya and Command R7B: LayerNorm without bias, attention and MLP on the same norm, interleaved
// rotation pairs, scaled logits. In Command R7B (cohere2) three of four layers have a window, and the others have no
// positions.
#include <array>

#include "arch/families/starcoder2.h"

namespace kvasir {

extern const Family family_cohere;

namespace {

constexpr int kStep = 4;
constexpr starcoder2::Names kNames{
    .mlp_norm = "", .gate = "mlp.gate_proj", .up = "mlp.up_proj", .down = "mlp.down_proj", .norm_bias = false};

Result<ModelConfig> parse_config(const ConfigView& file) {
  constexpr DecoderDefaults kDefaults{
      .max_ctx = 8192, .norm_eps = 1e-5, .tied_head = true, .eps_key = "layer_norm_eps"};
  ConfigView view = file;
  view.set("rope_interleaved", true);
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_cohere.name, kDefaults));
  KVASIR_TRY(const double logits, view.get_number_or("logit_scale", 0.0625, 1e-6, 1e6));
  c.logit_scale = static_cast<float>(logits);
  KVASIR_TRY(const bool normed, view.get_bool_or("use_qk_norm", false));
  if (normed)
    return fail(Error::unsupported, "norms of q and k without a bias (\"use_qk_norm\") are not supported", view.where(),
                "Command R without the plus");
  KVASIR_TRY(const int64_t window, view.get_int_or("sliding_window", 0, 0, 1 << 28));
  KVASIR_TRY(const int64_t step, view.get_int_or("sliding_window_pattern", kStep, 1, 4096));
  KVASIR_TRY(auto windows, stepped_windows(view, c.layers, window, step));
  set_windows(std::move(windows), &c);
  for (int of_layer : c.windows) c.rope_kinds.push_back(of_layer != 0 ? 0 : -1);
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  return c;
}

TensorTable cohere_tensor_table(const ModelConfig& c) { return starcoder2::tensor_table(c, kNames); }

constexpr std::array<std::string_view, 2> kAliases{"cohere", "cohere2"};
constexpr std::array<std::string_view, 1> kGgufNewer{"cohere2"};
constexpr GgufKey kGgufKeys[] = {{"logit_scale", "logit_scale"}};

}  // namespace

const Family family_cohere{
    .name = "cohere",
    .summary = "Command R, Aya, Command R7B: attention and MLP of one LayerNorm",
    .aliases = kAliases,
    .prefixes = llama::kPrefixes,
    .gguf = {.arch = "command-r", .other_archs = kGgufNewer, .keys = kGgufLayerNormKeys, .more_keys = kGgufKeys},
    .parse_config = parse_config,
    .tensor_table = cohere_tensor_table,
    .cache_needs = uniform_cache,
    .embed = llama::embed,
    .layer = starcoder2::parallel_layer,
    .final_norm = starcoder2::final_norm};

}  // namespace kvasir
