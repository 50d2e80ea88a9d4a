// ModelConfig: the numbers of a model that the forward pass, the planner and the fingerprint need, in one form for all
// families. The parsers that families share are declared here; each family parses its own keys in families/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kvasir/result.h>

#include "format/config_view.h"
#include "math/kernels.h"

namespace kvasir {

/// YaRN (arXiv:2309.00071). Frequencies that turn fewer than beta_slow times within the original context are divided by
/// `factor`; those that turn more than beta_fast times stay; those between are blended.
struct YarnScaling {
  double factor = 1.0, beta_fast = 32.0, beta_slow = 1.0;
  int64_t original_ctx = 0;
  bool rounded = true;  // the ends of the blend are rounded to whole channels
};

/// RoPE of one kind of layer. Frequency i is theta^(-2i / channels), divided by `linear` and by factors[i], or blended
/// by YaRN. Cosines and sines are multiplied by `magnitude`.
struct RopeConfig {
  double theta = 10000.0;
  bool interleaved = false;    // pairs (2i, 2i+1), as llama2.c stores them, instead of (i, i + channels/2)
  int channels = 0;            // the first channels of each head are rotated (all of them, or partial rotary)
  double linear = 1.0;         // arXiv:2306.15595
  std::vector<float> factors;  // channels / 2 divisors, or empty; f32, as in GGUF's rope_freqs.weight
  std::optional<YarnScaling> yarn;
  /// LongRoPE (arXiv:2402.13753): the factors for sessions of more than original_ctx positions. Empty without LongRoPE.
  std::vector<float> long_factors;
  int original_ctx = 0;
  float magnitude = 1.0f;

  /// channels / 2 angles per position, in radians. `longer`: for a session longer than original_ctx.
  std::vector<double> frequencies(bool longer = false) const;
};

/// How router scores become the shares of the chosen experts.
enum class ExpertGate {
  softmax,
  sigmoid,
  softmax_of_chosen,
  softmax_of_near  ///< per choice: over the remaining scores near it (SparseMixer, arXiv:2409.12136)
};

/// Sizes and routing of a Mixture of Experts.
struct ExpertConfig {
  int count = 0, used = 0, ffn = 0;  ///< count 0: a dense model
  int shared_ffn = 0;                ///< width of the expert that every token uses; 0: none
  ExpertGate gate = ExpertGate::softmax;
  float nearness = 0;      ///< softmax_of_near: largest distance below the best score, relative to the larger magnitude
  bool normalised = true;  ///< the shares are divided by their sum
  float scale = 1;         ///< factor of the shares, applied last
  int groups = 1, groups_used = 1;
  std::vector<bool> layers;  ///< whether each layer has experts
};

struct ModelConfig {
  std::string family;
  int mtp_layers = 0;  // multi-token prediction layers after the last one; Kvasir does not run them
  int layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0, max_ctx = 0;
  float norm_eps = 0;
  bool tied_head = false;
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  bool qkv_grouped = false;    // q, k and v are one matrix, grouped by KV head
  bool sparse_biases = false;  // each layer has only those of these biases that its file contains
  std::vector<int> windows;  // [layers]: positions that a token attends to, itself included; 0: all. Empty: no windows
  std::vector<RopeConfig> ropes;             // the kinds of RoPE; empty: learned positions
  std::vector<int> rope_kinds;               // [layers]: index into `ropes`, -1 for none. Empty: ropes[0] everywhere
  Activation activation = Activation::silu;  // of the MLP
  float score_scale = 0;                     // factor of the scores; 0: 1 / sqrt(head_dim)
  float score_cap = 0, logit_cap = 0;        // x becomes cap * tanh(x / cap); 0: no cap
  float embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  /// q at position p is multiplied by 1 + beta ln(1 + floor(p / ctx)); beta 0: no temperature.
  double q_temperature_beta = 0;
  int q_temperature_ctx = 0;
  bool qk_norm = false;           // heads of q and k are normed; read by families that have both forms
  bool qk_norm_rows = false;      // q and k are normed as whole rows, not head by head
  bool norm_after_rope = false;   // the norm of q and k comes after the rotation
  bool parallel_residual = true;  // attention and MLP read the same x; read by families that have both forms
  bool null_scores = false;       // each head has a score for attending to nothing (gpt-oss)
  ExpertConfig experts;
  std::optional<int> bos;
  std::vector<int> eos;

