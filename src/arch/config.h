// What a model is: the numbers that the forward pass, the planner and the fingerprint need, whatever family they came
// from. Parsing of each family's keys is in families/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kvasir/result.h>

#include "format/config_view.h"
#include "math/kernels.h"

namespace kvasir {

/// YaRN (arXiv:2309.00071): frequencies that turn less than beta_slow times within the original context are divided by
/// `factor`, those that turn more than beta_fast times stay, and those between are blended.
struct YarnScaling {
  double factor = 1.0, beta_fast = 32.0, beta_slow = 1.0;
  int64_t original_ctx = 0;
  bool rounded = true;  // the ends of the blend are whole channels
};

/// Rotary positions of one kind of layer. Frequency i is theta^(-2i / channels), divided by `linear` and by factors[i],
/// or blended by YaRN; cosines and sines are multiplied by `magnitude`.
struct RopeConfig {
  double theta = 10000.0;
  bool interleaved = false;    // pairs (2i, 2i+1), as llama2.c stores them, instead of (i, i + channels/2)
  int channels = 0;            // the first of each head that are rotated
  double linear = 1.0;         // arXiv:2306.15595
  std::vector<float> factors;  // channels / 2 of them, or none. f32, as GGUF's rope_freqs.weight keeps them
  std::optional<YarnScaling> yarn;
  /// LongRoPE (arXiv:2402.13753): the factors of sessions of more than original_ctx positions; empty: of none.
  std::vector<float> long_factors;
  int original_ctx = 0;
  float magnitude = 1.0f;

  /// channels / 2 angles per position, in radians. `longer`: of a session past original_ctx.
  std::vector<double> frequencies(bool longer = false) const;
};

/// How scores become the shares of the chosen experts.
enum class ExpertGate {
  softmax,
  sigmoid,
  softmax_of_chosen,
  softmax_of_near  ///< of each choice: over the scores that are left and come near it (SparseMixer, arXiv:2409.12136)
};

/// The MLPs of a Mixture of Experts.
struct ExpertConfig {
  int count = 0, used = 0, ffn = 0;  ///< 0 experts: a dense model
  int shared_ffn = 0;                ///< of the expert that every token uses; 0: there is none
  ExpertGate gate = ExpertGate::softmax;
  float nearness = 0;      ///< of softmax_of_near: how far below, as a part of the larger magnitude
  bool normalised = true;  ///< shares are divided by their sum
  float scale = 1;         ///< then multiplied by it
  int groups = 1, groups_used = 1;
  std::vector<bool> layers;  ///< which have experts
};

struct ModelConfig {
  std::string family;
  int mtp_layers = 0;  // after the last layer, layers that guess further tokens; Kvasir does not run them
  int layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0, max_ctx = 0;
  float norm_eps = 0;
  bool tied_head = false;
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  bool qkv_grouped = false;    // q, k and v are one matrix, KV head by KV head
  bool sparse_biases = false;  // a layer has those of these biases that its file holds, not all of them
  std::vector<int> windows;    // of each layer: positions that a token attends to, itself included, 0 for all; or none
  std::vector<RopeConfig> ropes;             // the kinds of rotation; none: learned positions
  std::vector<int> rope_kinds;               // of each layer: which of `ropes`, -1 for none; empty: the first in all
  Activation activation = Activation::silu;  // of the MLP
  float score_scale = 0;                     // what scores are multiplied by; 0: 1 / sqrt(head_dim)
  float score_cap = 0, logit_cap = 0;        // x becomes cap * tanh(x / cap); 0: it stays
  float embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  /// q at position p is multiplied by 1 + beta ln(1 + floor(p / ctx)); beta 0: by nothing.
  double q_temperature_beta = 0;
  int q_temperature_ctx = 0;
  bool qk_norm = false;           // of families that have both forms: heads of q and k are normed
  bool qk_norm_rows = false;      // q and k are normed as whole rows, not head by head
  bool norm_after_rope = false;   // and after the rotation
  bool parallel_residual = true;  // of families that have both forms: attention and MLP see the same x
  bool null_scores = false;       // heads have a score for attending to nothing (gpt-oss)
  ExpertConfig experts;
  std::optional<int> bos;
  std::vector<int> eos;

