// StarCoder 2: LayerNorm, biases everywhere, an MLP of two matrices with GELU, a window (arXiv:2402.19173).
#include "arch/families/starcoder2.h"

#include <array>

#include "arch/layer_ops.h"

namespace kvasir {

extern const Family family_starcoder2;

namespace starcoder2 {
namespace {

using namespace llama;
enum HeadRole { kFinalNorm, kFinalNormBias };

void rename(TensorSpec& spec, const std::string& prefix, std::string_view name, std::string_view ending) {
  spec.present = spec.present && !name.empty();
  spec.name = prefix;
  spec.name.append(name).append(ending);
}

}  // namespace

std::vector<TensorSpec> layer_table(const ModelConfig& c, int l, const Names& names) {
  std::vector<TensorSpec> table =
      with_norms(c, l, {.before_attention = names.attn_norm, .before_mlp = names.mlp_norm, .biases = names.norm_bias});
  const std::string p = "layers." + std::to_string(l) + ".";
  const auto weight_and_bias = [&](int weight, int bias, std::string_view name) {
    rename(table[static_cast<size_t>(weight)], p, name, ".weight");
    rename(table[static_cast<size_t>(bias)], p, name, ".bias");
  };
  weight_and_bias(kO, kOBias, names.o);
  weight_and_bias(kGate, kGateBias, names.gate);
  weight_and_bias(kUp, kUpBias, names.up);
  weight_and_bias(kDown, kDownBias, names.down);
  return table;
}

TensorTable tensor_table(const ModelConfig& c, const Names& names) {
  TensorTable table = llama::tensor_table(c);
  for (int l = 0; l < c.layers; ++l) table.layers[static_cast<size_t>(l)] = layer_table(c, l, names);
  const TensorSpec head = table.head.back();
  const std::string norm(names.final_norm);
  table.head = {{norm + ".weight", {c.hidden}},
                {.name = norm + ".bias", .shape = {c.hidden}, .present = names.norm_bias},
                {.name = "lm_head.bias", .shape = {c.vocab}, .present = names.head_bias},
                head};
  table.head_bias = 2;
  return table;
}

void layer(Pass& pass, int l, const Weights& w) {
  Rows h = layer_norm(pass, pass.x, w.vec(kAttnNorm), w.vec(kAttnNormBias));
  add(pass, pass.x, attention(pass, l, h, w));
  pass.trace(l, "residual", pass.x);
  h = layer_norm(pass, pass.x, w.vec(kMlpNorm), w.vec(kMlpNormBias));
  add(pass, pass.x, mlp(pass, l, h, w));
  pass.trace(l, "block", pass.x);
}

void parallel_layer(Pass& pass, int l, const Weights& w) {
  const Rows h = layer_norm(pass, pass.x, w.vec(kAttnNorm), w.vec(kAttnNormBias));
  const Rows a = attention(pass, l, h, w);
  const Rows m = mlp(pass, l, h, w);
  add(pass, pass.x, a);
  add(pass, pass.x, m);
  pass.trace(l, "block", pass.x);
}

Rows final_norm(Pass& pass, Rows x, const Weights& w) {
  return layer_norm(pass, x, w.vec(kFinalNorm), w.vec(kFinalNormBias));
}

}  // namespace starcoder2

namespace {

constexpr starcoder2::Names kNames{.up = "mlp.c_fc", .down = "mlp.c_proj"};

// A GGUF file of a model with a window does not name the window.
Result<ModelConfig> parse_config(const ConfigView& file) {
  constexpr DecoderDefaults kDefaults{.kv_heads = 2,
                                      .max_ctx = 4096,
                                      .norm_eps = 1e-5,
                                      .tied_head = true,
                                      .activation = "gelu_pytorch_tanh",
                                      .eps_key = "layer_norm_eps"};
  ConfigView view = file;
  KVASIR_TRY(const double eps, view.get_number_or("norm_epsilon", kDefaults.norm_eps, 0.0, 1.0));
  if (!from_gguf(view)) view.set("layer_norm_eps", eps);
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_starcoder2.name, kDefaults));
  KVASIR_TRY(const int64_t window, view.get_int_or("sliding_window", 0, 0, 1 << 28));
  KVASIR_TRY(auto windows, windows_by_layer(view, c.layers, window));
  set_windows(std::move(windows), &c);
  KVASIR_TRY(const bool biased, view.get_bool_or("use_bias", true));
  c.qkv_bias = c.o_bias = c.mlp_bias = biased;
  return c;
}

TensorTable starcoder2_tensor_table(const ModelConfig& c) { return starcoder2::tensor_table(c, kNames); }

constexpr std::array<std::string_view, 1> kAliases{"starcoder2"};
constexpr GgufName kGgufTensors[] = {{"ffn_up", "mlp.c_fc"}, {"ffn_down", "mlp.c_proj"}};

}  // namespace

const Family family_starcoder2{
    .name = "starcoder2",
    .summary = "StarCoder 2: LayerNorm, GELU, biases everywhere",
    .aliases = kAliases,
    .prefixes = llama::kPrefixes,
    .gguf = {.arch = "starcoder2", .keys = kGgufLayerNormKeys, .more_layer_tensors = kGgufTensors},
    .parse_config = parse_config,
    .tensor_table = starcoder2_tensor_table,
    .cache_needs = uniform_cache,
    .embed = llama::embed,
    .layer = starcoder2::layer,
    .final_norm = starcoder2::final_norm};

}  // namespace kvasir
