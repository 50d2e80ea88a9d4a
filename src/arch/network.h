// A loaded network (config, family, weights) and its forward pass over a batch. It has no tokenizer, no sampling and no
// session.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kvasir/result.h>

#include "arch/activation_memory.h"
#include "arch/family.h"
#include "arch/forward_pass.h"
#include "format/weight_source.h"

namespace kvasir {

/// The tensors of one group while they are acquired; the destructor releases them.
class HeldWeights {
 public:
  /// `group` is the source's index; `data` is what its acquire() returned.
  HeldWeights(WeightSource& source, int group, std::span<const std::byte* const> data, std::vector<Matrix> matrices,
              std::span<const std::vector<float>> vectors = {})
      : source_(&source), group_(group), matrices_(std::move(matrices)), vectors_(vectors) {
    for (size_t i = 0; i < data.size(); ++i) matrices_[i].data = data[i];
  }
  HeldWeights(HeldWeights&& other) noexcept
      : source_(std::exchange(other.source_, nullptr)),
        group_(other.group_),
        matrices_(std::move(other.matrices_)),
        vectors_(other.vectors_) {}
  HeldWeights& operator=(HeldWeights&&) = delete;
  ~HeldWeights() {
    if (source_ != nullptr) source_->release(group_);
  }
  Weights weights() const { return {matrices_, vectors_}; }

 private:
  WeightSource* source_;
  int group_;
  std::vector<Matrix> matrices_;
  std::span<const std::vector<float>> vectors_;
};

class Network {
 public:
  /// Finds every tensor of the family's table in `dir` and checks its shape and type. `budget`: as for open_weights().
  /// Errors name the tensor.
  static Result<std::unique_ptr<Network>> load(const Family& family, ModelConfig config,
                                               std::shared_ptr<const TensorDir> dir, WeightsMode mode,
                                               const std::string& where, std::shared_ptr<Budget> budget = {});

  const ModelConfig& config() const { return config_; }
  const Family& family() const { return *family_; }
  const Footprint& footprint() const { return footprint_; }
  WeightSource& source() const { return *source_; }
  /// Storage type of the largest tensor, for example "f16".
  std::string_view weight_type() const;
  int64_t parameters() const;
  /// Bytes of all tensors as stored; a tensor with two uses counts once.
  size_t weights_bytes() const;
  WeightSizes weight_sizes() const;
  /// XXH3-128 over the config and the tensors in name order, as 32 hex digits. Hashes the weights that passes use:
  /// those in memory if resident, else the files'.
  Result<std::string> fingerprint() const;
  const TensorDir& tensors() const { return *dir_; }

  struct Output {
    float* logits = nullptr;                   ///< receives [wanted tokens over all items][vocab]
    std::vector<std::optional<Error>> errors;  ///< [items]: Error::not_finite, or empty
  };

  /// Runs the batch. Every item's tokens continue its cache: item.first must equal its coverage. On error, no cache has
  /// changed its length; an item with an error of its own in out->errors keeps its length too. `trace` may be null.
  /// Errors: an id out of range, a position past the cache, no memory, weights that cannot be read, a family whose code
  /// takes more memory than its dry pass did (Error::internal).
  Result<void> forward(std::span<const BatchItem> items, Compute& compute, Workspace& workspace, Output* out,
                       const Trace* trace = nullptr) const;

 private:
  struct Group {
    std::vector<const TensorInfo*> infos;     // null: absent from this model, or a vector
    std::vector<Matrix> matrices;             // `data` is set only while acquired
    std::vector<std::vector<float>> vectors;  // decoded to f32 at load
    std::vector<RowOrder> orders;             // row order of each matrix or vector
    std::vector<std::string> names;           // canonical
    std::vector<GroupedRows> grouped;         // TensorSpec::grouped
    std::vector<bool> by_position;            // TensorSpec::by_position
    std::vector<bool> of_expert;              // TensorSpec::of_expert
    size_t vector_bytes = 0;                  // bytes of the vectors, as stored
  };

  // Rows [begin, begin + matrix.rows) of the vocabulary head; one group of the source.
  struct Slice {
    int64_t begin;
    Matrix matrix;
  };

  Network() = default;
  Result<Group> bind(const std::vector<TensorSpec>& specs, const TensorDir& dir, const std::string& where) const;
  Result<const TensorInfo*> find(const TensorSpec& spec, const TensorDir& dir, const std::string& where) const;
  // Lists the groups that the source is opened with. Fills slices_.
  WeightUse weight_use(WeightsMode mode);
  void add_layer(const Group& layer, bool experts_apart, WeightUse* use) const;
  void add_head(bool sliced, WeightUse* use);
  bool experts_can_be_apart() const;
  Result<HeldWeights> acquire_layer(int l, int next, Compute& compute) const;
  Result<HeldWeights> acquire_slice(size_t slice, Compute& compute) const;
  Result<void> check(std::span<const BatchItem> items) const;
  Result<void> embed(Pass& pass) const;
  void look_ahead(Pass& pass, int l) const;
  Result<void> run_layers(Pass& pass, bool logits) const;
  Result<void> read_out(Pass& pass, std::span<const int> wanted, float* logits) const;
  Result<void> vocabulary_head(Pass& pass, const Rows& normed, std::span<const int> wanted, float* logits) const;
  std::vector<std::optional<Error>> find_not_finite(const Pass& pass, std::span<const int> wanted,
                                                    const float* logits) const;

  const Family* family_ = nullptr;
  ModelConfig config_;
  Footprint footprint_;
  std::shared_ptr<const TensorDir> dir_;
  std::unique_ptr<WeightSource> source_;
  std::vector<Group> groups_;           // embed, layers, head
  int head_bias_ = -1;                  // TensorTable::head_bias
  std::vector<Slice> slices_;           // of the head: one, or several of about a layer's size if weights are streamed
  std::vector<RopeFrequencies> ropes_;  // [kinds of RoPE]
  int64_t integer_cols_ = 0;            // largest number of inputs of a matrix with integer weights; 0: none
};

}  // namespace kvasir
