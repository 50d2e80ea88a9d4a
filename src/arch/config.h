// What a model is: the numbers that the forward pass, the planner and the fingerprint need, whatever family they came
// from. Parsing of each family's keys is in families/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kvasir/result.h>

#include "format/config_view.h"

namespace kvasir {

/// Rotary positions. Frequency i of a head is theta^(-2i / head_dim), divided by `linear` and by factors[i].
struct RopeConfig {
  double theta = 10000.0;
  bool interleaved = false;    // pairs (2i, 2i+1), as llama2.c stores them, instead of (i, i + head_dim/2)
  double linear = 1.0;         // arXiv:2306.15595
  std::vector<float> factors;  // head_dim / 2 of them, or none. f32, as GGUF's rope_freqs.weight keeps them

  /// head_dim / 2 angles per position, in radians.
  std::vector<double> frequencies(int head_dim) const;
};

struct ModelConfig {
  std::string family;
  int mtp_layers = 0;  // after the last layer, layers that guess further tokens; Kvasir does not run them
  int layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0, max_ctx = 0;
  float norm_eps = 0;
  bool tied_head = false;
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  bool sparse_biases = false;  // a layer has those of these biases that its file holds, not all of them
  std::vector<int> windows;    // of each layer: positions that a token attends to, itself included, 0 for all; or none
  std::optional<RopeConfig> rope;  // absent: learned positions
  std::optional<int> bos;
  std::vector<int> eos;

  /// Query heads that share one KV head.
  int group() const { return heads / kv_heads; }
  int kv_dim() const { return kv_heads * head_dim; }
  /// What scores are multiplied by: 1 / sqrt(head_dim), rounded once.
  float attention_scale() const;
  /// One line per number, in a fixed order: what the fingerprint is made of.
  std::string canonical() const;
};

/// Numbers for keys that a configuration leaves out: transformers' defaults of the model type.
struct DecoderDefaults {
  int kv_heads = 0;  ///< 0: as many as query heads
  int head_dim = 0;  ///< 0: hidden_size / num_attention_heads
  int max_ctx = 2048;
  double norm_eps = 1e-6;
};

// Keys that no config.json has: the reader of another format sets them.
/// Divisors of the frequencies, in the RoPE scaling of the type that this names too.
inline constexpr const char* kGgufFactors = "gguf.factors";
/// 1 for each layer with a window, 0 for each without.
inline constexpr const char* kGgufWindowPattern = "gguf.sliding_window_pattern";
/// Biases are in those layers that hold them (ModelConfig::sparse_biases); whether the attention's output has any.
inline constexpr const char* kGgufSparseBiases = "gguf.sparse_biases";
inline constexpr const char* kGgufOutputBias = "gguf.attention_output_bias";
/// A file that names a window uses it.
inline constexpr const char* kGgufWindow = "gguf.sliding_window";

/// The checks that hold for every family. Errors name the key's meaning and both numbers.
Result<void> check_config(const ModelConfig& config, const std::string& where);
/// The keys that Llama and its relatives share: shape, norm, head, RoPE, special ids. `family` is the name to give it.
/// Errors: a missing or impossible number, an activation other than silu, an unknown kind of RoPE.
Result<ModelConfig> parse_decoder_config(const ConfigView& view, std::string_view family,
                                         const DecoderDefaults& defaults = {});
/// The windows of `layers` layers: `window`, or none if 0, in those that "layer_types" (or a GGUF file's pattern)
/// names, else in all from `first` on. Errors: a kind of layer that is not supported, layers with a window of no size.
Result<std::vector<int>> windows_by_layer(const ConfigView& view, int layers, int64_t window, int64_t first = 0);
/// The same of "sliding_window" where "use_sliding_window" says so, from layer "max_window_layers" on, as in Qwen's
/// files.
Result<std::vector<int>> parse_switched_windows(const ConfigView& view, int layers);
/// Reads "rope_theta" and "rope_scaling", or "rope_parameters". Errors: an unknown or unsupported kind, by its name;
/// parameters that differ between kinds of layers. Source: transformers, modeling_rope_utils.py.
Result<RopeConfig> parse_rope(const ConfigView& view, int head_dim);
/// Reads "bos_token_id" and "eos_token_id" (one id or a list).
Result<void> parse_special_ids(const ConfigView& view, ModelConfig* config);

}  // namespace kvasir
