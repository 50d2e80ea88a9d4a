// The grow-on-demand KV store: the core of the default cache layout, usable alone. Not here: which tokens it holds
// (Session), how attention reads it (tiles), other layouts.
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
///  - Growth invalidates every pointer that k() and v() returned before.
///  - Rows at and past seq_len() are not live: growth does not copy them. Before writing more than one position, call
///    grow_to() or set_seq_len().
///  - clear() sets the length to 0 and keeps the capacity.
/// Thread safety: grow from one thread only, while no other uses the cache. Between growths, threads may read and write
/// distinct rows concurrently.
class KVASIR_API KVCache {
 public:
  static constexpr int kInitialCap = 64;

  /// Requires: every number >= 1. `k_type` and `v_type` are names of catalog::kv_types(). If memory runs out or a name
  /// is unknown, the capacity is 0 and the first growth returns the error.
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

  /// The capacity for `positions`: kInitialCap doubled until it suffices, at most max_len.
  static int capacity_for(int positions, int max_len);

  /// Grows to at least `need` positions: allocates larger K and V, copies each layer's live rows to the new stride,
  /// swaps. On error nothing changes. Errors: too_long, need > max_len; bad_argument, an unknown type; no_room.
  Result<void> grow_to(int need);
  /// Sets the length, growing first if needed. Errors: as grow_to(); bad_argument, a negative length.
  Result<void> set_seq_len(int n);
  void clear() { seq_len_ = 0; }

  /// Elements from the start of K (or V) to the row of this layer, position and sequence.
  size_t offset(int layer, int pos, int b = 0) const {
    return ((static_cast<size_t>(layer) * static_cast<size_t>(cap_) + static_cast<size_t>(pos)) *
                static_cast<size_t>(batch_) +
            static_cast<size_t>(b)) *
           static_cast<size_t>(kv_dim());
  }

  /// Row [kv_dim] of K or V, as f32; for other stored types use k<std::byte>. The non-const overloads grow to hold
  /// `pos` and return null if that fails. The const ones never grow and require pos < capacity().
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
  /// Bytes allocated: layers * capacity * batch * (K row + V row).
  size_t bytes() const;
  /// Largest bytes() at any moment; while growing, old and new memory count together.
  size_t peak_bytes() const { return peak_bytes_; }
  /// Number of growths, and of positions that they copied (each a row in every layer).
  int growths() const { return growths_; }
  size_t copied_rows() const { return copied_rows_; }

  /// Growth in two steps: prepare() allocates the memory and may fail, apply() puts it in place and cannot.
  class Growth;
  struct FreeGrowth {
    void operator()(Growth* growth) const;
  };
  using GrowthPtr = std::unique_ptr<Growth, FreeGrowth>;
  Result<GrowthPtr> prepare(int need) const;
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

/// Counters of the prefixes kept under EngineOptions::prefix_ram.
struct PrefixStats {
  int64_t queries = 0, hits = 0;                ///< lookups; those that found a prefix
  int64_t asked_tokens = 0, reused_tokens = 0;  ///< in all lookups; found by them
  int64_t evicted_tokens = 0;
  size_t entries = 0, bytes = 0;  ///< texts kept now, and bytes of their KV; shared blocks count once
  size_t index_bytes = 0;         ///< bytes of their tokens and the tree; count toward prefix_ram too
};

}  // namespace kvasir
