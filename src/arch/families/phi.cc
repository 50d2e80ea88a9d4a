// Phi 1.5 and 2: attention and MLP on one LayerNorm, partial rotary, biases everywhere, including the vocabulary head
// (arXiv:2309.05463).
#include <array>

#include "arch/families/starcoder2.h"

namespace kvasir {

extern const Family family_phi;

namespace {

constexpr starcoder2::Names kNames{
    .mlp_norm = "", .o = "self_attn.dense", .final_norm = "final_layernorm", .head_bias = true};

Result<ModelConfig> parse_config(const ConfigView& file) {
  constexpr DecoderDefaults kDefaults{
      .max_ctx = 2048, .norm_eps = 1e-5, .activation = "gelu_new", .eps_key = "layer_norm_eps"};
  ConfigView view = file;
  if (!from_gguf(view) && !view.has("partial_rotary_factor")) view.set("partial_rotary_factor", 0.5);
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_phi.name, kDefaults));
  KVASIR_TRY(const bool parallel, view.get_bool_or("use_parallel_residual", true));
  if (!parallel)
    return fail(Error::unsupported, "a Phi whose attention and MLP do not see the same x is not supported",
                view.where());
  c.qkv_bias = c.o_bias = c.mlp_bias = true;
  return c;
}

TensorTable phi_tensor_table(const ModelConfig& c) { return starcoder2::tensor_table(c, kNames); }

constexpr std::array<std::string_view, 1> kAliases{"phi"};
constexpr GgufKey kGgufKeys[] = {{"use_parallel_residual", "use_parallel_residual"}};
constexpr GgufName kGgufNames[] = {
    {"token_embd", "model.embed_tokens"}, {"output_norm", "model.final_layernorm"}, {"output", "lm_head"}};
constexpr GgufName kGgufTensors[] = {
    {"attn_output", "self_attn.dense"}, {"ffn_up", "mlp.fc1"}, {"ffn_down", "mlp.fc2"}};

}  // namespace

const Family family_phi{.name = "phi",
                        .summary = "Phi 1.5 and 2: attention and MLP of one LayerNorm, part of each head rotated",
                        .aliases = kAliases,
                        .prefixes = llama::kPrefixes,
                        .gguf = {.arch = "phi2",
                                 .keys = kGgufLayerNormKeys,
                                 .more_keys = kGgufKeys,
                                 .tensors = kGgufNames,
                                 .more_layer_tensors = kGgufTensors},
                        .parse_config = parse_config,
                        .tensor_table = phi_tensor_table,
                        .cache_needs = uniform_cache,
                        .embed = llama::embed,
                        .layer = starcoder2::parallel_layer,
                        .final_norm = starcoder2::final_norm};

}  // namespace kvasir
