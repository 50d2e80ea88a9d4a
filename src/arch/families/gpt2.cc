// GPT-2: learned positions, LayerNorm, fused qkv, gelu_new, matrices stored as Conv1D [in, out], tied or untied head.
#include <array>

#include "arch/family.h"
#include "arch/layer_ops.h"

namespace kvasir {

extern const Family family_gpt2;

namespace {

enum EmbedRole { kTokens, kPositions };
enum LayerRole { kLn1, kLn1Bias, kAttn, kAttnBias, kProj, kProjBias, kLn2, kLn2Bias, kFc, kFcBias, kOut, kOutBias };
enum HeadRole { kLnF, kLnFBias, kHead };

Result<void> refuse_variants(const ConfigView& view) {
  KVASIR_TRY(const std::string act, view.get_string_or("activation_function", "gelu_new"));
  if (act != "gelu_new" && act != "gelu_pytorch_tanh")
    return fail(Error::unsupported, "activation_function \"" + act + "\" is not supported", view.where(),
                "a GPT-2 with gelu_new");
  KVASIR_TRY(const bool scaled, view.get_bool_or("scale_attn_weights", true));
  KVASIR_TRY(const bool by_layer, view.get_bool_or("scale_attn_by_inverse_layer_idx", false));
  if (!scaled || by_layer)
    return fail(Error::unsupported, "attention scaled in another way than 1/sqrt(head_dim) is not supported",
                view.where());
  return {};
}

Result<ModelConfig> parse_config(const ConfigView& view) {
  ModelConfig c;
  KVASIR_CHECK(refuse_variants(view));
  KVASIR_TRY(const int64_t hidden, view.get_int("n_embd", 1, 1 << 20));
  KVASIR_TRY(const int64_t layers, view.get_int("n_layer", 1, 4096));
  KVASIR_TRY(const int64_t heads, view.get_int("n_head", 1, 4096));
  KVASIR_TRY(const int64_t ffn, view.get_int_or("n_inner", 4 * hidden, 1, 1 << 22));
  KVASIR_TRY(const int64_t vocab, view.get_int("vocab_size", 1, 1 << 22));
  KVASIR_TRY(const int64_t ctx, view.get_int_or("n_positions", 1024, 1, 1 << 24));
  KVASIR_TRY(const double eps, view.get_number_or("layer_norm_epsilon", 1e-5, 0.0, 1.0));
  if (hidden % heads != 0)
    return fail(Error::damaged,
                std::to_string(hidden) + " channels do not divide into " + std::to_string(heads) + " heads",
                view.where());
  c.family = family_gpt2.name;
  c.hidden = static_cast<int>(hidden);
  c.layers = static_cast<int>(layers);
  c.heads = c.kv_heads = static_cast<int>(heads);
  c.head_dim = static_cast<int>(hidden / heads);
  c.ffn = static_cast<int>(ffn);
  c.vocab = static_cast<int>(vocab);
  c.max_ctx = static_cast<int>(ctx);
  c.norm_eps = static_cast<float>(eps);
  KVASIR_TRY(c.tied_head, view.get_bool_or("tie_word_embeddings", true));
  KVASIR_CHECK(parse_special_ids(view, &c));
  KVASIR_CHECK(check_config(c, view.where()));
  return c;
}

std::vector<TensorSpec> layer_table(const ModelConfig& c, int l) {
  const std::string p = "h." + std::to_string(l) + ".";
  const int64_t d = c.hidden, f = c.ffn;
  constexpr bool kConv1d = true;
  return {
      {p + "ln_1.weight", {d}},
      {p + "ln_1.bias", {d}},
      {p + "attn.c_attn.weight", {d, 3 * d}, kConv1d},
      {p + "attn.c_attn.bias", {3 * d}},
      {p + "attn.c_proj.weight", {d, d}, kConv1d},
      {p + "attn.c_proj.bias", {d}},
      {p + "ln_2.weight", {d}},
      {p + "ln_2.bias", {d}},
      {p + "mlp.c_fc.weight", {d, f}, kConv1d},
      {p + "mlp.c_fc.bias", {f}},
      {p + "mlp.c_proj.weight", {f, d}, kConv1d},
      {p + "mlp.c_proj.bias", {d}},
  };
}

TensorTable tensor_table(const ModelConfig& c) {
  TensorTable table;
  table.embed = {{"wte.weight", {c.vocab, c.hidden}},
                 {.name = "wpe.weight", .shape = {c.max_ctx, c.hidden}, .by_position = true}};
  for (int l = 0; l < c.layers; ++l) table.layers.push_back(layer_table(c, l));
  table.head = {{"ln_f.weight", {c.hidden}},
                {"ln_f.bias", {c.hidden}},
                {c.tied_head ? "wte.weight" : "lm_head.weight", {c.vocab, c.hidden}}};
  return table;
}

void embed(Pass& pass, const Weights& w) {
  embed_rows(w.mat(kTokens), pass.x);
  add_rows(pass, w.mat(kPositions), pass.x);
}

void layer(Pass& pass, int l, const Weights& w) {
  const int64_t d = pass.config().hidden;
  Rows h = layer_norm(pass, pass.x, w.vec(kLn1), w.vec(kLn1Bias));
  pass.trace(l, "ln_1", h);
  const Rows qkv = linear(pass, h, {w.mat(kAttn), w.vec(kAttnBias)});
  pass.trace(l, "qkv", qkv);
  const Rows a = attend(pass, l, qkv.columns(0, d), qkv.columns(d, d), qkv.columns(2 * d, d));
  pass.trace(l, "attention", a);
  const Rows proj = linear(pass, a, {w.mat(kProj), w.vec(kProjBias)});
  pass.trace(l, "projection", proj);
  add(pass, pass.x, proj);
  pass.trace(l, "residual", pass.x);

  h = layer_norm(pass, pass.x, w.vec(kLn2), w.vec(kLn2Bias));
  pass.trace(l, "ln_2", h);
  const Rows fc = linear(pass, h, {w.mat(kFc), w.vec(kFcBias)});
  pass.trace(l, "fc", fc);
  const Rows m = activate(pass, Activation::gelu_tanh, fc);
  pass.trace(l, "gelu", m);
  const Rows out = linear(pass, m, {w.mat(kOut), w.vec(kOutBias)});
  pass.trace(l, "mlp", out);
  add(pass, pass.x, out);
  pass.trace(l, "block", pass.x);
}

Rows final_norm(Pass& pass, Rows x, const Weights& w) { return layer_norm(pass, x, w.vec(kLnF), w.vec(kLnFBias)); }

constexpr std::array<std::string_view, 1> kAliases{"gpt2"};
constexpr std::array<std::string_view, 2> kPrefixes{"", "transformer."};
constexpr std::array<std::string_view, 2> kMasks{".attn.bias", ".attn.masked_bias"};
constexpr GgufKey kGgufKeys[] = {
    {"block_count", "n_layer", &ModelConfig::layers},
    {"context_length", "n_positions", &ModelConfig::max_ctx},
    {"embedding_length", "n_embd", &ModelConfig::hidden},
    {"feed_forward_length", "n_inner", &ModelConfig::ffn},
    {"attention.head_count", "n_head", &ModelConfig::heads},
    {"attention.layer_norm_epsilon", "layer_norm_epsilon", nullptr, &ModelConfig::norm_eps},
};
constexpr GgufName kGgufTensors[] = {
    {"token_embd", "wte"}, {"position_embd", "wpe"}, {"output_norm", "ln_f"}, {"output", "lm_head"}};
constexpr GgufName kGgufLayerTensors[] = {
    {"attn_norm", "ln_1"}, {"attn_qkv", "attn.c_attn"}, {"attn_output", "attn.c_proj"},
    {"ffn_norm", "ln_2"},  {"ffn_up", "mlp.c_fc"},      {"ffn_down", "mlp.c_proj"},
};

}  // namespace

const Family family_gpt2{.name = "gpt2",
                         .summary = "GPT-2: learned positions, LayerNorm, GELU",
                         .aliases = kAliases,
                         .prefixes = kPrefixes,
                         .buffers = kMasks,
                         .gguf = {.arch = "gpt2",
                                  .keys = kGgufKeys,
                                  .tensors = kGgufTensors,
                                  .layer_tensors = kGgufLayerTensors,
                                  .layers = "h.",
                                  .transposed = true},
                         .parse_config = parse_config,
                         .tensor_table = tensor_table,
                         .cache_needs = uniform_cache,
                         .embed = embed,
                         .layer = layer,
                         .final_norm = final_norm};

}  // namespace kvasir
