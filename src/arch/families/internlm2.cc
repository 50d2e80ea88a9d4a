// InternLM 2 and 2.5: a Llama with other tensor names (arXiv:2403.17297). Folders store q, k and v as one matrix, in
// groups: the query heads of a KV head, its key, its value. GGUF files store them separately.
#include <algorithm>
#include <array>

#include "arch/families/llama.h"
#include "arch/layer_ops.h"

namespace kvasir {

extern const Family family_internlm2;

namespace {

using namespace llama;  // its roles

Result<ModelConfig> parse_config(const ConfigView& view) {
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_internlm2.name, {.norm_eps = 1e-5, .theta = 1e6}));
  KVASIR_CHECK(parse_attention_biases(view, &c));
  KVASIR_TRY(const bool biased, view.get_bool_or("bias", false));
  if (biased) return fail(Error::unsupported, "an InternLM 2 with biases is not supported", view.where());
  c.qkv_grouped = !from_gguf(view);
  return c;
}

std::vector<TensorSpec> internlm2_layer_table(const ModelConfig& c, int l) {
  std::vector<TensorSpec> table = layer_table(c, l);
  const std::string p = "layers." + std::to_string(l) + ".";
  constexpr std::pair<int, std::string_view> kNames[] = {
      {kAttnNorm, "attention_norm.weight"}, {kQ, "attention.wq.weight"},     {kK, "attention.wk.weight"},
      {kV, "attention.wv.weight"},          {kO, "attention.wo.weight"},     {kMlpNorm, "ffn_norm.weight"},
      {kGate, "feed_forward.w1.weight"},    {kUp, "feed_forward.w3.weight"}, {kDown, "feed_forward.w2.weight"}};
  for (const auto& [role, name] : kNames) table[static_cast<size_t>(role)].name = p + std::string(name);
  if (!c.qkv_grouped) return table;
  const int64_t d = c.head_dim, queries = c.group() * d, step = queries + 2 * d;
  table[kQ].grouped = {kQ, table[kQ].name, 0, queries, step};
  table[kK].grouped = {kQ, table[kK].name, queries, d, step};
  table[kV].grouped = {kQ, table[kV].name, queries + d, d, step};
  table[kQ].name = p + "attention.wqkv.weight";
  table[kQ].shape = {step * c.kv_heads, c.hidden};
  table[kQ].by_head = 0;
  table[kK].present = table[kV].present = false;
  return table;
}

TensorTable internlm2_tensor_table(const ModelConfig& c) {
  TensorTable table = tensor_table(c, internlm2_layer_table);
  table.embed.front().name = "tok_embeddings.weight";
  table.head.back().name = c.tied_head ? "tok_embeddings.weight" : "output.weight";
  return table;
}

// Splits each token's [kv_heads, group + 2, head_dim] into q, k and v.
std::array<Rows, 3> ungroup(Pass& pass, const Rows& qkv) {
  const ModelConfig& c = pass.config();
  const int64_t d = c.head_dim, queries = c.group() * d;
  const Rows q = pass.take(queries * c.kv_heads), k = pass.take(c.kv_dim()), v = pass.take(c.kv_dim());
  pass.compute().for_rows(qkv.n, [&](int t) {
    for (int h = 0; h < c.kv_heads; ++h) {
      const float* group = qkv.row(t) + h * (queries + 2 * d);
      std::copy_n(group, queries, q.row(t) + h * queries);
      std::copy_n(group + queries, d, k.row(t) + h * d);
      std::copy_n(group + queries + d, d, v.row(t) + h * d);
    }
  });
  return {q, k, v};
}

void internlm2_layer(Pass& pass, int l, const Weights& w) {
  Rows h = rms_norm(pass, pass.x, w.vec(kAttnNorm));
  const auto [q, k, v] = pass.config().qkv_grouped ? ungroup(pass, linear(pass, h, {w.mat(kQ)}))
                                                   : linears<3>(pass, h, {{{w.mat(kQ)}, {w.mat(kK)}, {w.mat(kV)}}});
  rope(pass, l, q, k);
  add(pass, pass.x, linear(pass, attend(pass, l, q, k, v), {w.mat(kO)}));
  pass.trace(l, "residual", pass.x);
  h = rms_norm(pass, pass.x, w.vec(kMlpNorm));
  add(pass, pass.x, mlp(pass, l, h, w));
  pass.trace(l, "block", pass.x);
}

constexpr std::array<std::string_view, 1> kAliases{"internlm2"};
constexpr GgufName kGgufNames[] = {
    {"token_embd", "model.tok_embeddings"}, {"output_norm", "model.norm"}, {"output", "output"}};
constexpr GgufName kGgufTensors[] = {
    {"attn_norm", "attention_norm"}, {"attn_q", "attention.wq"},      {"attn_k", "attention.wk"},
    {"attn_v", "attention.wv"},      {"attn_output", "attention.wo"}, {"ffn_norm", "ffn_norm"},
    {"ffn_gate", "feed_forward.w1"}, {"ffn_up", "feed_forward.w3"},   {"ffn_down", "feed_forward.w2"},
};

}  // namespace

const Family family_internlm2{
    .name = "internlm2",
    .summary = "InternLM 2 and 2.5: Llama under other names",
    .aliases = kAliases,
    .prefixes = llama::kPrefixes,
    .gguf = {.arch = "internlm2", .tensors = kGgufNames, .layer_tensors = kGgufTensors, .paired = llama::kGgufPaired},
    .parse_config = parse_config,
    .tensor_table = internlm2_tensor_table,
    .cache_needs = uniform_cache,
    .embed = llama::embed,
    .layer = internlm2_layer,
    .final_norm = llama::final_norm};

}  // namespace kvasir
