// A model as opened from disk: its numbers, tokenizer, sampling defaults and fingerprint. Running it is in engine.h.
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
  bool with_tokenizer = true;  ///< false: only token ids are needed
  /// Bytes that the process may hold in all: weights, KV, activations, tokenizer, code; 0: no limit. What would not fit
  /// is refused before it is allocated.
  size_t ram = 0;
  /// Bytes that the KV of all sessions may hold; 0: no limit but `ram`.
  size_t kv_ram = 0;
};

/// A model's numbers. Bytes of weights are exact.
struct ModelInfo {
  std::string name, path, family, weight_type;
  int layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0, max_ctx = 0;
  int64_t parameters = 0;
  size_t weights_bytes = 0;
  size_t tokenizer_bytes = 0;  ///< heap that building it took, as malloc counts it; 0: not known, or no tokenizer
  WeightsMode weights_mode = WeightsMode::resident;  ///< never `automatic`
  /// Elements of the layers' matrices: multiplications of a prompt's token, its attention and the vocabulary head
  /// apart.
  int64_t layer_weights = 0;
  bool takes_window = false;  ///< SessionOptions::window and its sinks are possible: RoPE, no window of the model's own
  std::optional<int> bos;
  /// Ids that end a text: the file's own, then, where it names none for a turn of a chat, the tokens whose texts say
  /// that they end one.
  std::vector<int> eos;
  std::vector<Ignored> ignored;  ///< what its files hold and Kvasir does not use
};

class KVASIR_API Model {
 public:
  /// Opens a Hugging Face folder, a .gguf (any part of a split one), a llama2.c .bin, or a model that ships with
  /// Kvasir, by name ("tales"). Errors: a missing or hostile file, an architecture or type that is not supported; the
  /// message names it.
  static Result<std::shared_ptr<const Model>> open(const std::string& name_or_path, const ModelOptions& options = {});
  ~Model();

  const ModelInfo& info() const;
  /// Null when the model came without one; then only token ids work.
  const std::shared_ptr<const Tokenizer>& tokenizer() const;
  /// From generation_config.json where there is one.
  const SamplingParams& sampling_defaults() const;
  /// XXH3-128 of config and weights, 32 hex digits. Reads all weights the first time; remembered in
  /// $XDG_CACHE_HOME/kvasir or ~/.cache/kvasir for files that cannot have changed since (docs/models.md). Errors:
  /// weights that are not in memory have changed on the disk since the model was opened.
  Result<std::string> fingerprint() const;

  /// Errors: an id that the weights have no row for, with its text where the tokenizer has one. `where`: for the error.
  Result<void> check_ids(std::span<const int> ids, const std::string& where) const;

  /// The files that hold its weights.
  const std::vector<std::string>& files() const;

  struct Impl;  ///< the library's own
  explicit Model(std::unique_ptr<Impl> impl);
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// The tokenizer alone, of a model (by path or name) or of a tokenizer file: tokenizer.json, tokenizer.model, .gguf.
KVASIR_API Result<std::shared_ptr<const Tokenizer>> open_tokenizer(const std::string& name_or_path);

/// The path of a model given by path or by name. Names are looked for in $KVASIR_MODELS, beside the program
/// (models, ../models) and in ../share/kvasir/models. OWNER/NAME, also with :TYPE or :FILE, is a model of the hub that
/// lies in its cache on this machine ($HF_HUB_CACHE, $HF_HOME, $XDG_CACHE_HOME or ~/.cache); nothing is fetched.
KVASIR_API Result<std::string> find_model(const std::string& name_or_path);

}  // namespace kvasir
