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

/// Rotary positions. Frequency i of a head is theta^(-2i / head_dim), then scaled.
struct RopeConfig {
  enum class Scaling { none, linear, llama3 };

  double theta = 10000.0;
  bool interleaved = false;  // pairs (2i, 2i+1), as llama2.c stores them, instead of (i, i + head_dim/2)
  Scaling scaling = Scaling::none;
  double factor = 1.0;                                   // linear and llama3
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  // llama3
  int original_ctx = 0;                                  // llama3

  /// head_dim / 2 angles per position, in radians.
  std::vector<double> frequencies(int head_dim) const;
};

struct ModelConfig {
  std::string family;
  int layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0, max_ctx = 0;
  float norm_eps = 0;
  bool tied_head = false;
  bool attention_bias = false, mlp_bias = false;
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
/// Reads "rope_theta" and "rope_scaling", or "rope_parameters". Errors: an unknown or unsupported kind, by its name.
Result<RopeConfig> parse_rope(const ConfigView& view);
/// Reads "bos_token_id" and "eos_token_id" (one id or a list).
Result<void> parse_special_ids(const ConfigView& view, ModelConfig* config);

}  // namespace kvasir
