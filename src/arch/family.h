// A model family: how it reads its config, which tensors it has, what its layers need from the cache, and its layer. It
// names no cache layout, storage type or CPU. Each family is one file in families/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>

#include "arch/config.h"
#include "arch/gguf_names.h"
#include "arch/split_tensors.h"
#include "cache/layout.h"
#include "format/tensor_file.h"
#include "math/compute.h"

namespace kvasir {

class Pass;

/// Rows of a matrix that other files store as a tensor of its own: `run` rows out of every `step`, starting at `first`.
struct GroupedRows {
  int role = -1;     ///< of the matrix that contains them; -1: the tensor is stored by itself
  std::string name;  ///< of the separate tensor in those other files
  int64_t first = 0, run = 0, step = 0;
};

/// One tensor that the family needs. A tensor of rank 1 is a vector (gain or bias); the rest are matrices.
struct TensorSpec {
  std::string name;            ///< as in Hugging Face files, without the family's prefixes
  std::vector<int64_t> shape;  ///< as stored
  bool conv1d = false;         ///< stored [in, out]
  bool present = true;         ///< false: this config does not have it (a bias, for example)
  bool by_position = false;    ///< embed list only: rows are looked up by position, not by token
  bool optional = false;       ///< present if the file contains it
  bool less_one = false;       ///< a gain that Hugging Face files store minus one
  bool of_expert = false;      ///< read only for tokens that choose its expert
  int by_head = 0;  ///< number of heads, if Hugging Face files interleave the rows of q, k and v head by head; else 0
  GroupedRows grouped = {};  ///< how the fingerprint hashes it, so that all files of a model have the same one
};

/// Tensor lists, each in the order of the family's own role numbers.
struct TensorTable {
  std::vector<TensorSpec> embed;  ///< lookup tables: a pass needs one row per token
  std::vector<std::vector<TensorSpec>> layers;
  std::vector<TensorSpec> head;  ///< final norm first, the matrix of the vocabulary head last
  int head_bias = -1;            ///< role in `head` of the vocabulary head's bias; -1: none
};

/// The tensors of one group while it is acquired, indexed by role. Matrices point at the file's own bytes; vectors were
/// decoded to f32 when the model was opened.
struct Weights {
  std::span<const Matrix> matrices;
  std::span<const std::vector<float>> vectors;

  const Matrix& mat(int role) const { return matrices[static_cast<size_t>(role)]; }
  /// Null if the model does not have it.
  const float* vec(int role) const {
    const auto i = static_cast<size_t>(role);
    return i >= vectors.size() || vectors[i].empty() ? nullptr : vectors[i].data();
  }
};

struct Family {
  std::string_view name;
  std::string_view summary;                    ///< one line: its models, and what sets it apart
  std::span<const std::string_view> aliases;   ///< values of config.json's "model_type"
  std::span<const std::string_view> prefixes;  ///< prefixes that files may put before tensor names, "" included
  /// Endings of tensors that files contain and the model does not need, for example a mask.
  std::span<const std::string_view> buffers = {};
  /// Values for numbers that "text_config" leaves out; used only if it leaves out "hidden_size" too.
  std::span<const std::pair<std::string_view, int64_t>> text_defaults = {};
  std::span<const TensorSplit> splits = {};  ///< stored tensors that contain several of the table's
  std::string_view quantization = {};        ///< "quant_method" of files whose quantised tensors `splits` names
  GgufNames gguf;
  Result<ModelConfig> (*parse_config)(const ConfigView& view);
  TensorTable (*tensor_table)(const ModelConfig& config);
  /// The row sizes that every layer must store per position. The session chooses `max_ctx` and the KV types.
  CacheShape (*cache_needs)(const ModelConfig& config);
  /// Writes x[t], the embedding of token t (plus its position's, if positions are learned). The matrices in `w` contain
  /// one row per token of the pass.
  void (*embed)(Pass& pass, const Weights& w);
  /// Replaces x by the output of layer l. `layer`, `embed` and `final_norm` also run in a dry pass of no tokens, with
  /// weights that have no data: what they take of the workspace then must be what they take per token (Footprint).
  void (*layer)(Pass& pass, int l, const Weights& w);
  /// Returns the final norm of x, [tokens, hidden].
  Rows (*final_norm)(Pass& pass, Rows x, const Weights& w);
};

/// The cache needs of a model whose layers all store rows of the same shape, each for as many positions as its window
/// shows.
CacheShape uniform_cache(const ModelConfig& config);

std::span<const Family* const> families();
/// Finds a family by "model_type". Errors: an unknown type, with the list of known ones.
Result<const Family*> find_family(const ConfigView& view);
/// The GGUF names for this "general.architecture"; null if no family has that name.
const GgufNames* find_gguf_names(std::string_view arch);
/// Finds the tensor that `spec` names, with any of the family's prefixes. Returns null if the config does not have it,
/// or if it is optional and the file does not contain it. Errors: the tensor is missing or has another shape.
Result<const TensorInfo*> find_tensor(const Family& family, const TensorSpec& spec, const TensorDir& dir,
                                      const std::string& where);
/// The configuration of the language model inside `view`. A model of text and images keeps it in "text_config", which
/// is returned with the special ids, the tied head and the dtype of `view` filled in. Otherwise returns `view` itself.
ConfigView text_config(const ConfigView& view);

}  // namespace kvasir
