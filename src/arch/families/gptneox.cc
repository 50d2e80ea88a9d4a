// GPT-NeoX, Pythia, RedPajama: attention and MLP each with a LayerNorm of the same x, or one after the other; q, k and
// v in one matrix; partial rotary (arXiv:2204.06745).
#include <array>

#include "arch/families/starcoder2.h"
#include "arch/layer_ops.h"

namespace kvasir {

extern const Family family_gptneox;

namespace {

enum LayerRole {
  kAttnNorm,
  kAttnNormBias,
  kQkv,
  kQkvBias,
  kO,
  kOBias,
  kMlpNorm,
  kMlpNormBias,
  kUp,
  kUpBias,
  kDown,
  kDownBias
};

// Folders name the exact GELU. GGUF files name no activation and mean GELU's tanh formula.
Result<ModelConfig> parse_config(const ConfigView& file) {
  ConfigView view = file;
  const DecoderDefaults defaults{.max_ctx = 2048,
                                 .norm_eps = 1e-5,
                                 .activation = from_gguf(view) ? "gelu_pytorch_tanh" : "gelu",
                                 .eps_key = "layer_norm_eps"};
  KVASIR_TRY(const double theta, view.get_number_or("rotary_emb_base", 10000.0, 1.0, 1e12));
  if (!view.has("rope_theta")) view.set("rope_theta", theta);
  if (!from_gguf(view) && !view.has("rotary_pct")) view.set("rotary_pct", 0.25);
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_gptneox.name, defaults));
  KVASIR_TRY(c.parallel_residual, view.get_bool_or("use_parallel_residual", true));
  return c;
}

std::vector<TensorSpec> layer_table(const ModelConfig& c, int l) {
  const std::string p = "layers." + std::to_string(l) + ".";
  const int64_t d = c.hidden, f = c.ffn;
  return {
      {p + "input_layernorm.weight", {d}},
      {p + "input_layernorm.bias", {d}},
      {.name = p + "attention.query_key_value.weight", .shape = {3 * d, d}, .by_head = c.heads},
      {.name = p + "attention.query_key_value.bias", .shape = {3 * d}, .by_head = c.heads},
      {p + "attention.dense.weight", {d, d}},
      {p + "attention.dense.bias", {d}},
      {p + "post_attention_layernorm.weight", {d}},
      {p + "post_attention_layernorm.bias", {d}},
      {p + "mlp.dense_h_to_4h.weight", {f, d}},
      {p + "mlp.dense_h_to_4h.bias", {f}},
      {p + "mlp.dense_4h_to_h.weight", {d, f}},
      {p + "mlp.dense_4h_to_h.bias", {d}},
  };
}

TensorTable gptneox_tensor_table(const ModelConfig& c) {
  TensorTable table;
  table.embed = {{"embed_in.weight", {c.vocab, c.hidden}}};
  for (int l = 0; l < c.layers; ++l) table.layers.push_back(layer_table(c, l));
  table.head = {{"final_layer_norm.weight", {c.hidden}},
                {"final_layer_norm.bias", {c.hidden}},
                {c.tied_head ? "embed_in.weight" : "embed_out.weight", {c.vocab, c.hidden}}};
  return table;
}

Rows mlp(Pass& pass, const Weights& w) {
  const Rows h = layer_norm(pass, pass.x, w.vec(kMlpNorm), w.vec(kMlpNormBias));
  const Rows up = activate(pass, pass.config().activation, linear(pass, h, {w.mat(kUp), w.vec(kUpBias)}));
  return linear(pass, up, {w.mat(kDown), w.vec(kDownBias)});
}

void gptneox_layer(Pass& pass, int l, const Weights& w) {
  const int64_t d = pass.config().hidden;
  const Rows h = layer_norm(pass, pass.x, w.vec(kAttnNorm), w.vec(kAttnNormBias));
  const Rows qkv = linear(pass, h, {w.mat(kQkv), w.vec(kQkvBias)});
  const Rows q = qkv.columns(0, d), k = qkv.columns(d, d), v = qkv.columns(2 * d, d);
  rope(pass, l, q, k);
  const Rows a = linear(pass, attend(pass, l, q, k, v), {w.mat(kO), w.vec(kOBias)});
  if (pass.config().parallel_residual) {
    const Rows m = mlp(pass, w);
    add(pass, pass.x, a);
    add(pass, pass.x, m);
  } else {
    add(pass, pass.x, a);
    add(pass, pass.x, mlp(pass, w));
  }
  pass.trace(l, "block", pass.x);
}

constexpr std::array<std::string_view, 1> kAliases{"gpt_neox"};
constexpr std::array<std::string_view, 2> kPrefixes{"gpt_neox.", ""};
constexpr std::array<std::string_view, 2> kMasks{".attention.bias", ".attention.masked_bias"};
constexpr GgufKey kGgufKeys[] = {{"use_parallel_residual", "use_parallel_residual"}};
constexpr GgufName kGgufNames[] = {
    {"token_embd", "gpt_neox.embed_in"}, {"output_norm", "gpt_neox.final_layer_norm"}, {"output", "embed_out"}};
constexpr GgufName kGgufTensors[] = {
    {"attn_norm", "input_layernorm"},   {"attn_qkv", "attention.query_key_value"},
    {"attn_output", "attention.dense"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_up", "mlp.dense_h_to_4h"},    {"ffn_down", "mlp.dense_4h_to_h"},
};

}  // namespace

const Family family_gptneox{.name = "gptneox",
                            .summary = "GPT-NeoX, Pythia: LayerNorms of the same x, part of each head rotated",
                            .aliases = kAliases,
                            .prefixes = kPrefixes,
                            .buffers = kMasks,
                            .gguf = {.arch = "gptneox",
                                     .keys = kGgufLayerNormKeys,
                                     .more_keys = kGgufKeys,
                                     .tensors = kGgufNames,
                                     .layer_tensors = kGgufTensors,
                                     .layers = "gpt_neox.layers."},
                            .parse_config = parse_config,
                            .tensor_table = gptneox_tensor_table,
                            .cache_needs = uniform_cache,
                            .embed = llama::embed,
                            .layer = gptneox_layer,
                            .final_norm = starcoder2::final_norm};

}  // namespace kvasir
