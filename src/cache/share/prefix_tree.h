// Caches of earlier sequences, kept for later ones with a common prefix: a radix tree over tokens. It compares the
// tokens themselves, not hashes of them, so a hit was computed for exactly these tokens. Sequences may branch at any
// position, not only at block boundaries.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <kvasir/kv_cache.h>

#include "base/mutex.h"
#include "cache/block_pool.h"
#include "cache/layout.h"

namespace kvasir {

/// Thread-safe. Evicts when a limit of bytes is exceeded: the least recently used sequence first, block by block from
/// its end back to where a more recently used one branches off.
class PrefixTree : public SpareMemory {
 public:
  /// `limit`: bytes of the entries' KV memory and of the tree itself; memory that several entries share counts once.
  explicit PrefixTree(size_t limit) : limit_(limit) {}

  /// A cache that holds the first `length` of the requested tokens, or null. It is not evicted while a hit holds it.
  struct Hit {
    std::shared_ptr<const Layout> cache;
    int length = 0;
    std::vector<int> next;  ///< tokens that follow in the most recently used sequence, at most kNextTokens
  };
  static constexpr size_t kNextTokens = 16;

  /// Finds the longest prefix of `tokens` among the sequences of `space`, and marks it as used. Sequences of other
  /// spaces are never found.
  Hit find(const std::string& space, std::span<const int> tokens);
  /// Length of the prefix that find() would return. Changes neither the statistics nor the order of eviction.
  int length_of(const std::string& space, std::span<const int> tokens) const;
  /// Stores a sequence, unless a stored one begins with it. A stored sequence that is a prefix of it is replaced.
  /// Requires: the cache holds exactly these tokens, all of them, and nobody writes to it any more.
  void insert(const std::string& space, std::span<const int> tokens, std::shared_ptr<Layout> cache);
  /// Evicts the ends of the least recently used sequences whose last block only the tree holds. SIZE_MAX evicts every
  /// sequence that no hit holds, shared blocks included: a session that shares its last block with the tree then need
  /// not copy it.
  bool give_back(size_t bytes) override;
  size_t spare_bytes() const override;
  PrefixStats stats() const;

  struct Visited {
    uint64_t id, parent;  ///< parent 0: the root of its space
    std::string_view space;
    int depth;  ///< tokens before the edge
    std::span<const int> tokens;
    uint64_t used;  ///< grows with each use
  };
  /// Calls f with every node except roots, parents first. f must not call the tree.
  void visit(const std::function<void(const Visited& node)>& f) const;
  /// Ids of all pieces of memory that sequences of the tree hold, each once.
  std::vector<const void*> held() const;

 private:
  // `tokens` is the edge that leads here. A leaf has a cache of all tokens from the root; other nodes have none.
  struct Node {
    Node* parent = nullptr;
    Node* latest = nullptr;  // most recently used child
    std::vector<int> tokens;
    int depth = 0;
    std::map<int, std::unique_ptr<Node>> children;  // by first token
    std::shared_ptr<Layout> cache;
    uint64_t used = 0;
    uint64_t id = 0;  // of a root 0
  };
  struct Match {
    Node* node;  // the deepest node whose edge matches at least one token
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
  std::set<std::pair<uint64_t, Node*>> leaves_ KVASIR_GUARDED_BY(mutex_);  // by last use, oldest first
  // Pieces of memory that entries hold, with the number of entries that hold each.
  std::unordered_map<const void*, int> held_ KVASIR_GUARDED_BY(mutex_);
  uint64_t clock_ KVASIR_GUARDED_BY(mutex_) = 0;
  uint64_t last_id_ KVASIR_GUARDED_BY(mutex_) = 0;
  PrefixStats stats_ KVASIR_GUARDED_BY(mutex_);
};

}  // namespace kvasir
