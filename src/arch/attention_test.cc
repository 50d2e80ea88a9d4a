// Sequences that share KV blocks in one pass: each has the same bits as when it runs alone.
#include <gtest/gtest.h>

#include "arch/network.h"
#include "cache/block_pool.h"
#include "tests/support/tiny_models.h"

namespace kvasir {
namespace {

using tiny::same_bits;

std::unique_ptr<Network> network_of(const tiny::Model& model) {
  const tiny::TempFolder folder;
  model.write(folder.path());
  const ConfigView view = std::move(*ConfigView::read(folder.path() / "config.json"));
  const Family& family = **find_family(view);
  auto dir = std::make_shared<TensorDir>(std::move(*open_safetensors(folder.path())));
  return std::move(*Network::load(family, std::move(*family.parse_config(view)), dir, WeightsMode::resident, "a test"));
}

/// A sequence of the batch: `shared` positions adopted from `parent` (-1: the common sequence), then `own` tokens of
/// its own, then `tokens` tokens in the pass.
struct Sequence {
  int parent, shared, own, tokens;
};
struct Caches {
  const char* type;
  std::vector<int> windows = {};
  int sinks = 0;
};

class SharedBlocks {
 public:
  SharedBlocks(const tiny::Model& model, const Caches& caches, int threads)
      : network_(network_of(model)), compute_(std::move(*Compute::create(threads))) {
    shape_ = network_->family().cache_needs(network_->config());
    shape_.k = shape_.v = *find_kv_type(caches.type);
    shape_.max_ctx = 160;
    shape_.windows = caches.windows;
    shape_.sinks = caches.sinks;
    common_ = cache();
    run({{common_.get(), 0, text_, kTextTokens}});
  }

  /// The logits of one pass over all sequences together, or of one pass per sequence.
  std::vector<float> logits(const std::vector<Sequence>& sequences, bool together) {
    std::vector<std::unique_ptr<Layout>> caches;
    std::vector<std::vector<int>> tokens;
    for (const Sequence& s : sequences) {
      const Layout& parent = s.parent < 0 ? *common_ : *caches[static_cast<size_t>(s.parent)];
      const auto seed = static_cast<uint64_t>(caches.size());
      caches.push_back(cache());
      tokens.push_back(tiny::ids(s.tokens, 30 + seed));
      EXPECT_TRUE(caches.back()->adopt(parent, s.shared));
      const std::vector<int> own = tiny::ids(s.own, 60 + seed);
      if (s.own > 0) run({{caches.back().get(), s.shared, own, s.own}});
    }
    std::vector<BatchItem> items;
    std::vector<float> out;
    for (size_t i = 0; i < sequences.size(); ++i) {
      items.push_back({caches[i].get(), sequences[i].shared + sequences[i].own, tokens[i]});
      if (together) continue;
      const std::vector<float> one = run({items.back()});
      out.insert(out.end(), one.begin(), one.end());
    }
    return together ? run(items) : out;
  }

 private:
  static constexpr int kTextTokens = 150;

  std::unique_ptr<Layout> cache() const { return std::move(*(*find_layout("paged"))->make(shape_, pool_)); }
  std::vector<float> run(const std::vector<BatchItem>& items) {
    size_t wanted = 0;
    for (const BatchItem& item : items) wanted += item.tokens.size() - static_cast<size_t>(item.wanted_from);
    std::vector<float> logits(wanted * static_cast<size_t>(network_->config().vocab));
    Network::Output out{.logits = logits.data(), .errors = {}};
    EXPECT_TRUE(network_->forward(items, *compute_, workspace_, &out));
    return logits;
  }

  std::unique_ptr<Network> network_;
  std::unique_ptr<Compute> compute_;
  std::shared_ptr<BlockPool> pool_ = BlockPool::create();
  CacheShape shape_;
  Workspace workspace_;
  const std::vector<int> text_ = tiny::ids(kTextTokens);
  std::unique_ptr<Layout> common_;
};

// Prefixes of whole tiles, prefixes that end inside a tile, and empty ones; forks of a fork; tokens across a tile's
// edge.
std::vector<std::vector<Sequence>> batches() {
  return {{{-1, 128, 0, 1}, {-1, 128, 5, 1}, {-1, 128, 0, 1}, {-1, 128, 9, 1}, {-1, 128, 1, 1}},
          {{-1, 64, 3, 1}, {-1, 128, 20, 1}, {-1, 70, 60, 2}, {-1, 150, 0, 3}, {-1, 0, 70, 1}, {-1, 100, 26, 4}},
          {{-1, 64, 64, 1}, {0, 128, 7, 1}, {0, 128, 0, 1}, {-1, 128, 0, 1}, {-1, 130, 11, 1}, {1, 135, 0, 1}},
          {{-1, 128, 2, 16}, {-1, 128, 0, 17}, {-1, 128, 4, 9}, {-1, 128, 0, 1}, {-1, 64, 0, 60}, {-1, 128, 0, 12}}};
}

void expect_same_bits(const tiny::Model& model, const Caches& caches, std::initializer_list<int> threads) {
  SharedBlocks one(model, caches, 1);
  for (const std::vector<Sequence>& batch : batches()) {
    const std::vector<float> alone = one.logits(batch, false);
    for (const int n : threads) {
      SharedBlocks all(model, caches, n);
      EXPECT_TRUE(same_bits(all.logits(batch, true), alone)) << caches.type << ", " << n << " threads";
    }
  }
}

TEST(SharedAttention, BitsAreThoseOfEachSequenceAlone) {
  for (const char* type : {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_0h"}) {
    expect_same_bits(tiny::llama(), {type}, {1, 2});
    expect_same_bits(tiny::gpt2(), {type}, {2});
  }
}

TEST(SharedAttention, WindowsAndSinksChangeNothing) {
  for (const char* type : {"f32", "f16", "q8_0"})
    for (const Caches& caches : {Caches{type, {0, 40}}, Caches{type, {100, 1}}, Caches{type, {70, 70}, 4}})
      expect_same_bits(tiny::llama(), caches, {2});
}

TEST(ThreadsSharedAttention, AnyNumberOfThreads) { expect_same_bits(tiny::llama(), {"f16"}, {1, 2, 3, 4, 7}); }

}  // namespace
}  // namespace kvasir
