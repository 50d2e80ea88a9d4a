// Ministral 3: a Llama with YaRN whose queries are scaled up with their position.
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_ministral3;

namespace {

// GGUF's key for that scaling.
constexpr const char* kGgufTemperature = "gguf.q_temperature";

Result<void> parse_temperature(const ConfigView& view, ModelConfig* c) {
  KVASIR_TRY(double beta, view.get_number_or(kGgufTemperature, 0.0, 0.0, 1e3));
  for (const char* key : {"rope_parameters", "rope_scaling"})
    if (const auto object = view.object(key)) {
      KVASIR_TRY(beta, object->get_number_or("llama_4_scaling_beta", beta, 0.0, 1e3));
    }
  if (beta == 0 || !c->ropes.front().yarn) return {};
  c->q_temperature_beta = static_cast<double>(static_cast<float>(beta));  // rounded to f32, as GGUF files store it
  c->q_temperature_ctx = static_cast<int>(c->ropes.front().yarn->original_ctx);
  return {};
}

Result<ModelConfig> parse_config(const ConfigView& view) {
  constexpr DecoderDefaults kDefaults{
      .heads = 32, .kv_heads = 8, .head_dim = 128, .max_ctx = 262144, .norm_eps = 1e-5, .theta = 1e6};
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_ministral3.name, kDefaults));
  KVASIR_CHECK(parse_temperature(view, &c));
  KVASIR_TRY(const int64_t window, view.get_int_or("sliding_window", 0, 0, 1 << 28));
  KVASIR_TRY(auto windows, windows_by_layer(view, c.layers, window));
  set_windows(std::move(windows), &c);
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  return c;
}

TensorTable ministral3_tensor_table(const ModelConfig& c) { return llama::tensor_table(c); }

constexpr std::array<std::string_view, 2> kAliases{"ministral3", "mistral3"};
constexpr GgufKey kGgufKeys[] = {{"attention.temperature_scale", kGgufTemperature}};

}  // namespace

const Family family_ministral3{.name = "ministral3",
                               .summary = "Ministral 3: Llama with YaRN and queries that grow with their position",
                               .aliases = kAliases,
                               .prefixes = llama::kPrefixes,
                               .gguf = {.arch = "mistral3", .more_keys = kGgufKeys, .paired = llama::kGgufPaired},
                               .parse_config = parse_config,
                               .tensor_table = ministral3_tensor_table,
                               .cache_needs = uniform_cache,
                               .embed = llama::embed,
                               .layer = llama::layer,
                               .final_norm = llama::final_norm};

}  // namespace kvasir