  bool has_experts(int l) const { return experts.count != 0 && experts.layers[static_cast<size_t>(l)]; }
  /// Query heads that share one KV head.
  int group() const { return heads / kv_heads; }
  int kv_dim() const { return kv_heads * head_dim; }
  /// The factor of scores: score_scale, or 1 / sqrt(head_dim) rounded once.
  float attention_scale() const;
  /// The rotation of layer l: an index into `ropes`, or -1 for none.
  int rope_kind(int l) const {
    return ropes.empty() ? -1 : rope_kinds.empty() ? 0 : rope_kinds[static_cast<size_t>(l)];
  }
  /// The factor of q at `position`.
  float q_temperature(int position) const;
  /// Whether it has numbers, experts or kinds of layers that a Llama has not.
  bool has_extras() const;
  /// One line per number, in a fixed order: what the fingerprint is made of.
  std::string canonical() const;
};

/// Numbers for keys that a configuration leaves out: transformers' defaults of the model type.
struct DecoderDefaults {
  int heads = 0, vocab = 0;  ///< 0: a file must say it
  int kv_heads = 0;          ///< 0: as many as query heads
  int head_dim = 0;          ///< 0: hidden_size / num_attention_heads
  int max_ctx = 2048;
  double norm_eps = 1e-6;
  double theta = 10000.0;
  bool tied_head = false;
  std::string_view activation = "silu";
  std::string_view eps_key = "rms_norm_eps";
};

// Keys that no config.json has: the reader of another format sets them.
/// Divisors of the frequencies, in the RoPE scaling of the type that this names too.
inline constexpr const char* kGgufFactors = "gguf.factors";
/// The number of channels of a head that are rotated.
inline constexpr const char* kGgufRotated = "gguf.rotated_channels";
/// 1 for each layer with a window, 0 for each without.
inline constexpr const char* kGgufWindowPattern = "gguf.sliding_window_pattern";
/// Every so many-th layer is without.
inline constexpr const char* kGgufWindowStep = "gguf.sliding_window_step";
/// Biases are in those layers that hold them (ModelConfig::sparse_biases); whether the attention's output has any.
inline constexpr const char* kGgufSparseBiases = "gguf.sparse_biases";
inline constexpr const char* kGgufOutputBias = "gguf.attention_output_bias";
/// The configuration is that of a GGUF file.
bool from_gguf(const ConfigView& view);
/// A file that names a window uses it.
inline constexpr const char* kGgufWindow = "gguf.sliding_window";

/// The checks that hold for every family. Errors name the key's meaning and both numbers.
Result<void> check_config(const ModelConfig& config, const std::string& where);
/// The keys that Llama and its relatives share: shape, norm, head, RoPE, special ids. `family` is the name to give it.
/// Where files give two kinds of RoPE, the second is of layers with a window: see set_windows(). Errors: a missing or
/// impossible number, an unknown activation or kind of RoPE.
Result<ModelConfig> parse_decoder_config(const ConfigView& view, std::string_view family,
                                         const DecoderDefaults& defaults = {});
/// The windows of `layers` layers: `window`, or none if 0, in those that "layer_types" (or a GGUF file's pattern)
/// names, else in all from `first` on. Errors: a kind of layer that is not supported, layers with a window of no size.
Result<std::vector<int>> windows_by_layer(const ConfigView& view, int layers, int64_t window, int64_t first = 0);
/// The same, but where neither says anything the layers of every `step`-th have none: l % step == step - 1.
Result<std::vector<int>> stepped_windows(const ConfigView& view, int layers, int64_t window, int64_t step);
/// The same of "sliding_window" where "use_sliding_window" says so, from layer "max_window_layers" on, as in Qwen's
/// files.
Result<std::vector<int>> parse_switched_windows(const ConfigView& view, int layers);
/// Sets the windows, and the kinds of RoPE where layers with a window have one of their own.
void set_windows(std::vector<int> windows, ModelConfig* config);
/// Reads "rope_theta" and "rope_scaling", or "rope_parameters": one kind, or that of layers without a window and that
/// of those with one. Errors: an unknown or unsupported kind, by its name. Source: transformers,
/// modeling_rope_utils.py.
Result<std::vector<RopeConfig>> parse_ropes(const ConfigView& view, int head_dim, int max_ctx, double default_theta);
/// "hidden_act" or "hidden_activation".
Result<Activation> parse_activation(const ConfigView& view, std::string_view fallback);
/// Reads "bos_token_id" and "eos_token_id" (one id or a list).
Result<void> parse_special_ids(const ConfigView& view, ModelConfig* config);

}  // namespace kvasir
