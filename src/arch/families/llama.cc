// Llama: RMSNorm, RoPE, grouped-query attention, SwiGLU; tied or untied head. Also llama2.c's files, whose heads hold
// their rotation pairs side by side.
#include <array>

#include <fmt/format.h>

#include "arch/blocks.h"
#include "arch/family.h"

namespace kvasir {

extern const Family family_llama;

namespace {

enum LayerRole {
  kAttnNorm,
  kQ,
  kK,
  kV,
  kO,
  kMlpNorm,
  kGate,
  kUp,
  kDown,
  kQBias,
  kKBias,
  kVBias,
  kOBias,
  kGateBias,
  kUpBias,
  kDownBias
};
enum HeadRole { kFinalNorm, kHead };

Result<ModelConfig> parse_config(const ConfigView& view) {
  ModelConfig c;
  const auto number = [&](const char* key, int64_t max) { return view.get_int(key, 1, max); };
  KVASIR_TRY(const int64_t hidden, number("hidden_size", 1 << 20));
  KVASIR_TRY(const int64_t layers, number("num_hidden_layers", 4096));
  KVASIR_TRY(const int64_t heads, number("num_attention_heads", 4096));
  KVASIR_TRY(const int64_t kv_heads, view.get_int_or("num_key_value_heads", heads, 1, 4096));
  KVASIR_TRY(const int64_t head_dim, view.get_int_or("head_dim", hidden / heads, 1, 1024));
  KVASIR_TRY(const int64_t ffn, number("intermediate_size", 1 << 22));
  KVASIR_TRY(const int64_t vocab, number("vocab_size", 1 << 22));
  KVASIR_TRY(const int64_t ctx, view.get_int_or("max_position_embeddings", 2048, 1, 1 << 28));
  KVASIR_TRY(const double eps, view.get_number_or("rms_norm_eps", 1e-6, 0.0, 1.0));
  KVASIR_TRY(const std::string act, view.get_string_or("hidden_act", "silu"));
  if (!view.has("head_dim") && hidden % heads != 0)
    return fail(fmt::format("{} channels do not divide into {} heads", hidden, heads), view.where());
  if (act != "silu") return fail("hidden_act \"" + act + "\" is not supported", view.where(), "a Llama with silu");
  c.family = family_llama.name;
  c.hidden = static_cast<int>(hidden);
  c.layers = static_cast<int>(layers);
  c.heads = static_cast<int>(heads);
  c.kv_heads = static_cast<int>(kv_heads);
  c.head_dim = static_cast<int>(head_dim);
  c.ffn = static_cast<int>(ffn);
  c.vocab = static_cast<int>(vocab);
  c.max_ctx = static_cast<int>(ctx);
  c.norm_eps = static_cast<float>(eps);
  KVASIR_TRY(c.tied_head, view.get_bool_or("tie_word_embeddings", false));
  KVASIR_TRY(c.attention_bias, view.get_bool_or("attention_bias", false));
  KVASIR_TRY(c.mlp_bias, view.get_bool_or("mlp_bias", false));
  KVASIR_TRY(c.rope, parse_rope(view));
  KVASIR_CHECK(parse_special_ids(view, &c));
  KVASIR_CHECK(check_config(c, view.where()));
  return c;
}

std::vector<TensorSpec> layer_table(const ModelConfig& c, int l) {
  const std::string p = "layers." + std::to_string(l) + ".";
  const int64_t q = int64_t{c.heads} * c.head_dim, kv = c.kv_dim(), ab = c.attention_bias, mb = c.mlp_bias;
  return {
      {p + "input_layernorm.weight", {c.hidden}},
      {p + "self_attn.q_proj.weight", {q, c.hidden}},
      {p + "self_attn.k_proj.weight", {kv, c.hidden}},
      {p + "self_attn.v_proj.weight", {kv, c.hidden}},
      {p + "self_attn.o_proj.weight", {c.hidden, q}},
      {p + "post_attention_layernorm.weight", {c.hidden}},
      {p + "mlp.gate_proj.weight", {c.ffn, c.hidden}},
      {p + "mlp.up_proj.weight", {c.ffn, c.hidden}},
      {p + "mlp.down_proj.weight", {c.hidden, c.ffn}},
      {p + "self_attn.q_proj.bias", {q}, false, ab != 0},
      {p + "self_attn.k_proj.bias", {kv}, false, ab != 0},
      {p + "self_attn.v_proj.bias", {kv}, false, ab != 0},
      {p + "self_attn.o_proj.bias", {c.hidden}, false, ab != 0},
      {p + "mlp.gate_proj.bias", {c.ffn}, false, mb != 0},
      {p + "mlp.up_proj.bias", {c.ffn}, false, mb != 0},
      {p + "mlp.down_proj.bias", {c.hidden}, false, mb != 0},
  };
}

TensorTable tensor_table(const ModelConfig& c) {
  TensorTable table;
  table.embed = {{"embed_tokens.weight", {c.vocab, c.hidden}}};
  for (int l = 0; l < c.layers; ++l) table.layers.push_back(layer_table(c, l));
  table.head = {{"norm.weight", {c.hidden}},
                {c.tied_head ? "embed_tokens.weight" : "lm_head.weight", {c.vocab, c.hidden}}};
  return table;
}

void embed(Pass& pass, const Weights& w) { embed_rows(pass, w.mat(0), pass.x); }

void layer(Pass& pass, int l, const Weights& w) {
  const ModelConfig& c = pass.config();
  Rows h = rms_norm(pass, pass.x, w.vec(kAttnNorm));
  pass.trace(l, "attention_norm", h);
  auto [q, k, v] =
      linears<3>(pass, h, {{{w.mat(kQ), w.vec(kQBias)}, {w.mat(kK), w.vec(kKBias)}, {w.mat(kV), w.vec(kVBias)}}});
  rope(pass, q, c.heads);
  rope(pass, k, c.kv_heads);
  pass.trace(l, "q", q), pass.trace(l, "k", k), pass.trace(l, "v", v);
  const Rows a = attend(pass, l, q, k, v);
  pass.trace(l, "attention", a);
  const Rows proj = linear(pass, a, {w.mat(kO), w.vec(kOBias)});
  pass.trace(l, "projection", proj);
  add(pass, pass.x, proj);
  pass.trace(l, "residual", pass.x);

  h = rms_norm(pass, pass.x, w.vec(kMlpNorm));
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

constexpr std::array<std::string_view, 1> kAliases{"llama"};
constexpr std::array<std::string_view, 2> kPrefixes{"model.", ""};

}  // namespace

const Family family_llama{.name = "llama",
                          .aliases = kAliases,
                          .prefixes = kPrefixes,
                          .parse_config = parse_config,
                          .tensor_table = tensor_table,
                          .cache_needs = uniform_cache,
                          .embed = embed,
                          .layer = layer,
                          .final_norm = final_norm};

}  // namespace kvasir
