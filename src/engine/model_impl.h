// The internals of a Model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kvasir/model.h>

#include "arch/network.h"
#include "base/budget.h"
#include "base/mutex.h"
#include "engine/shared_memory.h"

namespace kvasir {

struct Model::Impl {
  explicit Impl(const ModelOptions& options) : memory(options.ram, options.kv_ram) {}

  mutable SharedMemory memory;
  std::vector<BudgetSharePtr> shares;  // declared before the network: the reservation ends after the memory is freed
  std::unique_ptr<Network> network;
  std::shared_ptr<const Tokenizer> tokenizer;
  SamplingParams sampling;
  ModelInfo info;
  std::vector<std::string> files;
  mutable Mutex mutex;
  mutable std::string fingerprint KVASIR_GUARDED_BY(mutex);
  mutable std::string stamps KVASIR_GUARDED_BY(mutex);  // state of the files for which `fingerprint` is known

  /// Reserves bytes in the budget for as long as the model lives.
  Result<void> take(size_t bytes, const std::string& owner, const std::string& hint);
  Result<void> open_tokenizer(const std::string& file, bool inside_gguf);
  void add_turn_ends(bool inside_gguf);
  Result<void> load_weights(const Family& family, const ModelConfig& config, std::shared_ptr<const TensorDir> dir,
                            const ModelOptions& options);
  Result<std::string> find_fingerprint() const KVASIR_REQUIRES(mutex);
};

}  // namespace kvasir