  bool has_experts(int l) const { return experts.count != 0 && experts.layers[static_cast<size_t>(l)]; }
  /// Query heads per KV head (GQA).
  int group() const { return heads / kv_heads; }
  int kv_dim() const { return kv_heads * head_dim; }
  /// The factor of the scores: score_scale, or 1 / sqrt(head_dim) rounded once.
  float attention_scale() const;
  /// The kind of RoPE of layer l: an index into `ropes`, or -1 for none.
  int rope_kind(int l) const {
    return ropes.empty() ? -1 : rope_kinds.empty() ? 0 : rope_kinds[static_cast<size_t>(l)];
  }
  /// The factor of q at `position`.
  float q_temperature(int position) const;
  /// Whether the model has numbers, experts or kinds of layers that a Llama does not have.
  bool has_extras() const;
  /// One line per number, in a fixed order. The fingerprint hashes it.
  std::string canonical() const;
};

/// Values for keys that a configuration leaves out: transformers' defaults for the model type.
struct DecoderDefaults {
  int heads = 0, vocab = 0;  ///< 0: the file must give it
  int kv_heads = 0;          ///< 0: as many as query heads
  int head_dim = 0;          ///< 0: hidden_size / num_attention_heads
  int max_ctx = 2048;
  double norm_eps = 1e-6;
  double theta = 10000.0;
  bool tied_head = false;
  std::string_view activation = "silu";
  std::string_view eps_key = "rms_norm_eps";
};

// Keys that no config.json contains; the GGUF reader sets them.
/// Divisors of the frequencies. Also the name of the RoPE scaling type that contains them.
inline constexpr const char* kGgufFactors = "gguf.factors";
/// Number of channels of a head that are rotated (partial rotary).
inline constexpr const char* kGgufRotated = "gguf.rotated_channels";
/// List, one number per layer: 1 with a window, 0 without.
inline constexpr const char* kGgufWindowPattern = "gguf.sliding_window_pattern";
/// A number n: every n-th layer has no window.
inline constexpr const char* kGgufWindowStep = "gguf.sliding_window_step";
/// true: each layer has only those biases that its file contains (ModelConfig::sparse_biases).
inline constexpr const char* kGgufSparseBiases = "gguf.sparse_biases";
/// Whether the attention's output projection has a bias.
inline constexpr const char* kGgufOutputBias = "gguf.attention_output_bias";
/// Whether the configuration comes from a GGUF file.
bool from_gguf(const ConfigView& view);
/// Whether the file names a window. If it does, the model uses it.
inline constexpr const char* kGgufWindow = "gguf.sliding_window";

/// The checks that hold for every family. Errors name what the key means, and both numbers.
Result<void> check_config(const ModelConfig& config, const std::string& where);
/// Reads the keys that Llama and its relatives share: shape, norm, head, RoPE, special ids. `family` becomes the
/// config's family name. If a file gives two kinds of RoPE, the second is for layers with a window: see set_windows().
/// Errors: a missing or impossible number, an unknown activation or kind of RoPE.
Result<ModelConfig> parse_decoder_config(const ConfigView& view, std::string_view family,
                                         const DecoderDefaults& defaults = {});
/// Returns the window of each layer, in positions: `window` (0: none) in the layers that "layer_types" or a GGUF file's
/// pattern names; without either, in all layers from `first` on. Errors: a kind of layer that is not supported, layers
/// with a window whose size is missing.
Result<std::vector<int>> windows_by_layer(const ConfigView& view, int layers, int64_t window, int64_t first = 0);
/// The same. If the file names no layers, layers l with l % step == step - 1 have no window.
Result<std::vector<int>> stepped_windows(const ConfigView& view, int layers, int64_t window, int64_t step);
/// The same with "sliding_window" if "use_sliding_window" is true, from layer "max_window_layers" on, as in Qwen's
/// files.
Result<std::vector<int>> parse_switched_windows(const ConfigView& view, int layers);
/// Sets the windows. If the config has two kinds of RoPE, layers with a window get the second.
void set_windows(std::vector<int> windows, ModelConfig* config);
/// Reads "rope_theta" and "rope_scaling", or "rope_parameters". Returns one kind, or two: for layers without a window
/// and for those with one. Errors: an unknown or unsupported kind, by its name. Source: transformers,
/// modeling_rope_utils.py.
Result<std::vector<RopeConfig>> parse_ropes(const ConfigView& view, int head_dim, int max_ctx, double default_theta);
/// Reads "hidden_act" or "hidden_activation". Errors: an unsupported activation.
Result<Activation> parse_activation(const ConfigView& view, std::string_view fallback);
/// Reads "bos_token_id" and "eos_token_id" (one id or a list). Errors: an id out of range.
Result<void> parse_special_ids(const ConfigView& view, ModelConfig* config);

}  // namespace kvasir
