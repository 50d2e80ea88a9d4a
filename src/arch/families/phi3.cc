// Phi-3, 3.5 and 4-mini: a Llama with q, k and v in one matrix and gate and up in another (arXiv:2404.14219). Also the
// text model of Phi-3-vision.
#include <array>

#include "arch/families/llama.h"
#include "arch/layer_ops.h"

namespace kvasir {

extern const Family family_phi3;

namespace {

enum LayerRole { kAttnNorm, kQkv, kO, kMlpNorm, kGateUp, kDown };

Result<ModelConfig> parse_config(const ConfigView& view) {
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_phi3.name, {.max_ctx = 4096, .norm_eps = 1e-5}));
  KVASIR_TRY(const int64_t window, view.get_int_or("sliding_window", 0, 0, 1 << 28));
  KVASIR_TRY(auto windows, windows_by_layer(view, c.layers, window));
  set_windows(std::move(windows), &c);
  return c;
}

std::vector<TensorSpec> layer_table(const ModelConfig& c, int l) {
  const std::string p = "layers." + std::to_string(l) + ".";
  const int64_t q = int64_t{c.heads} * c.head_dim;
  return {
      {p + "input_layernorm.weight", {c.hidden}},
      {p + "self_attn.qkv_proj.weight", {q + 2 * int64_t{c.kv_dim()}, c.hidden}},
      {p + "self_attn.o_proj.weight", {c.hidden, q}},
      {p + "post_attention_layernorm.weight", {c.hidden}},
      {p + "mlp.gate_up_proj.weight", {2 * int64_t{c.ffn}, c.hidden}},
      {p + "mlp.down_proj.weight", {c.hidden, c.ffn}},
  };
}

TensorTable tensor_table(const ModelConfig& c) { return llama::tensor_table(c, layer_table); }

void layer(Pass& pass, int l, const Weights& w) {
  const ModelConfig& c = pass.config();
  const int64_t q_dim = int64_t{c.heads} * c.head_dim, kv_dim = c.kv_dim();
  Rows h = rms_norm(pass, pass.x, w.vec(kAttnNorm));
  const Rows qkv = linear(pass, h, {w.mat(kQkv)});
  const Rows q = qkv.columns(0, q_dim), k = qkv.columns(q_dim, kv_dim), v = qkv.columns(q_dim + kv_dim, kv_dim);
  rope(pass, l, q, k);
  pass.trace(l, "q", q), pass.trace(l, "k", k), pass.trace(l, "v", v);
  add(pass, pass.x, linear(pass, attend(pass, l, q, k, v), {w.mat(kO)}));
  pass.trace(l, "residual", pass.x);

  h = rms_norm(pass, pass.x, w.vec(kMlpNorm));
  const Rows gate_up = linear(pass, h, {w.mat(kGateUp)});
  const Rows m = glu(pass, gate_up.columns(0, c.ffn), gate_up.columns(c.ffn, c.ffn));
  add(pass, pass.x, linear(pass, m, {w.mat(kDown)}));
  pass.trace(l, "block", pass.x);
}

constexpr std::array<std::string_view, 2> kAliases{"phi3", "phi3_v"};
// Phi-3's tokenizer.json sets "rstrip" on every added token except these.
constexpr std::array<std::string_view, 3> kPlainTokens{"<unk>", "<s>", "<|endoftext|>"};
constexpr GgufName kGgufTensors[] = {
    {"attn_norm", "input_layernorm"},         {"attn_qkv", "self_attn.qkv_proj"}, {"attn_output", "self_attn.o_proj"},
    {"ffn_norm", "post_attention_layernorm"}, {"ffn_up", "mlp.gate_up_proj"},     {"ffn_down", "mlp.down_proj"},
};

}  // namespace

const Family family_phi3{.name = "phi3",
                         .summary = "Phi-3: Llama with q, k and v in one matrix, gate and up in another",
                         .aliases = kAliases,
                         .prefixes = llama::kPrefixes,
                         .gguf = {.arch = "phi3", .layer_tensors = kGgufTensors, .rstrip_but = kPlainTokens},
                         .parse_config = parse_config,
                         .tensor_table = tensor_table,
                         .cache_needs = uniform_cache,
                         .embed = llama::embed,
                         .layer = layer,
                         .final_norm = llama::final_norm};

}  // namespace kvasir
