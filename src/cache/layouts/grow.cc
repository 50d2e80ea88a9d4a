// grow: the KVCache of <kvasir/kv_cache.h>: 64 positions, doubled up to max_ctx. The default layout.
#include "cache/grow.h"

#include <algorithm>

namespace kvasir {

extern const LayoutInfo layout_grow;

namespace {

class GrowLayout : public Layout {
 public:
  GrowLayout(const CacheShape& shape, std::shared_ptr<KVCache> store, int slot)
      : Layout(shape), owner_(std::move(store)), store_(*owner_), slot_(slot) {}

  const LayoutInfo& info() const override { return layout_grow; }

  Result<std::unique_ptr<Growth>> prepare(int end) const override {
    if (end > shape().max_ctx) return past_context(end, shape().max_ctx);
    KVASIR_TRY(auto grown, store_.prepare(end));
    if (grown == nullptr) return std::unique_ptr<Growth>();
    auto growth = std::make_unique<Grown>();
    growth->of_store = std::move(grown);
    return growth;
  }
  void apply(std::unique_ptr<Growth> growth) override {
    if (growth != nullptr) store_.apply(std::move(static_cast<Grown&>(*growth).of_store));
  }

  Row row(int layer, int pos) override {
    return {store_.k<std::byte>(layer, pos, slot_), store_.v<std::byte>(layer, pos, slot_)};
  }
  void tiles(int layer, int end, std::vector<Tile>* out) const override {
    const KVCache& store = store_;  // const: reading never grows
    const size_t slots = static_cast<size_t>(store.batch());
    append_contiguous_tiles(store.k<std::byte>(layer, 0, slot_), store.k_row_bytes() * slots,
                            store.v<std::byte>(layer, 0, slot_), store.v_row_bytes() * slots, end, out);
  }
  void commit(int length) override { (void)store_.set_seq_len(length); }  // prepare() has made room

  int coverage() const override { return store_.seq_len(); }
  size_t bytes() const override { return store_.bytes(); }
  size_t peak_bytes() const override { return store_.peak_bytes(); }
  int capacity() const override { return store_.capacity(); }
  int growths() const override { return store_.growths(); }
  size_t copied_rows() const override { return store_.copied_rows(); }

 protected:
  void cut(int length) override { (void)store_.set_seq_len(length); }

 private:
  struct Grown : Growth {
    KVCache::GrowthPtr of_store;
  };

  std::shared_ptr<KVCache> owner_;
  KVCache& store_;
  int slot_;  // index of this sequence in the store
};

// The last doubling holds the old and the new memory for a moment.
int64_t peak_positions(int positions, int max_ctx) {
  const int cap = KVCache::capacity_for(positions, max_ctx);
  if (cap <= KVCache::kInitialCap) return cap;
  int before = KVCache::kInitialCap;
  while (int64_t{before} * 2 < cap) before *= 2;
  return int64_t{cap} + before;
}

std::unique_ptr<GrowLayout> make_view(std::shared_ptr<KVCache> store, const CacheShape& shape, int slot) {
  return std::make_unique<GrowLayout>(shape, std::move(store), slot);
}

}  // namespace

std::unique_ptr<Layout> make_grow_view(KVCache& store, const CacheShape& shape, int slot) {
  return make_view(std::shared_ptr<KVCache>(&store, [](KVCache*) {}), shape, slot);
}

const LayoutInfo layout_grow{
    .name = "grow",
    .summary = "64 positions, doubled when full, up to the context",
    .trade = "a short chat costs a short cache; at most log2(ctx / 64) copies, old + new for a moment",
    .bytes = [](const CacheShape& s,
                int positions) { return bytes_of_positions(s, KVCache::capacity_for(positions, s.max_ctx)); },
    .peak_bytes = [](const CacheShape& s,
                     int positions) { return bytes_of_positions(s, peak_positions(positions, s.max_ctx)); },
    .create = [](const CacheShape& shape, std::shared_ptr<BlockPool>) -> Result<std::unique_ptr<Layout>> {
      const CacheShape& s = shape;
      auto layout = make_view(
          std::make_shared<KVCache>(s.layers, s.kv_heads, s.head_dim, s.max_ctx, 1, s.k->name, s.v->name), shape, 0);
      if (layout->capacity() == 0) {  // no memory for the first 64 positions: return the error
        KVASIR_TRY(auto first, layout->prepare(std::min(KVCache::kInitialCap, shape.max_ctx)));
        layout->apply(std::move(first));
      }
      return layout;
    },
};

}  // namespace kvasir
