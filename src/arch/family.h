// A model family: how its config reads, which tensors it has, what cache its layers need, and its layer. It names no
// cache layout, no storage type and no CPU. One file per family in families/.
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

/// Rows of a matrix that other files store as a tensor of its own: `run` rows of every `step`, from `first` on.
struct GroupedRows {
  int role = -1;     ///< of the matrix that has them; -1: the tensor is its own
  std::string name;  ///< of the tensor that they are in other files
  int64_t first = 0, run = 0, step = 0;
};

/// One tensor that the family needs. Tensors of rank 1 are vectors (gains, biases); the rest are matrices.
struct TensorSpec {
  std::string name;            ///< as in Hugging Face files, without the family's prefixes
  std::vector<int64_t> shape;  ///< as stored
  bool conv1d = false;         ///< stored [in][out]
  bool present = true;         ///< false: this config does not have it (a bias, say)
  bool by_position = false;    ///< of the embed list: rows are looked up by position, not by token
  bool optional = false;       ///< the config may have it, and the file tells
  bool less_one = false;       ///< a gain that Hugging Face files store less one
  bool of_expert = false;      ///< read by the tokens alone that choose its expert
  int by_head = 0;             ///< rows of q, k and v, which Hugging Face files store head by head, of so many heads
  GroupedRows grouped = {};    ///< what the fingerprint is made of, so that all files of a model have one
};

/// Lists in the order of the family's own role numbers.
struct TensorTable {
  std::vector<TensorSpec> embed;  ///< tables of which a pass needs a row a token
  std::vector<std::vector<TensorSpec>> layers;
  std::vector<TensorSpec> head;  ///< final norm, then last the matrix of the vocabulary head
  int head_bias = -1;            ///< of the head's list: the bias of its matrix; -1: none
};

/// The tensors of one group while it is acquired, by role. Matrices point at the file's own bytes; vectors were decoded
/// to f32 when the model was opened.
struct Weights {
  std::span<const Matrix> matrices;
  std::span<const std::vector<float>> vectors;

  const Matrix& mat(int role) const { return matrices[static_cast<size_t>(role)]; }
  /// Null when the model does not have it.
  const float* vec(int role) const {
    const auto i = static_cast<size_t>(role);
    return i >= vectors.size() || vectors[i].empty() ? nullptr : vectors[i].data();
  }
};

struct Family {
  std::string_view name;
  std::string_view summary;                    ///< models of the family, and what sets it apart, in a line
  std::span<const std::string_view> aliases;   ///< values of config.json's "model_type"
  std::span<const std::string_view> prefixes;  ///< what files may put before tensor names, "" included
  /// Endings of tensors that files hold and the model does not need: a mask, say.
  std::span<const std::string_view> buffers = {};
  /// Numbers that "text_config" may leave out, where it leaves out "hidden_size".
  std::span<const std::pair<std::string_view, int64_t>> text_defaults = {};
  std::span<const TensorSplit> splits = {};  ///< tensors of folders that hold several of the table's
  std::string_view quantization = {};        ///< "quant_method" of folders whose tensors `splits` names
  GgufNames gguf;
  Result<ModelConfig> (*parse_config)(const ConfigView& view);
  TensorTable (*tensor_table)(const ModelConfig& config);
  /// What every layer must store per position; `max_ctx` and types are the session's choice.
  CacheShape (*cache_needs)(const ModelConfig& config);
  /// x[t] = embedding of token t (and of its position, where positions are learned). Its matrices hold one row a token
  /// of the pass.
  void (*embed)(Pass& pass, const Weights& w);
  /// x -> x after layer l. This, embed and final_norm run over a pass of no tokens as well, whose weights have no data:
  /// what they take of the workspace then is what they take for every token (Footprint).
  void (*layer)(Pass& pass, int l, const Weights& w);
  /// The final norm.
  Rows (*final_norm)(Pass& pass, Rows x, const Weights& w);
};

/// The needs of a model whose layers all store the same rows, each of as many positions as its window asks for.
CacheShape uniform_cache(const ModelConfig& config);

std::span<const Family* const> families();
/// By "model_type". Errors: an unknown one, with the list of known ones.
Result<const Family*> find_family(const ConfigView& view);
/// The names in GGUF files of this "general.architecture". Null: no family has that name.
const GgufNames* find_gguf_names(std::string_view arch);
/// The tensor that `spec` names, under whichever prefixes the file puts before it; null where the config or, for an
/// optional one, the file has none. Errors: there is none, or it has another shape.
Result<const TensorInfo*> find_tensor(const Family& family, const TensorSpec& spec, const TensorDir& dir,
                                      const std::string& where);
/// The configuration of the language model inside `view`: "text_config" where a model of text and images keeps it
/// there, completed by what stands beside it, else `view` itself.
ConfigView text_config(const ConfigView& view);

}  // namespace kvasir
