// Baichuan 7B: a Llama whose folders store q, k and v as one matrix (arXiv:2309.10305). The 13B has no RoPE; it is a
// different model and not supported.
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_baichuan;

namespace {

constexpr int kLayersOf7B = 32;

Result<ModelConfig> parse_config(const ConfigView& view) {
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_baichuan.name, {.max_ctx = 4096}));
  if (c.layers != kLayersOf7B && c.hidden > 4096)
    return fail(Error::unsupported, "Baichuan 13B (ALiBi instead of RoPE) is not supported", view.where(),
                "Baichuan 7B");
  return c;
}

TensorTable baichuan_tensor_table(const ModelConfig& c) { return llama::tensor_table(c); }

constexpr std::array<std::string_view, 1> kAliases{"baichuan"};
constexpr std::string_view kQkv[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
constexpr TensorSplit kSplits[] = {{"self_attn.W_pack", kQkv}};

}  // namespace

const Family family_baichuan{.name = "baichuan",
                             .summary = "Baichuan 7B: Llama with q, k and v in one matrix",
                             .aliases = kAliases,
                             .prefixes = llama::kPrefixes,
                             .splits = kSplits,
                             .gguf = {.arch = "baichuan", .paired = llama::kGgufPaired},
                             .parse_config = parse_config,
                             .tensor_table = baichuan_tensor_table,
                             .cache_needs = uniform_cache,
                             .embed = llama::embed,
                             .layer = llama::layer,
                             .final_norm = llama::final_norm};

}  // namespace kvasir
