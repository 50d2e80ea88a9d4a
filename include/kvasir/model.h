// A model opened from disk: its dimensions, tokenizer, sampling defaults and fingerprint. Running it is in engine.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kvasir/catalog.h>
#include <kvasir/result.h>
#include <kvasir/sampling.h>
#include <kvasir/tokenizer.h>
#include <kvasir/version.h>

namespace kvasir {

struct ModelOptions {
  WeightsMode weights = WeightsMode::automatic;
  std::string tokenizer;       ///< a tokenizer file; empty: the one inside or beside the model
  bool with_tokenizer = true;  ///< false: load none, for callers that use only token ids
  /// Budget of the whole process in bytes: weights, KV, activations, tokenizer, code; 0: no limit. A call that would
  /// exceed it fails (no_room) before it allocates.
  size_t ram = 0;
  /// Budget of the KV of all sessions in bytes; 0: no limit except `ram`.
  size_t kv_ram = 0;
};

/// A model's dimensions and sizes. `hidden`, `ffn` and `head_dim` count channels, `max_ctx` positions.
struct ModelInfo {
  std::string name, path, family, weight_type;
  int layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0, max_ctx = 0;
  int64_t parameters = 0;
  size_t weights_bytes = 0;    ///< exact
  size_t tokenizer_bytes = 0;  ///< heap that it uses, as malloc counts it; 0: unknown, or no tokenizer
  WeightsMode weights_mode = WeightsMode::resident;  ///< never `automatic`
  /// Elements of all layer matrices (with experts: of those that one token uses). This is the number of multiplications
  /// per prompt token, attention and vocabulary head not counted.
  int64_t layer_weights = 0;
  bool takes_window = false;  ///< supports SessionOptions::window: uses RoPE and has no window of its own
  std::optional<int> bos;
  /// Ids that end a text: those that the model's files name and, unless the files name the end of a chat turn too,
  /// Tokenizer::end_of_turn().
  std::vector<int> eos;
  std::vector<Ignored> ignored;  ///< parts of the model's files that Kvasir does not use
};

/// Weights in memory, and what passes have used and read since the model was opened. Experts are counted only if the
/// weights are streamed.
struct WeightStats {
  size_t memory_bytes = 0;      ///< in memory now; 0: mapped
  int64_t experts = 0;          ///< experts that passes used, each once per pass and layer
  int64_t experts_read = 0;     ///< those of them that were not in memory
  int64_t experts_guessed = 0;  ///< experts read before a pass asked for them
  int64_t guesses_used = 0;     ///< those of them that a pass then used
};

/// An opened model. Immutable; every method may be called from many threads at once.
class KVASIR_API Model {
 public:
  /// Opens a Hugging Face folder, a .gguf file (any part of a split one), a llama2.c .bin, or a model by name as
  /// find_model() resolves it ("tales"). Errors: not_found; damaged, a file that contradicts itself or its format;
  /// unsupported, an architecture or type that the message names; no_room, a budget too small.
  static Result<std::shared_ptr<const Model>> open(const std::string& name_or_path, const ModelOptions& options = {});
  ~Model();

  const ModelInfo& info() const;
  WeightStats weight_stats() const;
  /// Null if the model has none or ModelOptions::with_tokenizer was false; then only token ids work.
  const std::shared_ptr<const Tokenizer>& tokenizer() const;
  /// From generation_config.json or a GGUF file's general.sampling keys; fields that neither sets keep their defaults.
  const SamplingParams& sampling_defaults() const;
  /// XXH3-128 of config and weights, 32 hex digits. The first call reads all weights; later calls and processes take it
  /// from $XDG_CACHE_HOME/kvasir or ~/.cache/kvasir, for files that cannot have changed since (docs/models.md). Errors:
  /// damaged, weights that are not in memory have changed on disk since the model was opened; io.
  Result<std::string> fingerprint() const;

  /// Checks that the weights have a row for every id. Errors: bad_argument with the id, and its text if the tokenizer
  /// has one. `where` becomes Error::where.
  Result<void> check_ids(std::span<const int> ids, const std::string& where) const;

  /// Paths of the files that contain the weights.
  const std::vector<std::string>& files() const;

  struct Impl;  ///< internal to the library
  explicit Model(std::unique_ptr<Impl> impl);
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// Opens only the tokenizer of a model (by path or name), or a tokenizer file: tokenizer.json, tokenizer.model, .gguf.
/// Errors: as Model::open(); not_found, a model without a tokenizer.
KVASIR_API Result<std::shared_ptr<const Tokenizer>> open_tokenizer(const std::string& name_or_path);

/// Resolves a path or a name to the path of a model. Names are looked up in $KVASIR_MODELS, then beside the program
/// (models, ../models) and in ../share/kvasir/models. OWNER/NAME, optionally with :TYPE or :FILE, is a model in the
/// local cache of the Hugging Face hub ($HF_HUB_CACHE, $HF_HOME, $XDG_CACHE_HOME or ~/.cache); nothing is downloaded.
/// Errors: not_found.
KVASIR_API Result<std::string> find_model(const std::string& name_or_path);

}  // namespace kvasir
