// Llama: RMSNorm, RoPE, grouped-query attention, SwiGLU; tied or untied head. Also Mistral, which is a Llama with a
// window, and llama2.c's files, whose heads hold their rotation pairs side by side.
#include "arch/families/llama.h"

#include <array>

#include "arch/blocks.h"

namespace kvasir {

extern const Family family_llama;

namespace llama {

namespace {

constexpr std::string_view kMistral = "mistral";

// A Mistral file without the key means 4096; one that says null means no window. A Llama has none, and GGUF files call
// both a Llama.
Result<std::vector<int>> parse_windows(const ConfigView& view, int layers, bool mistral) {
  KVASIR_TRY(const bool from_gguf, view.get_bool_or(kGgufWindow, false));
  if (!mistral && !from_gguf) return windows_by_layer(view, layers, 0);
  const int64_t unsaid = mistral && !view.is_null("sliding_window") ? 4096 : 0;
  KVASIR_TRY(const int64_t window, view.get_int_or("sliding_window", unsaid, 0, 1 << 28));
  return windows_by_layer(view, layers, window);
}

Result<ModelConfig> parse_config(const ConfigView& view) {
  const bool mistral = view.get_string_or("model_type", "").value_or("") == kMistral;
  const DecoderDefaults defaults = mistral ? DecoderDefaults{.kv_heads = 8, .max_ctx = 131072} : DecoderDefaults{};
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_llama.name, defaults));
  KVASIR_TRY(c.windows, parse_windows(view, c.layers, mistral));
  KVASIR_CHECK(parse_attention_biases(view, &c));
  KVASIR_TRY(c.mlp_bias, view.get_bool_or("mlp_bias", false));
  return c;
}

enum HeadRole { kFinalNorm };

}  // namespace

Result<void> parse_attention_biases(const ConfigView& view, ModelConfig* c) {
  KVASIR_TRY(c->qkv_bias, view.get_bool_or("attention_bias", false));
  KVASIR_TRY(c->o_bias, view.get_bool_or(kGgufOutputBias, c->qkv_bias));
  KVASIR_TRY(c->sparse_biases, view.get_bool_or(kGgufSparseBiases, false));
  return {};
}

std::vector<TensorSpec> layer_table(const ModelConfig& c, int l) {
  const std::string p = "layers." + std::to_string(l) + ".";
  const int64_t q = int64_t{c.heads} * c.head_dim, kv = c.kv_dim();
  const auto bias = [&](const char* name, int64_t size, bool present) {
    return TensorSpec{.name = p + name, .shape = {size}, .present = present, .optional = c.sparse_biases};
  };
  return {
      {p + "input_layernorm.weight", {c.hidden}},        {p + "self_attn.q_proj.weight", {q, c.hidden}},
      {p + "self_attn.k_proj.weight", {kv, c.hidden}},   {p + "self_attn.v_proj.weight", {kv, c.hidden}},
      {p + "self_attn.o_proj.weight", {c.hidden, q}},    {p + "post_attention_layernorm.weight", {c.hidden}},
      {p + "mlp.gate_proj.weight", {c.ffn, c.hidden}},   {p + "mlp.up_proj.weight", {c.ffn, c.hidden}},
      {p + "mlp.down_proj.weight", {c.hidden, c.ffn}},   bias("self_attn.q_proj.bias", q, c.qkv_bias),
      bias("self_attn.k_proj.bias", kv, c.qkv_bias),     bias("self_attn.v_proj.bias", kv, c.qkv_bias),
      bias("self_attn.o_proj.bias", c.hidden, c.o_bias), bias("mlp.gate_proj.bias", c.ffn, c.mlp_bias),
      bias("mlp.up_proj.bias", c.ffn, c.mlp_bias),       bias("mlp.down_proj.bias", c.hidden, c.mlp_bias),
  };
}

TensorTable tensor_table(const ModelConfig& c, std::vector<TensorSpec> (*layer)(const ModelConfig& c, int l)) {
  TensorTable table;
  table.embed = {{"embed_tokens.weight", {c.vocab, c.hidden}}};
  for (int l = 0; l < c.layers; ++l) table.layers.push_back(layer(c, l));
  table.head = {{"norm.weight", {c.hidden}},
                {c.tied_head ? "embed_tokens.weight" : "lm_head.weight", {c.vocab, c.hidden}}};
  return table;
}

TensorTable tensor_table(const ModelConfig& c) { return tensor_table(c, layer_table); }

void embed(Pass& pass, const Weights& w) { embed_rows(w.mat(0), pass.x); }

void layer(Pass& pass, int l, const Weights& w) {
  const Rows h = rms_norm(pass, pass.x, w.vec(kAttnNorm));
  pass.trace(l, "attention_norm", h);
  auto [q, k, v] =
      linears<3>(pass, h, {{{w.mat(kQ), w.vec(kQBias)}, {w.mat(kK), w.vec(kKBias)}, {w.mat(kV), w.vec(kVBias)}}});
  rope(pass, q, k);
  pass.trace(l, "q", q), pass.trace(l, "k", k), pass.trace(l, "v", v);
  const Rows a = attend(pass, l, q, k, v);
  pass.trace(l, "attention", a);
  const Rows proj = linear(pass, a, {w.mat(kO), w.vec(kOBias)});
  pass.trace(l, "projection", proj);
  add(pass, pass.x, proj);
  pass.trace(l, "residual", pass.x);
  mlp(pass, l, w);
}

void mlp(Pass& pass, int l, const Weights& w) {
  const Rows h = rms_norm(pass, pass.x, w.vec(kMlpNorm));
  pass.trace(l, "mlp_norm", h);
  auto [gate, up] = linears<2>(pass, h, {{{w.mat(kGate), w.vec(kGateBias)}, {w.mat(kUp), w.vec(kUpBias)}}});
  pass.trace(l, "gate", gate), pass.trace(l, "up", up);
  const Rows m = swiglu(pass, gate, up);
  pass.trace(l, "swiglu", m);
  const Rows out = linear(pass, m, {w.mat(kDown), w.vec(kDownBias)});
  pass.trace(l, "mlp", out);
  add(pass, pass.x, out);
  pass.trace(l, "block", pass.x);
}

Rows final_norm(Pass& pass, Rows x, const Weights& w) { return rms_norm(pass, x, w.vec(kFinalNorm)); }

namespace {
constexpr std::array<std::string_view, 2> kAliases{"llama", kMistral};
constexpr std::array<std::string_view, 2> kGgufPaired{"attn_q", "attn_k"};
}  // namespace

}  // namespace llama

const Family family_llama{.name = "llama",
                          .summary = "Llama 1 to 3, Mistral, SmolLM2, TinyLlama: RMSNorm, RoPE, grouped heads, SwiGLU",
                          .aliases = llama::kAliases,
                          .prefixes = llama::kPrefixes,
                          .gguf = {.arch = "llama", .paired = llama::kGgufPaired},
                          .parse_config = llama::parse_config,
                          .tensor_table = llama::tensor_table,
                          .cache_needs = uniform_cache,
                          .embed = llama::embed,
                          .layer = llama::layer,
                          .final_norm = llama::final_norm};

}  // namespace kvasir
