// gpt-oss: a null score in each head, a window in every other layer, YaRN whose ends are not rounded, experts with
// biases and a clamped SwiGLU (arXiv:2508.10925).
#include <array>

#include "arch/families/llama.h"
#include "arch/layer_ops.h"

namespace kvasir {

extern const Family family_gpt_oss;

namespace {

using namespace llama;  // its roles

constexpr ExpertNames kNames{.router = "mlp.router", .router_bias = "mlp.router.bias", .biases = true};
constexpr int kStep = 2;
constexpr double kClamp = 7.0;  // the limit of Activation::clamped_swiglu

// The null scores take the role that q's norm has in other families.
constexpr int kNullScores = kQNorm;

// YaRN's ends are set to unrounded here because GGUF has no key for it.
Result<ModelConfig> parse_config(const ConfigView& view) {
  constexpr DecoderDefaults kDefaults{
      .kv_heads = 8, .head_dim = 64, .max_ctx = 131072, .norm_eps = 1e-5, .theta = 150000.0};
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_gpt_oss.name, kDefaults));
  if (c.ropes.front().yarn) c.ropes.front().yarn->rounded = false;
  c.activation = Activation::clamped_swiglu;
  c.null_scores = true;
  c.qkv_bias = c.o_bias = true;
  KVASIR_TRY(const int64_t window, view.get_int_or("sliding_window", 128, 0, 1 << 28));
  KVASIR_TRY(auto windows, stepped_windows(view, c.layers, window, kStep));
  set_windows(std::move(windows), &c);
  KVASIR_CHECK(parse_experts(view, {.gate = ExpertGate::softmax_of_chosen, .normalised = false, .used = 4}, &c));
  KVASIR_CHECK(view.get_int_or("experts_per_token", c.experts.used, c.experts.used, c.experts.used));
  KVASIR_CHECK(view.get_number_or("swiglu_limit", kClamp, kClamp, kClamp));
  return c;
}

std::vector<TensorSpec> gpt_oss_layer_table(const ModelConfig& c, int l) {
  std::vector<TensorSpec> table = with_norms(c, l, {});
  table[kNullScores] = {"layers." + std::to_string(l) + ".self_attn.sinks", {c.heads}};
  return with_experts(c, l, kNames, std::move(table));
}

TensorTable gpt_oss_tensor_table(const ModelConfig& c) { return llama::tensor_table(c, gpt_oss_layer_table); }

void gpt_oss_layer(Pass& pass, int l, const Weights& w) {
  Rows h = rms_norm(pass, pass.x, w.vec(kAttnNorm));
  auto [q, k, v] =
      linears<3>(pass, h, {{{w.mat(kQ), w.vec(kQBias)}, {w.mat(kK), w.vec(kKBias)}, {w.mat(kV), w.vec(kVBias)}}});
  rope(pass, l, q, k);
  pass.trace(l, "q", q), pass.trace(l, "k", k), pass.trace(l, "v", v);
  const Rows a = attend(pass, l, q, k, v, w.vec(kNullScores));
  add(pass, pass.x, linear(pass, a, {w.mat(kO), w.vec(kOBias)}));
  pass.trace(l, "residual", pass.x);
  h = rms_norm(pass, pass.x, w.vec(kMlpNorm));
  add(pass, pass.x, mlp(pass, l, h, w));
  pass.trace(l, "block", pass.x);
}

constexpr std::array<std::string_view, 1> kAliases{"gpt_oss"};
constexpr std::string_view kGateUp[] = {"mlp.experts.*.gate_proj", "mlp.experts.*.up_proj"},
                           kDown[] = {"mlp.experts.*.down_proj"};
constexpr TensorSplit kSplits[] = {
    {.name = "mlp.experts.gate_up_proj_blocks",
     .parts = kGateUp,
     .by_turns = true,
     .scales = "mlp.experts.gate_up_proj_scales"},
    {.name = "mlp.experts.gate_up_proj_bias", .parts = kGateUp, .by_turns = true, .ending = ".bias"},
    {.name = "mlp.experts.down_proj_blocks", .parts = kDown, .scales = "mlp.experts.down_proj_scales"},
    {.name = "mlp.experts.down_proj_bias", .parts = kDown, .ending = ".bias"},
    {.name = "mlp.experts.gate_up_proj", .refused = "experts in floats are stored by column"},
    {.name = "mlp.experts.down_proj", .refused = "experts in floats are stored by column"}};
constexpr GgufName kGgufTensors[] = {{"attn_sinks.weight", "self_attn.sinks"},
                                     {"post_attention_norm", "post_attention_layernorm"},
                                     {"ffn_gate_inp", "mlp.router"}};

}  // namespace

const Family family_gpt_oss{.name = "gpt_oss",
                            .summary = "gpt-oss 20B and 120B: a score for nothing in each head, experts with biases",
                            .aliases = kAliases,
                            .prefixes = llama::kPrefixes,
                            .splits = kSplits,
                            .quantization = "mxfp4",
                            .gguf = {.arch = "gpt-oss", .more_layer_tensors = kGgufTensors, .experts = true},
                            .parse_config = parse_config,
                            .tensor_table = gpt_oss_tensor_table,
                            .cache_needs = uniform_cache,
                            .embed = llama::embed,
                            .layer = gpt_oss_layer,
                            .final_norm = llama::final_norm};

}  // namespace kvasir
