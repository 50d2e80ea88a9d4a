// Growth of the KV store and its memory.
#include <kvasir/kv_cache.h>

#include <algorithm>

#include <fmt/format.h>

#include "cache/kv_slab.h"
#include "cache/kv_type.h"

namespace kvasir {

class KVCache::Growth {
 public:
  explicit Growth(Slab s) : slab(std::move(s)) {}
  Slab slab;
};

void KVCache::FreeGrowth::operator()(Growth* growth) const { delete growth; }

namespace {

// Bytes of one position in one layer; 0 if there is no such type.
size_t row_bytes(std::string_view type, int kv_heads, int head_dim) {
  const auto known = find_kv_type(type);
  return known ? static_cast<size_t>(kv_heads) * (*known)->codec->row_bytes(head_dim) : 0;
}

}  // namespace

KVCache::KVCache(int layers, int kv_heads, int head_dim, int max_len, int batch, std::string_view k_type,
                 std::string_view v_type)
    : layers_(layers),
      kv_heads_(kv_heads),
      head_dim_(head_dim),
      max_len_(max_len),
      batch_(batch),
      k_type_(k_type),
      v_type_(v_type),
      k_row_(row_bytes(k_type, kv_heads, head_dim)),
      v_row_(row_bytes(v_type, kv_heads, head_dim)) {
  if (auto first = prepare(std::min(kInitialCap, max_len))) {
    apply(std::move(*first));
    growths_ = 0;  // the initial capacity is not a growth
  }
}

KVCache::~KVCache() = default;
KVCache::KVCache(KVCache&&) noexcept = default;
KVCache& KVCache::operator=(KVCache&&) noexcept = default;

int KVCache::capacity_for(int positions, int max_len) {
  int64_t cap = kInitialCap;
  while (cap < positions) cap *= 2;
  return static_cast<int>(std::min<int64_t>(cap, max_len));
}

size_t KVCache::bytes() const { return memory_ ? memory_->slab.bytes() : 0; }

Result<KVCache::GrowthPtr> KVCache::prepare(int need) const {
  if (need > max_len_)
    return fail(Error::too_long, fmt::format("{} positions asked for, the cache may hold {}", need, max_len_),
                "KV cache", "a larger max_len or a shorter prompt");
  if (need <= cap_) return GrowthPtr();
  if (k_row_ == 0 || v_row_ == 0)
    return fail(Error::bad_argument, fmt::format("no KV type stores K as {} and V as {}", k_type_, v_type_), "KV cache",
                "f32, f16, bf16, q8_0 or q4_0");
  const size_t slots = static_cast<size_t>(batch_);
  KVASIR_TRY(Slab slab, Slab::allocate(layers_, capacity_for(need, max_len_), k_row_ * slots, v_row_ * slots));
  return GrowthPtr(new Growth(std::move(slab)));
}

void KVCache::apply(GrowthPtr growth) {
  if (growth == nullptr) return;
  peak_bytes_ = std::max(peak_bytes_, bytes() + growth->slab.bytes());
  if (memory_) copied_rows_ += growth->slab.copy_from(memory_->slab, seq_len_);
  ++growths_;
  memory_ = std::move(growth);
  cap_ = memory_->slab.cap;
  k_ = memory_->slab.k.data();
  v_ = memory_->slab.v.data();
}

Result<void> KVCache::grow_to(int need) {
  KVASIR_TRY(auto growth, prepare(need));
  apply(std::move(growth));
  return {};
}

Result<void> KVCache::set_seq_len(int n) {
  if (n < 0) return fail(Error::bad_argument, fmt::format("a sequence length of {}", n), "KV cache", "0 or more");
  KVASIR_CHECK(grow_to(n));
  seq_len_ = n;
  return {};
}

}  // namespace kvasir
