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
  int layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0, max_ctx = 0;
  float norm_eps = 0;
  bool tied_head = false;
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  std::vector<int> windows;  // of each layer: positions that a token attends to, itself included, 0 for all; or none
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

/// The checks that hold for every family. Errors name the key's meaning and both numbers.
Result<void> check_config(const ModelConfig& config, const std::string& where);
/// The keys that Llama and its relatives share: shape, norm, head, RoPE, special ids. `family` is the name to give it.
/// Errors: a missing or impossible number, an activation other than silu, an unknown kind of RoPE.
Result<ModelConfig> parse_decoder_config(const ConfigView& view, std::string_view family);
/// The windows of `layers` layers: `window`, or none if 0, in those that "layer_types" (or a GGUF file's pattern) says,
/// else in all from `first` on.
Result<std::vector<int>> windows_by_layer(const ConfigView& view, int layers, int64_t window, int64_t first = 0);
/// The same of "sliding_window" where "use_sliding_window" says so, from layer "max_window_layers" on, as in Qwen's
/// files.
Result<std::vector<int>> parse_switched_windows(const ConfigView& view, int layers);
/// Reads "rope_theta" and "rope_scaling", or "rope_parameters". Errors: an unknown or unsupported kind, by its name.
Result<RopeConfig> parse_rope(const ConfigView& view, int head_dim);
/// Reads "bos_token_id" and "eos_token_id" (one id or a list).
Result<void> parse_special_ids(const ConfigView& view, ModelConfig* config);

}  // namespace kvasir
