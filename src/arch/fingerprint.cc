// The fingerprint of a model: a hash that identifies its weights and config, independent of the file's format.
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

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

// Reads a tensor's bytes as the file stores them, some rows at a time. Resident weights are read from memory, since the
// file may have changed; others from the file, so that hashing a model of any size takes little memory.
struct Stored {
  const TensorDir& dir;
  const WeightSource& source;
  const TensorInfo& info;
  size_t row_bytes;

  Result<void> read(int64_t row, std::span<std::byte> out) const {
    const uint64_t begin = static_cast<uint64_t>(row) * row_bytes;
    if (source.mode() == WeightsMode::resident) return source.copy(info, begin, out);
    return read_tensor(dir, info, begin, out);
  }
};

// Hashes the transpose of the stored matrix, one band of columns at a time: rows of the transpose are scattered in it.
Result<void> add_transposed(const Stored& stored, int64_t rows, int64_t cols, size_t element, Hash& hash) {
  constexpr int64_t kBand = 64;
  std::vector<std::byte> all(static_cast<size_t>(rows) * stored.row_bytes);
  std::vector<std::byte> band(static_cast<size_t>(kBand * rows) * element);
  KVASIR_CHECK(stored.read(0, all));
  for (int64_t c = 0; c < cols; c += kBand) {
    const int64_t wide = std::min(kBand, cols - c);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < wide; ++i)
        std::memcpy(band.data() + static_cast<size_t>(i * rows + r) * element,
                    all.data() + static_cast<size_t>(r * cols + c + i) * element, element);
    hash.add(band.data(), static_cast<size_t>(wide * rows) * element);
  }
  return {};
}

// Hashes rows in the order of outputs, one band of whole groups at a time to use little memory.
Result<void> add_rows(const Stored& stored, int64_t rows, const RowOrder& order, Hash& hash) {
  constexpr int64_t kBandBytes = int64_t{1} << 20;
  const int64_t group = std::max<int64_t>(1, order.group);
  const int64_t fit = std::max<int64_t>(1, kBandBytes / (group * static_cast<int64_t>(stored.row_bytes))) * group;
  std::vector<std::byte> band(static_cast<size_t>(std::min(fit, rows)) * stored.row_bytes);
  for (int64_t begin = 0; begin < rows; begin += fit) {
    const int64_t n = std::min(fit, rows - begin);
    const std::span<std::byte> read(band.data(), static_cast<size_t>(n) * stored.row_bytes);
    KVASIR_CHECK(stored.read(begin, read));
    if (order.group == 0)
      hash.add(read.data(), read.size());
    else
      for (int64_t r = 0; r < n; ++r)
        hash.add(read.data() + static_cast<size_t>(order.stored(r)) * stored.row_bytes, stored.row_bytes);
  }
  return {};
}

// Hashes the bytes row by row in the order of outputs, whatever order the file has.
Result<void> add_matrix(const TensorDir& dir, const WeightSource& source, const TensorInfo& info, const Matrix& m,
                        Hash& hash) {
  const int64_t rows = m.conv1d ? m.cols : m.rows, cols = m.conv1d ? m.rows : m.cols;
  const Stored stored{dir, source, info, m.row_bytes()};
  if (info.transposed && m.codec->block_elems == 1)
    return add_transposed(stored, rows, cols, static_cast<size_t>(m.codec->block_bytes), hash);
  return add_rows(stored, rows, m.order, hash);
}

// Hashes some rows of a matrix as if they were a tensor of their own. Requires: rows stored in order.
Result<void> add_grouped(const Stored& stored, int64_t rows, const GroupedRows& grouped, Hash& hash) {
  std::vector<std::byte> run(static_cast<size_t>(grouped.run) * stored.row_bytes);
  for (int64_t row = grouped.first; row < rows; row += grouped.step) {
    KVASIR_CHECK(stored.read(row, run));
    hash.add(run.data(), run.size());
  }
  return {};
}

void add_vector(const std::vector<float>& v, const RowOrder& order, Hash& hash) {
  std::vector<float> ordered(v.size());
  for (size_t r = 0; r < v.size(); ++r) ordered[r] = v[static_cast<size_t>(order.stored(static_cast<int64_t>(r)))];
  hash.add(ordered.data(), ordered.size() * sizeof(float));
}

}  // namespace

Result<std::string> Network::fingerprint() const {
  Hash hash;
  if (!hash.reset()) return fail(Error::no_room, "no memory for a hash", "fingerprint");
  hash.add(config_.canonical());
  for (const Group& group : groups_)
    for (size_t i = 0; i < group.matrices.size(); ++i) {
      const GroupedRows& grouped = group.grouped[i];
      const auto at = grouped.role < 0 ? i : static_cast<size_t>(grouped.role);
      const Matrix& m = group.matrices[at];
      const TensorInfo* info = group.infos[at];
      if (grouped.role >= 0 && info != nullptr) {
        const int64_t rows = m.rows / grouped.step * grouped.run;
        hash.add(fmt::format("{} {} {}x{}\n", grouped.name, m.codec->name, rows, m.cols));
        KVASIR_CHECK(add_grouped({*dir_, *source_, *info, m.row_bytes()}, m.rows, grouped, hash));
        continue;
      }
      hash.add(fmt::format("{} {} {}x{}\n", group.names[i], info != nullptr ? m.codec->name : "f32", m.rows, m.cols));
      if (info != nullptr) KVASIR_CHECK(add_matrix(*dir_, *source_, *info, m, hash));
      add_vector(group.vectors[i], group.orders[i], hash);
    }
  return hash.hex();
}

}  // namespace kvasir
