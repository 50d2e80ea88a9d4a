// Phi-3.5-MoE: LayerNorm, biases of q, k, v, o and the head, LongRoPE, experts by SparseMixer (arXiv:2404.14219).
#include <array>

#include <fmt/format.h>

#include "arch/families/starcoder2.h"

namespace kvasir {

extern const Family family_phimoe;

namespace {

constexpr starcoder2::Names kNames{.head_bias = true};
constexpr ExpertNames kExpertNames{
    .router = "block_sparse_moe.gate", .expert = "block_sparse_moe.experts.*.", .gate = "w1", .up = "w3", .down = "w2"};
constexpr int kUsed = 2;

// Reads the factor of cosines and sines. transformers has one for short sessions and one for long ones; only equal ones
// are supported.
Result<void> parse_magnitude(const ConfigView& view, ModelConfig* c) {
  const auto unsaid = static_cast<double>(c->ropes.front().magnitude);
  for (const char* name : {"rope_parameters", "rope_scaling"}) {
    const auto scaling = view.object(name);
    if (!scaling) continue;
    KVASIR_TRY(const double brief, scaling->get_number_or("short_mscale", unsaid, 1e-3, 1e3));
    KVASIR_TRY(const double longer, scaling->get_number_or("long_mscale", unsaid, 1e-3, 1e3));
    if (brief != longer)
      return fail(Error::unsupported, fmt::format("\"short_mscale\" {} and \"long_mscale\" {} differ", brief, longer),
                  view.where(), "a model whose two factors are equal");
    c->ropes.front().magnitude = static_cast<float>(brief);
  }
  return {};
}

// Scores count as near if they are within twice the noise of training.
Result<void> parse_routing(const ConfigView& view, ModelConfig* c) {
  KVASIR_CHECK(parse_experts(view, {.gate = ExpertGate::softmax_of_near, .normalised = false, .used = kUsed}, c));
  KVASIR_TRY(const double noise, view.get_number_or("router_jitter_noise", 0.01, 0.0, 1.0));
  c->experts.nearness = static_cast<float>(2 * noise);
  if (c->experts.count != 0 && c->experts.used == kUsed) return {};
  return fail(Error::unsupported,
              fmt::format("a token uses {} of {} experts, which is not supported", c->experts.used, c->experts.count),
              view.where(), fmt::format("a model whose tokens use {} experts", kUsed));
}

Result<ModelConfig> parse_config(const ConfigView& view) {
  constexpr DecoderDefaults kDefaults{.kv_heads = 8, .max_ctx = 131072, .norm_eps = 1e-5, .theta = 1e6};
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_phimoe.name, kDefaults));
  KVASIR_CHECK(parse_magnitude(view, &c));
  KVASIR_TRY(const int64_t window, view.get_int_or("sliding_window", 0, 0, 1 << 28));
  KVASIR_TRY(auto windows, windows_by_layer(view, c.layers, window));
  set_windows(std::move(windows), &c);
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  KVASIR_TRY(const bool head_bias, view.get_bool_or("lm_head_bias", from_gguf(view)));
  if (!head_bias)
    return fail(Error::unsupported, "\"lm_head_bias\" is false, which is not supported", view.where(),
                "a model whose head has a bias");
  KVASIR_CHECK(parse_routing(view, &c));
  return c;
}

TensorTable phimoe_tensor_table(const ModelConfig& c) {
  TensorTable table = starcoder2::tensor_table(c, kNames);
  for (int l = 0; l < c.layers; ++l) {
    std::vector<TensorSpec>& specs = table.layers[static_cast<size_t>(l)];
    specs = llama::with_experts(c, l, kExpertNames, std::move(specs));
  }
  return table;
}

constexpr std::array<std::string_view, 1> kAliases{"phimoe"};
// The same as in Phi-3's tokenizer.json; the vocabulary is the same.
constexpr std::array<std::string_view, 3> kPlainTokens{"<unk>", "<s>", "<|endoftext|>"};
constexpr GgufName kGgufTensors[] = {{"ffn_gate_inp", "block_sparse_moe.gate"},
                                     {"ffn_gate_exps", "block_sparse_moe.experts.*.w1"},
                                     {"ffn_up_exps", "block_sparse_moe.experts.*.w3"},
                                     {"ffn_down_exps", "block_sparse_moe.experts.*.w2"}};

}  // namespace

const Family family_phimoe{
    .name = "phimoe",
    .summary = "Phi-3.5-MoE: LayerNorm, two experts with shares of their own",
    .aliases = kAliases,
    .prefixes = llama::kPrefixes,
    .gguf = {.arch = "phimoe", .more_layer_tensors = kGgufTensors, .experts = true, .rstrip_but = kPlainTokens},
    .parse_config = parse_config,
    .tensor_table = phimoe_tensor_table,
    .cache_needs = uniform_cache,
    .embed = llama::embed,
    .layer = starcoder2::layer,
    .final_norm = starcoder2::final_norm};

}  // namespace kvasir
