// Sequences whose caches are kept for those that begin like them: a radix tree over tokens. Tokens are compared, never
// hashes of them, so what is found is what was computed for exactly these tokens. Any position can be where two part,
// not only edges of blocks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <kvasir/kv_cache.h>

#include "base/mutex.h"
#include "cache/block_pool.h"
#include "cache/layout.h"

namespace kvasir {

/// Thread-safe. Holds up to a limit of bytes: what was used longest ago goes first, block by block from its end back to
/// where it parts from what was used later.
class PrefixTree : public BlockHolder {
 public:
  /// `limit`: bytes of what the entries hold and of the tree itself; what several share counts once.
  explicit PrefixTree(size_t limit) : limit_(limit) {}

  /// A cache that holds the first `length` of the asked tokens, or none. As long as it lives it is not given up.
  struct Hit {
    std::shared_ptr<const Layout> cache;
    int length = 0;
    std::vector<int> next;  ///< the tokens that the sequence used last goes on with, at most kNextTokens
  };
  static constexpr size_t kNextTokens = 16;

  /// The most of `tokens` that some sequence of the same `space` begins with; spaces know nothing of each other.
  Hit find(const std::string& space, std::span<const int> tokens);
  /// The length of what find() would find. Counts and changes nothing.
  int length_of(const std::string& space, std::span<const int> tokens) const;
  /// Remembers a sequence, unless another begins with all of it. Requires: the cache holds exactly these tokens, all of
  /// them, and nobody writes to it any more.
  void insert(const std::string& space, std::span<const int> tokens, std::shared_ptr<Layout> cache);
  /// Cuts the ends of the sequences that were used longest ago, of those whose last block only the tree holds. SIZE_MAX
  /// gives up everything: a sequence that shares its last block with the tree need not copy it any more.
  bool give_back(size_t bytes) override;
  size_t spare_bytes() const override;
  PrefixStats stats() const;

 private:
  // The tokens of the edge that leads here. A leaf has a cache of all tokens from the root, others have none.
  struct Node {
    Node* parent = nullptr;
    Node* latest = nullptr;  // the child that was used last
    std::vector<int> tokens;
    int depth = 0;
    std::map<int, std::unique_ptr<Node>> children;  // by first token
    std::shared_ptr<Layout> cache;
    uint64_t used = 0;
  };
  struct Match {
    Node* node;  // the deepest that something of matches
    int length;
  };

  static Match match(Node& root, std::span<const int> tokens);
  static std::vector<int> next_tokens(const Node& node);
  Node& split(Node& node, int depth) KVASIR_REQUIRES(mutex_);
  void join(Node& node) KVASIR_REQUIRES(mutex_);
  void touch(Node& node) KVASIR_REQUIRES(mutex_);
  void keep(Node& node, std::shared_ptr<Layout> cache) KVASIR_REQUIRES(mutex_);
  std::shared_ptr<Layout> drop(Node& node) KVASIR_REQUIRES(mutex_);
  void let_go(std::span<const Layout::Piece> pieces) KVASIR_REQUIRES(mutex_);
  bool is_spare(const Layout::Piece& piece) const KVASIR_REQUIRES(mutex_);
  bool evict_block(bool spare_only) KVASIR_REQUIRES(mutex_);
  void shorten(Node& leaf, int depth) KVASIR_REQUIRES(mutex_);
  void remove(Node& leaf) KVASIR_REQUIRES(mutex_);

  const size_t limit_;
  mutable Mutex mutex_;
  std::map<std::string, std::unique_ptr<Node>> roots_ KVASIR_GUARDED_BY(mutex_);
  std::set<std::pair<uint64_t, Node*>> leaves_ KVASIR_GUARDED_BY(mutex_);  // by last use
  // Pieces of memory that entries hold, with the number of entries.
  std::unordered_map<const void*, int> held_ KVASIR_GUARDED_BY(mutex_);
  uint64_t clock_ KVASIR_GUARDED_BY(mutex_) = 0;
  PrefixStats stats_ KVASIR_GUARDED_BY(mutex_);
};

}  // namespace kvasir
