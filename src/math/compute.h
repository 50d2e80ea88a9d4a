// The means to compute a forward pass with: this CPU's kernel table, the threads, and scratch memory per thread. Work
// is divided by output rows, query rows or elements, which cannot change a bit of the result.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <kvasir/result.h>

#include "base/buffer.h"
#include "base/system.h"
#include "base/thread_pool.h"
#include "dtype/codec.h"
#include "math/kernels.h"

namespace kvasir {

/// The order of a file's rows. Each group of `group` rows is [group / (parts * unit)][parts][unit] in the file, and
/// [parts][group / (parts * unit)][unit] as outputs. q and k of a Llama in GGUF are groups of head_dim with two parts
/// of single rows; q, k and v of GPT-NeoX are one group of three parts of heads.
struct RowOrder {
  int64_t group = 0;  // 0: the file has the order of outputs
  int parts = 0;
  int64_t unit = 1;

  /// The file's row for output r.
  int64_t stored(int64_t r) const {
    if (group == 0) return r;
    const int64_t in_group = r % group, outer = group / (parts * unit);
    const int64_t part = in_group / (outer * unit), i = in_group / unit % outer;
    return r - in_group + (i * parts + part) * unit + in_group % unit;
  }
};

/// Largest group that has rotation pairs.
inline constexpr int kMaxPairDim = 1024;

/// A weight matrix as stored: y = W x with W [rows, cols]. `conv1d`: the file contains its transpose.
struct Matrix {
  const Codec* codec = nullptr;
  const std::byte* data = nullptr;
  int64_t rows = 0, cols = 0;
  bool conv1d = false;
  RowOrder order = {};

  /// Bytes between stored rows.
  size_t row_bytes() const { return codec->row_bytes(conv1d ? rows : cols); }
};

/// A view of activations: n rows of `cols` floats, `stride` floats apart.
struct Rows {
  float* data = nullptr;
  int n = 0;
  int64_t cols = 0, stride = 0;

  float* row(int t) const { return data + t * stride; }
  /// Columns [from, from + count) of every row.
  Rows columns(int64_t from, int64_t count) const { return {data + from, n, count, stride}; }
};

/// Largest number of rows of a pass that may use the integer kernels for few tokens. A larger pass uses panels even for
/// jobs of few rows.
inline constexpr int kArrangedRows = 64;

/// One of several products computed together: y[t] = w x[first + t] + bias, for each row t of y.
struct MatmulJob {
  Matrix w;
  const float* bias = nullptr;
  Rows y;
  int first = 0;
};

class Compute {
 public:
  /// Errors: an unusable CPU target, a thread count out of range, no memory.
  static Result<std::unique_ptr<Compute>> create(int threads);

  const Kernels& kernels() const { return *kernels_; }
  ThreadPool& pool() { return *pool_; }
  int threads() const { return pool_->threads(); }

  /// Grows every thread's scratch to at least `floats` floats. Call it outside of parallel sections. Errors: no memory.
  Result<void> reserve_scratch(int64_t floats);
  float* scratch(int worker) { return reinterpret_cast<float*>(scratch_[static_cast<size_t>(worker)].data()); }

  /// Grows the memory for the activations of integer weights: passes of up to n rows of `cols`, of which up to `few`
  /// are read by the kernels for few tokens. Call it outside of parallel sections. Errors: no memory.
  Result<void> reserve_acts(int64_t n, int64_t cols, int few = kFewIntegerTokens);

  /// Computes all jobs, products of rows of the same x, in one parallel section. Requires: scratch of kPanelRows * cols
  /// floats reserved, and memory for the activations if a job has integer weights. With no rows it does nothing.
  void matmul(const Rows& x, std::span<const MatmulJob> jobs);
  /// Called with every product before it is computed, by the thread that calls matmul(): for statistics over
  /// activations. Empty: nobody watches.
  using Watch = std::function<void(const Rows& x, const MatmulJob& job)>;
  void set_watch(Watch watch) { watch_ = std::move(watch); }
  /// Calls f(t) for t in [0, n), in blocks of tokens over the threads.
  template <class F>
  void for_rows(int n, F&& f) {
    constexpr int kBlock = 4;
    pool_->run((n + kBlock - 1) / kBlock, [&](int block, int) {
      for (int t = block * kBlock; t < n && t < (block + 1) * kBlock; ++t) f(t);
    });
  }

 private:
  Compute() = default;
  /// Encodes x for integer weights, and arranges it for the kernels for few tokens. Null if no job has integer weights.
  const ActBlock* encode_x(const Rows& x, std::span<const MatmulJob> jobs);
  std::byte* arranged(Arrangement arrangement, const Rows& x);

  const Kernels* kernels_ = nullptr;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<Buffer> scratch_;
  int64_t scratch_floats_ = 0;
  Buffer acts_, arranged_;
  Watch watch_;
};

}  // namespace kvasir
