// paged: blocks of 64 positions, taken from a pool as positions arrive. Forks share blocks; a shared block is copied
// before the first write to it.
#include <algorithm>
#include <cstring>

#include "cache/block_pool.h"
#include "cache/layout.h"

namespace kvasir {

extern const LayoutInfo layout_paged;

namespace {

constexpr int kBlock = kTilePositions;

int blocks_for(int positions) { return (positions + kBlock - 1) / kBlock; }

size_t paged_bytes(const CacheShape& s, int positions) {
  return bytes_of_positions(s, int64_t{blocks_for(positions)} * kBlock);
}

// A block is [layer], and in each layer 64 rows of K, then 64 rows of V.
class PagedLayout : public Layout {
 public:
  PagedLayout(const CacheShape& shape, std::shared_ptr<BlockPool> pool) : Layout(shape), pool_(std::move(pool)) {}

  const LayoutInfo& info() const override { return layout_paged; }

  Result<std::unique_ptr<Growth>> prepare(int end) const override {
    if (end > shape().max_ctx) return past_context(end, shape().max_ctx);
    const bool copy = end > length_ && is_shared(length_);
    const int more = blocks_for(end) - static_cast<int>(blocks_.size());
    if (!copy && more <= 0) return std::unique_ptr<Growth>();
    auto taken = std::make_unique<Taken>();
    if (copy) {
      KVASIR_TRY(taken->copy, pool_->take(block_bytes()));
    }
    for (int i = 0; i < more; ++i) {
      KVASIR_TRY(taken->blocks.emplace_back(), pool_->take(block_bytes()));
    }
    return taken;
  }

  void apply(std::unique_ptr<Growth> growth) override {
    if (growth == nullptr) return;
    Taken& taken = static_cast<Taken&>(*growth);
    if (taken.copy != nullptr) {
      BlockPtr& shared = blocks_[static_cast<size_t>(length_ / kBlock)];
      std::memcpy(taken.copy->data(), shared->data(), block_bytes());
      shared = std::move(taken.copy);
      last_copy_ = shared.get();
      copied_rows_ += static_cast<size_t>(length_ % kBlock);
    }
    growths_ += taken.blocks.empty() ? 0 : 1;
    for (BlockPtr& block : taken.blocks) blocks_.push_back(std::move(block));
    peak_bytes_ = std::max(peak_bytes_, bytes());
  }

  Row row(int layer, int pos) override {
    std::byte* const k = layer_of(pos / kBlock, layer);
    const auto i = static_cast<size_t>(pos % kBlock);
    return {k + i * shape().k_row_bytes(), k + kBlock * shape().k_row_bytes() + i * shape().v_row_bytes()};
  }
  void tiles(int layer, int end, std::vector<Tile>* out) const override {
    const size_t k_row = shape().k_row_bytes(), v_row = shape().v_row_bytes();
    for (int first = 0; first < end; first += kBlock) {
      const std::byte* const k = layer_of(first / kBlock, layer);
      out->push_back({first, live_below(first, end), k, k + kBlock * k_row, k_row, v_row});
    }
  }
  void commit(int length) override { length_ = length; }

  int coverage() const override { return length_; }
  size_t bytes() const override { return blocks_.size() * block_bytes(); }
  size_t peak_bytes() const override { return peak_bytes_; }
  int capacity() const override { return static_cast<int>(blocks_.size()) * kBlock; }
  int growths() const override { return growths_; }
  size_t copied_rows() const override { return copied_rows_; }
  const void* last_copy() const override { return last_copy_; }
  std::vector<Piece> memory() const override {
    std::vector<Piece> pieces;
    pieces.reserve(blocks_.size());
    for (const BlockPtr& block : blocks_) pieces.push_back({block.get(), block->bytes(), block.holders()});
    return pieces;
  }

 protected:
  void cut(int length) override {
    length_ = length;
    blocks_.resize(static_cast<size_t>(blocks_for(length)));
  }
  bool share(const Layout& from, int length) override {
    const auto* other = dynamic_cast<const PagedLayout*>(&from);
    if (other == nullptr || other->pool_ != pool_) return false;
    blocks_.assign(other->blocks_.begin(), other->blocks_.begin() + blocks_for(length));
    peak_bytes_ = std::max(peak_bytes_, bytes());
    return true;
  }

 private:
  struct Taken : Growth {
    BlockPtr copy;  // replaces the shared block that contains the next position
    std::vector<BlockPtr> blocks;
  };

  size_t block_bytes() const { return bytes_of_positions(shape(), kBlock); }
  std::byte* layer_of(int block, int layer) const {
    return blocks_[static_cast<size_t>(block)]->data() +
           static_cast<size_t>(layer) * kBlock * (shape().k_row_bytes() + shape().v_row_bytes());
  }
  // Whether the block that contains position `pos` has other holders, who may read it.
  bool is_shared(int pos) const {
    const auto block = static_cast<size_t>(pos / kBlock);
    return block < blocks_.size() && !blocks_[block].unique();
  }

  std::shared_ptr<BlockPool> pool_;
  std::vector<BlockPtr> blocks_;
  const void* last_copy_ = nullptr;
  int length_ = 0, growths_ = 0;
  size_t peak_bytes_ = 0, copied_rows_ = 0;
};

}  // namespace

const LayoutInfo layout_paged{
    .name = "paged",
    .summary = "blocks of 64 positions, taken as positions come",
    .trade = "wastes less than a block per sequence; sequences reuse freed blocks, and forks share blocks",
    .pooled = true,
    .bytes = paged_bytes,
    .peak_bytes = paged_bytes,
    .create = [](const CacheShape& shape, std::shared_ptr<BlockPool> pool) -> Result<std::unique_ptr<Layout>> {
      constexpr bool kReuseBlocks = false;  // no other sequence would reuse returned blocks
      return std::make_unique<PagedLayout>(shape,
                                           pool != nullptr ? std::move(pool) : BlockPool::create({}, kReuseBlocks));
    },
};

}  // namespace kvasir
