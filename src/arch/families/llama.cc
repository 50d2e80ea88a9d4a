// Llama: RMSNorm, RoPE, GQA, SwiGLU, tied or untied head. Also Mistral (a Llama with a window), Mixtral (with experts,
// arXiv:2401.04088), and llama2.c's files (interleaved rotation pairs).
#include "arch/families/llama.h"

#include <array>

#include "arch/layer_ops.h"

namespace kvasir {

extern const Family family_llama;

namespace llama {

namespace {

constexpr std::string_view kMistral = "mistral", kMixtral = "mixtral";

// Windows if the file omits "sliding_window": Mistral 4096, Mixtral and Llama none. null means no window. GGUF files
// call all three a Llama, and have a window if they name one.
Result<std::vector<int>> parse_windows(const ConfigView& view, int layers, std::string_view type) {
  KVASIR_TRY(const bool from_gguf, view.get_bool_or(kGgufWindow, false));
  if (type != kMistral && type != kMixtral && !from_gguf) return windows_by_layer(view, layers, 0);
  const int64_t unsaid = type == kMistral && !view.is_null("sliding_window") ? 4096 : 0;
  KVASIR_TRY(const int64_t window, view.get_int_or("sliding_window", unsaid, 0, 1 << 28));
  return windows_by_layer(view, layers, window);
}

Result<ModelConfig> parse_config(const ConfigView& view) {
  const std::string type = view.get_string_or("model_type", "").value_or("");
  KVASIR_TRY(const bool internlm_bias, view.get_bool_or("bias", false));
  const DecoderDefaults defaults =
      type == kMistral   ? DecoderDefaults{.kv_heads = 8, .max_ctx = 131072}
      : type == kMixtral ? DecoderDefaults{.kv_heads = 8, .max_ctx = 131072, .norm_eps = 1e-5, .theta = 1e6}
                         : DecoderDefaults{};
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_llama.name, defaults));
  KVASIR_TRY(auto windows, parse_windows(view, c.layers, type));
  set_windows(std::move(windows), &c);
  KVASIR_CHECK(parse_attention_biases(view, &c));
  if (internlm_bias) c.qkv_bias = c.o_bias = true;
  KVASIR_TRY(c.mlp_bias, view.get_bool_or("mlp_bias", false));
  KVASIR_CHECK(parse_experts(view, {.gate = ExpertGate::softmax_of_chosen, .normalised = false}, &c));
  return c;
}

constexpr ExpertNames kMixtralNames{
    .router = "block_sparse_moe.gate", .expert = "block_sparse_moe.experts.*.", .gate = "w1", .up = "w3", .down = "w2"};

std::vector<TensorSpec> any_layer_table(const ModelConfig& c, int l) {
  return c.has_experts(l) ? with_experts(c, l, kMixtralNames, with_norms(c, l, {})) : layer_table(c, l);
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

std::vector<TensorSpec> with_norms(const ModelConfig& c, int l, const NormNames& names) {
  std::vector<TensorSpec> table = layer_table(c, l);
  const auto vector = [&](std::string_view name, std::string_view ending, int64_t size) {
    TensorSpec spec{.name = "layers." + std::to_string(l) + ".", .shape = {size}, .present = !name.empty()};
    spec.name.append(name).append(ending);
    return spec;
  };
  const auto norm = [&](std::string_view name, int64_t size) {
    TensorSpec spec = vector(name, ".weight", size);
    spec.less_one = names.less_one;
    return spec;
  };
  const auto width = [&](int heads) { return int64_t{c.qk_norm_rows ? heads : 1} * c.head_dim; };
  table[kAttnNorm] = norm(names.before_attention, c.hidden);
  table[kMlpNorm] = norm(names.before_mlp, c.hidden);
  table.push_back(norm(names.q, width(c.heads)));
  table.push_back(norm(names.k, width(c.kv_heads)));
  table.push_back(norm(names.after_attention, c.hidden));
  table.push_back(norm(names.after_mlp, c.hidden));
  for (const std::string_view name : {names.before_attention, names.before_mlp})
    table.push_back(vector(names.biases ? name : "", ".bias", c.hidden));
  return table;
}

std::vector<TensorSpec> with_experts(const ModelConfig& c, int l, const ExpertNames& names,
                                     std::vector<TensorSpec> table) {
  if (!c.has_experts(l)) return table;
  for (int role : {kGate, kUp, kDown, kGateBias, kUpBias, kDownBias}) table[static_cast<size_t>(role)].present = false;
  add_experts(c, l, names, &table);
  return table;
}

TensorTable tensor_table(const ModelConfig& c, std::vector<TensorSpec> (*layer)(const ModelConfig& c, int l)) {
  TensorTable table;
  table.embed = {{"embed_tokens.weight", {c.vocab, c.hidden}}};
  for (int l = 0; l < c.layers; ++l) table.layers.push_back(layer(c, l));
  table.head = {{"norm.weight", {c.hidden}},
                {c.tied_head ? "embed_tokens.weight" : "lm_head.weight", {c.vocab, c.hidden}}};
  return table;
}

TensorTable tensor_table(const ModelConfig& c) { return tensor_table(c, any_layer_table); }

void embed(Pass& pass, const Weights& w) {
  embed_rows(w.mat(0), pass.x);
  scale(pass, pass.x, pass.config().embedding_scale);
}

namespace {

void norm_q_and_k(Pass& pass, const Rows& q, const Rows& k, const Weights& w) {
  const ModelConfig& c = pass.config();
  if (w.vec(kQNorm) != nullptr) norm_parts(pass, q, c.qk_norm_rows ? 1 : c.heads, w.vec(kQNorm));
  if (w.vec(kKNorm) != nullptr) norm_parts(pass, k, c.qk_norm_rows ? 1 : c.kv_heads, w.vec(kKNorm));
}

}  // namespace

namespace {

// f(W_gate h) * W_up h, from two matrices or from one that contains both; without a gate, f(W_up h).
Rows gated(Pass& pass, int l, const Rows& h, const Weights& w) {
  const int64_t ffn = pass.config().ffn;
  if (w.mat(kGate).codec != nullptr) {
    auto [gate, up] = linears<2>(pass, h, {{{w.mat(kGate), w.vec(kGateBias)}, {w.mat(kUp), w.vec(kUpBias)}}});
    pass.trace(l, "gate", gate), pass.trace(l, "up", up);
    return glu(pass, gate, up);
  }
  const Rows up = linear(pass, h, {w.mat(kUp), w.vec(kUpBias)});
  return up.cols == ffn ? activate(pass, pass.config().activation, up)
                        : glu(pass, up.columns(0, ffn), up.columns(ffn, ffn));
}

}  // namespace

Rows attention(Pass& pass, int l, const Rows& h, const Weights& w) {
  const bool norm_last = pass.config().norm_after_rope;
  auto [q, k, v] =
      linears<3>(pass, h, {{{w.mat(kQ), w.vec(kQBias)}, {w.mat(kK), w.vec(kKBias)}, {w.mat(kV), w.vec(kVBias)}}});
  if (!norm_last) norm_q_and_k(pass, q, k, w);
  rope(pass, l, q, k);
  if (norm_last) norm_q_and_k(pass, q, k, w);
  pass.trace(l, "q", q), pass.trace(l, "k", k), pass.trace(l, "v", v);
  const Rows a = attend(pass, l, q, k, v);
  pass.trace(l, "attention", a);
  const Rows proj = linear(pass, a, {w.mat(kO), w.vec(kOBias)});
  pass.trace(l, "projection", proj);
  return proj;
}

Rows mlp(Pass& pass, int l, const Rows& h, const Weights& w) {
  if (pass.config().has_experts(l)) return moe(pass, l, h, w, kNormedRoles);
  const Rows m = gated(pass, l, h, w);
  pass.trace(l, "swiglu", m);
  const Rows out = linear(pass, m, {w.mat(kDown), w.vec(kDownBias)});
  pass.trace(l, "mlp", out);
  return out;
}

void layer(Pass& pass, int l, const Weights& w) {
  Rows h = rms_norm(pass, pass.x, w.vec(kAttnNorm));
  pass.trace(l, "attention_norm", h);
  add(pass, pass.x, attention(pass, l, h, w));
  pass.trace(l, "residual", pass.x);
  h = rms_norm(pass, pass.x, w.vec(kMlpNorm));
  pass.trace(l, "mlp_norm", h);
  add(pass, pass.x, mlp(pass, l, h, w));
  pass.trace(l, "block", pass.x);
}

void post_norm_layer(Pass& pass, int l, const Weights& w) {
  add(pass, pass.x, rms_norm(pass, attention(pass, l, pass.x, w), w.vec(kPostAttnNorm)));
  pass.trace(l, "residual", pass.x);
  add(pass, pass.x, rms_norm(pass, mlp(pass, l, pass.x, w), w.vec(kPostMlpNorm)));
  pass.trace(l, "block", pass.x);
}

void sandwich_layer(Pass& pass, int l, const Weights& w) {
  Rows h = rms_norm(pass, pass.x, w.vec(kAttnNorm));
  add(pass, pass.x, rms_norm(pass, attention(pass, l, h, w), w.vec(kPostAttnNorm)));
  pass.trace(l, "residual", pass.x);
  h = rms_norm(pass, pass.x, w.vec(kMlpNorm));
  add(pass, pass.x, rms_norm(pass, mlp(pass, l, h, w), w.vec(kPostMlpNorm)));
  pass.trace(l, "block", pass.x);
}

Rows final_norm(Pass& pass, Rows x, const Weights& w) { return rms_norm(pass, x, w.vec(kFinalNorm)); }

namespace {
constexpr std::array<std::string_view, 4> kAliases{"llama", kMistral, kMixtral, "internlm"};
// Defaults for LLaVA's files.
constexpr std::pair<std::string_view, int64_t> kTextDefaults[] = {{"hidden_size", 4096},
                                                                  {"num_hidden_layers", 32},
                                                                  {"num_attention_heads", 32},
                                                                  {"intermediate_size", 11008},
                                                                  {"vocab_size", 32000}};
constexpr GgufName kGgufTensors[] = {
    {"ffn_gate_inp", "block_sparse_moe.gate"},        {"ffn_gate_exps", "block_sparse_moe.experts.*.w1"},
    {"ffn_up_exps", "block_sparse_moe.experts.*.w3"}, {"ffn_down_exps", "block_sparse_moe.experts.*.w2"},
    {"ffn_gate.*", "block_sparse_moe.experts.*.w1"},  {"ffn_up.*", "block_sparse_moe.experts.*.w3"},
    {"ffn_down.*", "block_sparse_moe.experts.*.w2"},
};
}  // namespace

}  // namespace llama

const Family family_llama{
    .name = "llama",
    .summary = "Llama 1 to 3, Mistral, Mixtral, SmolLM2, TinyLlama: RMSNorm, RoPE, grouped heads, SwiGLU",
    .aliases = llama::kAliases,
    .prefixes = llama::kPrefixes,
    .text_defaults = llama::kTextDefaults,
    .gguf = {.arch = "llama", .more_layer_tensors = llama::kGgufTensors, .experts = true, .paired = llama::kGgufPaired},
    .parse_config = llama::parse_config,
    .tensor_table = llama::tensor_table,
    .cache_needs = uniform_cache,
    .embed = llama::embed,
    .layer = llama::layer,
    .final_norm = llama::final_norm};

}  // namespace kvasir
