// The grow-on-demand KV store: the heart of the default cache layout, usable alone.
// Not here: which tokens it holds (a Session knows), how attention walks it (tiles), other layouts.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <kvasir/result.h>
#include <kvasir/version.h>

namespace kvasir {

/// K and V rows of `batch` sequences of equal length, `[layer][pos][batch][kv_dim]`, kv_dim = kv_heads * head_dim.
///
/// Invariants:
///  - capacity() starts at kInitialCap positions (max_len if smaller), doubles, and never passes max_len.
///  - offset(layer, pos) = (layer * capacity() + pos) * batch * kv_dim, in elements, plus b * kv_dim for sequence b.
///  - All layers write the same position; the length advances ONCE per forward pass, after the last layer.
///  - A pointer that k() or v() gave dies at the next growth.
///  - Rows at and past seq_len() are not live: growth does not carry them. Before writing more than one position, call
///    grow_to() or set_seq_len().
///  - clear() sets the length to 0 and keeps the capacity.
/// Thread safety: growth happens on one thread before the parallel part; concurrent reads and writes of distinct rows
/// are fine while nothing grows.
class KVASIR_API KVCache {
 public:
  static constexpr int kInitialCap = 64;

  /// Requires: every number >= 1. `k_type` and `v_type` are names of catalog::kv_types(). When the system gives no
  /// memory, or a name is unknown, the capacity is 0 and the first growth reports it.
  KVCache(int layers, int kv_heads, int head_dim, int max_len, int batch = 1, std::string_view k_type = "f32",
          std::string_view v_type = "f32");
  ~KVCache();
  KVCache(KVCache&&) noexcept;
  KVCache& operator=(KVCache&&) noexcept;

  int layers() const { return layers_; }
  int kv_dim() const { return kv_heads_ * head_dim_; }
  int max_len() const { return max_len_; }
  int batch() const { return batch_; }
  int capacity() const { return cap_; }
  int seq_len() const { return seq_len_; }
  int kv_heads() const { return kv_heads_; }
  int head_dim() const { return head_dim_; }
  const std::string& k_type() const { return k_type_; }
  const std::string& v_type() const { return v_type_; }

  /// The capacity that holds `positions`: kInitialCap doubled until it does, at most max_len.
  static int capacity_for(int positions, int max_len);

  /// Makes room for `need` positions: allocates the wider K and V, copies each layer's live rows to the new stride,
  /// swaps. Nothing changes on error. Errors: need > max_len (a hard ceiling), no memory.
  Result<void> grow_to(int need);
  /// Sets the length, growing ahead of it. Errors: as grow_to; a negative length.
  Result<void> set_seq_len(int n);
  void clear() { seq_len_ = 0; }

  /// Elements from the start of K (or V) to this row.
  size_t offset(int layer, int pos, int b = 0) const {
    return ((static_cast<size_t>(layer) * static_cast<size_t>(cap_) + static_cast<size_t>(pos)) *
                static_cast<size_t>(batch_) +
            static_cast<size_t>(b)) *
           static_cast<size_t>(kv_dim());
  }

  /// Row of K / V as f32 (or of the stored type, k<std::byte>). The non-const ones grow to hold `pos` and give null
  /// when that fails; the const ones never grow. Requires: pos < capacity() for the const ones.
  template <class T = float>
  T* k(int layer, int pos, int b = 0) {
    return pos < cap_ || grow_to(pos + 1) ? row<T>(k_, k_row_, layer, pos, b) : nullptr;
  }
  template <class T = float>
  T* v(int layer, int pos, int b = 0) {
    return pos < cap_ || grow_to(pos + 1) ? row<T>(v_, v_row_, layer, pos, b) : nullptr;
  }
  template <class T = float>
  const T* k(int layer, int pos, int b = 0) const {
    return row<T>(k_, k_row_, layer, pos, b);
  }
  template <class T = float>
  const T* v(int layer, int pos, int b = 0) const {
    return row<T>(v_, v_row_, layer, pos, b);
  }

  /// Bytes of one position's K (V) row of one sequence.
  size_t k_row_bytes() const { return k_row_; }
  size_t v_row_bytes() const { return v_row_; }
  /// The true resident footprint: layers * capacity * batch * (K row + V row).
  size_t bytes() const;
  /// The most it has held at any moment, growth's old + new included.
  size_t peak_bytes() const { return peak_bytes_; }
  /// How often it grew, and how many positions that copied (each a row in every layer).
  int growths() const { return growths_; }
  size_t copied_rows() const { return copied_rows_; }

  /// Memory for a growth, allocated and not yet in place; plan() may fail, apply() cannot.
  class Growth;
  struct FreeGrowth {
    void operator()(Growth* growth) const;
  };
  using GrowthPtr = std::unique_ptr<Growth, FreeGrowth>;
  Result<GrowthPtr> plan(int need) const;
  void apply(GrowthPtr growth);

 private:
  template <class T>
  T* row(std::byte* base, size_t row_bytes, int layer, int pos, int b) const {
    const size_t index = ((static_cast<size_t>(layer) * static_cast<size_t>(cap_) + static_cast<size_t>(pos)) *
                          static_cast<size_t>(batch_)) +
                         static_cast<size_t>(b);
    return reinterpret_cast<T*>(base + index * row_bytes);
  }

  int layers_, kv_heads_, head_dim_, max_len_, batch_;
  std::string k_type_, v_type_;
  size_t k_row_, v_row_;
  int cap_ = 0, seq_len_ = 0;
  std::byte* k_ = nullptr;
  std::byte* v_ = nullptr;
  GrowthPtr memory_;  // owns k_ and v_
  size_t peak_bytes_ = 0, copied_rows_ = 0;
  int growths_ = 0;
};

/// What the texts kept under EngineOptions::prefix_ram did so far.
struct PrefixStats {
  int64_t queries = 0, hits = 0;  ///< texts asked for; those of which something was there
  int64_t asked_tokens = 0, reused_tokens = 0;
  int64_t evicted_tokens = 0;
  size_t entries = 0, bytes = 0;  ///< texts now, and their KV; what several share counts once
  size_t index_bytes = 0;         ///< of their tokens and the tree, within the same limit
};

}  // namespace kvasir
