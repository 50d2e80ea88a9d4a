// Keys of a GGUF file that the reader of models does not use. Source of names and meanings: ggml-org/llama.cpp
// gguf-py/gguf/constants.py and src/llama-model.cpp; ggml-org/ggml docs/gguf.md.
#include <algorithm>

#include <fmt/format.h>

#include "arch/unused.h"
#include "base/quote.h"

namespace kvasir {
namespace {

constexpr std::string_view kExperts = "experts", kScaling = "scaled activations or logits",
                           kOtherAttention = "another kind of attention", kYarn = "RoPE scaling of another type",
                           kMedia = "images, video or sound", kFixed = "the family has no such norm";

// Keys after "ARCH.".
constexpr KeyRule kArchRules[] = {
    {"rope.scaling.original_context_length", KeyUse::harmless, "this RoPE does not depend on it"},
    {"rope.scaling.finetuned", KeyUse::harmless, "a label"},
    {"rope.scaling.attn_factor", KeyUse::one, kYarn},
    {"rope.scaling.yarn_attn_factor", KeyUse::one, kYarn},
    {"rope.scaling.yarn_*", KeyUse::refused, kYarn},
    {"rope.freq_base_swa", KeyUse::refused, "RoPE that differs between layers"},
    {"rope.dimension_count_swa", KeyUse::refused, "RoPE that differs between layers"},
    {"rope.dimension_sections", KeyUse::harmless, "a text has one position, not three"},
    {"attention.layer_norm_epsilon", KeyUse::harmless, kFixed},
    {"attention.layer_norm_rms_epsilon", KeyUse::harmless, kFixed},
    {"attention.causal", KeyUse::yes, kOtherAttention},
    {"attention.max_alibi_bias", KeyUse::off, kOtherAttention},
    {"attention.clamp_kqv", KeyUse::off, kOtherAttention},
    {"attention.q_lora_rank", KeyUse::off, kOtherAttention},
    {"attention.kv_lora_rank", KeyUse::off, kOtherAttention},
    {"attention.shared_kv_layers", KeyUse::off, kOtherAttention},
    {"attention.scale", KeyUse::off, kScaling},
    {"attention.output_scale", KeyUse::one, kScaling},
    {"attention.temperature_*", KeyUse::off, kScaling},
    {"attn_logit_softcapping", KeyUse::off, kScaling},
    {"router_logit_softcapping", KeyUse::off, kScaling},
    {"final_logit_softcapping", KeyUse::off, kScaling},
    {"logit_scale", KeyUse::one, kScaling},
    {"embedding_scale", KeyUse::one, kScaling},
    {"residual_scale", KeyUse::one, kScaling},
    {"expert_*", KeyUse::off, kExperts},
    {"moe_*", KeyUse::off, kExperts},
    {"leading_dense_block_count", KeyUse::off, kExperts},
    {"interleave_moe_layer_step", KeyUse::off, kExperts},
    {"use_parallel_residual", KeyUse::off, "another form of layer"},
    {"pooling_type", KeyUse::noted, "the pooling is chosen when a text is embedded"},
    {"classifier.output_labels", KeyUse::refused, "a classifier instead of a language model"},
};

// Keys that do not belong to the architecture.
constexpr KeyRule kOuterRules[] = {
    {"general.sampling.*", KeyUse::noted, "Kvasir's sampler does not use it"},
    {"general.*", KeyUse::harmless, "a label"},
    {"split.*", KeyUse::harmless, "the parts of the file"},
    {"quantize.*", KeyUse::harmless, "how the file was made"},
    {"mradermacher.*", KeyUse::harmless, "how the file was made"},
    {"imatrix.*", KeyUse::harmless, "how the file was made"},
    {"training.*", KeyUse::harmless, "training only"},
    {"clip.*", KeyUse::harmless, kMedia},
    {"adapter.*", KeyUse::refused, "an adapter"},
    {"control_vector.*", KeyUse::refused, "a control vector"},
};

bool all_zero(const GgufValue& value) {
  if (const auto numbers = value.as_numbers())
    return std::all_of(numbers->begin(), numbers->end(), [](double x) { return x == 0; });
  if (value.type == GgufType::array)  // of booleans or strings
    return value.strings.empty() &&
           std::all_of(value.bytes.begin(), value.bytes.end(), [](std::byte b) { return b == std::byte{0}; });
  if (const auto flag = value.as_bool()) return !*flag;
  if (const auto number = value.as_number()) return *number == 0;
  return false;
}

bool is_neutral(KeyUse use, const GgufValue& value) {
  switch (use) {
    case KeyUse::harmless:
    case KeyUse::noted:
      return true;
    case KeyUse::off:
      return all_zero(value);
    case KeyUse::one:
      return all_zero(value) || value.as_number() == 1.0;
    case KeyUse::yes:
      return value.as_bool() == true;
    case KeyUse::refused:
      break;
  }
  return false;
}

tl::unexpected<Error> refuse(std::string_view key, std::string_view why, const std::string& where) {
  return fail(Error::unsupported, fmt::format("the metadata key {} is not supported ({})", in_quotes(key), why), where,
              "a model without it");
}

Result<void> check_type(const GgufMetadata& metadata, const std::string& where) {
  KVASIR_TRY(const auto type, metadata.get_string("general.type"));
  if (!type || *type == "model") return {};
  return fail(Error::unsupported, fmt::format("this is a GGUF file of type {}", in_quotes(*type)), where,
              "the file of a language model");
}

}  // namespace

const KeyRule* gguf_rule(std::string_view name) { return find_rule(kArchRules, name); }

Result<std::vector<Ignored>> unused_gguf_keys(const GgufMetadata& metadata, std::string_view arch, const KeySet& read,
                                              const std::string& where) {
  KVASIR_CHECK(check_type(metadata, where));
  std::vector<Ignored> ignored;
  const std::string prefix = std::string(arch) + ".";
  for (const auto& [key, value] : metadata.entries) {
    if (read.contains(key) || key.starts_with("tokenizer.")) continue;
    const bool of_arch = key.starts_with(prefix);
    const KeyRule* rule = of_arch ? gguf_rule(key.substr(prefix.size())) : find_rule(kOuterRules, key);
    if (rule == nullptr && of_arch)
      return fail(Error::unsupported,
                  fmt::format("the metadata key {} is not known, and may change results", in_quotes(key)), where,
                  "a file without it, or a version of Kvasir that knows it");
    if (rule != nullptr && !is_neutral(rule->use, value)) return refuse(key, rule->why, where);
    const bool noted = rule == nullptr || rule->use == KeyUse::noted;
    ignored.push_back({std::string(key), std::string(rule != nullptr ? rule->why : "not known to Kvasir"), noted});
  }
  return ignored;
}

}  // namespace kvasir
