// The fingerprint of a model: which weights and config these are, whatever the file they came in.
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "arch/network.h"

namespace kvasir {

namespace {

class Hash {
 public:
  Hash() : state_(XXH3_createState()) {}
  bool reset() { return state_ != nullptr && XXH3_128bits_reset(state_.get()) == XXH_OK; }
  void add(const void* data, size_t bytes) { XXH3_128bits_update(state_.get(), data, bytes); }
  void add(std::string_view text) { add(text.data(), text.size()); }
  std::string hex() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* s) const { XXH3_freeState(s); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

// Where row r of a Hugging Face tensor lies in a file that stores pairs (Matrix::pair_dim).
int64_t stored_row(int64_t r, int pair_dim) {
  if (pair_dim == 0) return r;
  const int64_t half = pair_dim / 2, in_group = r % pair_dim;
  return r - in_group + 2 * (in_group % half) + in_group / half;
}

// The stored matrix, transposed, a band of its columns at a time so that the memory stays small.
void add_transposed(const std::byte* data, int64_t rows, int64_t cols, size_t element, Hash& hash) {
  constexpr int64_t kBand = 64;
  std::vector<std::byte> band(static_cast<size_t>(kBand * rows) * element);
  for (int64_t c = 0; c < cols; c += kBand) {
    const int64_t wide = std::min(kBand, cols - c);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < wide; ++i)
        std::memcpy(band.data() + static_cast<size_t>(i * rows + r) * element,
                    data + static_cast<size_t>(r * cols + c + i) * element, element);
    hash.add(band.data(), static_cast<size_t>(wide * rows) * element);
  }
}

// The bytes in the order in which a Hugging Face folder holds them, whatever the file's own order is.
void add_matrix(const Matrix& m, bool transposed, Hash& hash) {
  const int64_t rows = m.conv1d ? m.cols : m.rows, cols = m.conv1d ? m.rows : m.cols;
  if (transposed && m.codec->block_elems == 1) {
    add_transposed(m.data, rows, cols, static_cast<size_t>(m.codec->block_bytes), hash);
  } else if (m.pair_dim == 0) {
    hash.add(m.data, m.row_bytes() * static_cast<size_t>(rows));
  } else {
    for (int64_t r = 0; r < rows; ++r)
      hash.add(m.data + static_cast<size_t>(stored_row(r, m.pair_dim)) * m.row_bytes(), m.row_bytes());
  }
}

void add_vector(const std::vector<float>& v, int pair_dim, Hash& hash) {
  std::vector<float> ordered(v.size());
  for (size_t r = 0; r < v.size(); ++r)
    ordered[r] = v[static_cast<size_t>(stored_row(static_cast<int64_t>(r), pair_dim))];
  hash.add(ordered.data(), ordered.size() * sizeof(float));
}

}  // namespace

Result<std::string> Network::fingerprint() const {
  Hash hash;
  if (!hash.reset()) return fail("no memory for a hash", "fingerprint");
  hash.add(config_.canonical());
  for (size_t g = 0; g < groups_.size(); ++g) {
    KVASIR_TRY(const HeldWeights held, acquire(static_cast<int>(g)));
    const Weights w = held.weights();
    for (size_t i = 0; i < w.matrices.size(); ++i) {
      const Matrix& m = w.matrices[i];
      hash.add(
          fmt::format("{} {} {}x{}\n", groups_[g].names[i], m.data != nullptr ? m.codec->name : "f32", m.rows, m.cols));
      if (m.data != nullptr) add_matrix(m, groups_[g].infos[i]->transposed, hash);
      add_vector(w.vectors[i], groups_[g].vector_pairs[i], hash);
    }
  }
  return hash.hex();
}

}  // namespace kvasir
