// Qwen3: a Llama that norms every head of q and k before the rotation, and names its head_dim (arXiv:2505.09388).
#include <array>

#include "arch/blocks.h"
#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_qwen3;

namespace {

using namespace llama;  // its roles
enum Qwen3Role { kQNorm = kRoles, kKNorm };

Result<ModelConfig> parse_config(const ConfigView& view) {
  constexpr DecoderDefaults kDefaults{.kv_heads = 32, .head_dim = 128, .max_ctx = 32768};
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_qwen3.name, kDefaults));
  KVASIR_TRY(c.windows, parse_switched_windows(view, c.layers));
  KVASIR_CHECK(parse_attention_biases(view, &c));
  return c;
}

std::vector<TensorSpec> qwen3_layer_table(const ModelConfig& c, int l) {
  std::vector<TensorSpec> table = layer_table(c, l);
  const std::string p = "layers." + std::to_string(l) + ".self_attn.";
  table.push_back({p + "q_norm.weight", {c.head_dim}});
  table.push_back({p + "k_norm.weight", {c.head_dim}});
  return table;
}

TensorTable qwen3_tensor_table(const ModelConfig& c) { return tensor_table(c, qwen3_layer_table); }

void qwen3_layer(Pass& pass, int l, const Weights& w) {
  const ModelConfig& c = pass.config();
  const Rows h = rms_norm(pass, pass.x, w.vec(kAttnNorm));
  auto [q, k, v] =
      linears<3>(pass, h, {{{w.mat(kQ), w.vec(kQBias)}, {w.mat(kK), w.vec(kKBias)}, {w.mat(kV), w.vec(kVBias)}}});
  norm_heads(pass, q, c.heads, w.vec(kQNorm));
  norm_heads(pass, k, c.kv_heads, w.vec(kKNorm));
  rope(pass, q, k);
  pass.trace(l, "q", q), pass.trace(l, "k", k), pass.trace(l, "v", v);
  const Rows a = attend(pass, l, q, k, v);
  add(pass, pass.x, linear(pass, a, {w.mat(kO), w.vec(kOBias)}));
  pass.trace(l, "residual", pass.x);
  mlp(pass, l, w);
}

constexpr std::array<std::string_view, 1> kAliases{"qwen3"};

}  // namespace

const Family family_qwen3{.name = "qwen3",
                          .summary = "Qwen3: Llama with a norm for each head of q and k",
                          .aliases = kAliases,
                          .prefixes = kPrefixes,
                          .gguf = {.arch = "qwen3"},
                          .parse_config = parse_config,
                          .tensor_table = qwen3_tensor_table,
                          .cache_needs = uniform_cache,
                          .embed = embed,
                          .layer = qwen3_layer,
                          .final_norm = final_norm};

}  // namespace kvasir
