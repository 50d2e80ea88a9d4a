// The fingerprint of a model: which weights and config these are, whatever the file they came in.
#include <xxhash.h>

#include <memory>

#include <fmt/format.h>

#include "arch/network.h"

namespace kvasir {

Result<std::string> Network::fingerprint() const {
  struct Free {
    void operator()(XXH3_state_t* s) const { XXH3_freeState(s); }
  };
  const std::unique_ptr<XXH3_state_t, Free> state(XXH3_createState());
  if (state == nullptr || XXH3_128bits_reset(state.get()) != XXH_OK) return fail("no memory for a hash", "fingerprint");
  const auto add = [&](const void* data, size_t bytes) { XXH3_128bits_update(state.get(), data, bytes); };
  const std::string config = config_.canonical();
  add(config.data(), config.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    KVASIR_TRY(const HeldWeights held, acquire(static_cast<int>(g)));
    const Weights w = held.weights();
    for (size_t i = 0; i < w.matrices.size(); ++i) {
      const Matrix& m = w.matrices[i];
      const std::string head =
          fmt::format("{} {} {}x{}\n", groups_[g].names[i], m.data != nullptr ? m.codec->name : "f32", m.rows, m.cols);
      add(head.data(), head.size());
      if (m.data != nullptr) add(m.data, m.row_bytes() * static_cast<size_t>(m.conv1d ? m.cols : m.rows));
      add(w.vectors[i].data(), w.vectors[i].size() * sizeof(float));
    }
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace kvasir
