// Lookup, splitting and joining of nodes, eviction.
#include "cache/share/prefix_tree.h"

#include <algorithm>
#include <unordered_set>

namespace kvasir {
namespace {

// Estimated bytes of a node without its tokens: the node, its entry in its parent's map, its entry in the set of
// leaves.
constexpr size_t kNodeBytes = 256;

size_t bytes_of_tokens(size_t tokens) { return tokens * sizeof(int); }

template <class Children>
auto* last_used(const Children& children) {
  return std::max_element(children.begin(), children.end(),
                          [](const auto& a, const auto& b) { return a.second->used < b.second->used; })
      ->second.get();
}

}  // namespace

// ---- lookup -------------------------------------------------------------------------------------------------------

PrefixTree::Hit PrefixTree::find(const std::string& space, std::span<const int> tokens) {
  const MutexLock lock(mutex_);
  ++stats_.queries;
  stats_.asked_tokens += static_cast<int64_t>(tokens.size());
  const auto root = roots_.find(space);
  if (root == roots_.end()) return {};
  const Match found = match(*root->second, tokens);
  Node& node = split(*found.node, found.length);
  Hit hit{.cache = nullptr, .length = found.length, .next = next_tokens(node)};
  if (found.length == 0) return hit;
  const Node* leaf = &node;
  while (leaf->cache == nullptr) leaf = leaf->latest;
  hit.cache = leaf->cache;
  touch(node);
  ++stats_.hits;
  stats_.reused_tokens += found.length;
  return hit;
}

int PrefixTree::length_of(const std::string& space, std::span<const int> tokens) const {
  const MutexLock lock(mutex_);
  const auto root = roots_.find(space);
  return root == roots_.end() ? 0 : match(*root->second, tokens).length;
}

PrefixTree::Match PrefixTree::match(Node& root, std::span<const int> tokens) {
  Match at{&root, 0};
  while (at.length == at.node->depth) {
    const auto rest = tokens.subspan(static_cast<size_t>(at.length));
    const auto child = rest.empty() ? at.node->children.end() : at.node->children.find(rest[0]);
    if (child == at.node->children.end()) break;
    at.node = child->second.get();
    const std::vector<int>& edge = at.node->tokens;
    at.length +=
        static_cast<int>(std::mismatch(edge.begin(), edge.end(), rest.begin(), rest.end()).first - edge.begin());
  }
  return at;
}

std::vector<int> PrefixTree::next_tokens(const Node& node) {
  std::vector<int> next;
  for (const Node* at = node.latest; at != nullptr && next.size() < kNextTokens; at = at->latest)
    next.insert(next.end(), at->tokens.begin(), at->tokens.end());
  next.resize(std::min(next.size(), kNextTokens));
  return next;
}

// ---- nodes --------------------------------------------------------------------------------------------------------

void PrefixTree::insert(const std::string& space, std::span<const int> tokens, std::shared_ptr<Layout> cache) {
  const MutexLock lock(mutex_);
  auto& root = roots_[space];
  if (root == nullptr) root = std::make_unique<Node>();
  const Match found = match(*root, tokens);
  const auto length = static_cast<int>(tokens.size());
  if (found.length == length) return touch(*found.node);
  Node& from = split(*found.node, found.length);
  if (from.cache != nullptr) drop(from);  // it is a prefix of the new one
  const auto rest = tokens.subspan(static_cast<size_t>(found.length));
  auto leaf = std::make_unique<Node>();
  leaf->parent = &from;
  leaf->tokens.assign(rest.begin(), rest.end());
  leaf->depth = length;
  leaf->id = ++last_id_;
  stats_.index_bytes += kNodeBytes + bytes_of_tokens(rest.size());
  Node& added = *(from.children[rest[0]] = std::move(leaf));
  keep(added, std::move(cache));
  touch(added);
  while (stats_.bytes + stats_.index_bytes > limit_ && evict_block(false)) {
  }
}

// Returns the node that ends at `depth` on the edge to `node`; splits the edge if there is none.
PrefixTree::Node& PrefixTree::split(Node& node, int depth) {
  if (depth == node.depth) return node;
  const auto cut = node.tokens.end() - (node.depth - depth);
  auto upper = std::make_unique<Node>();
  upper->parent = node.parent;
  upper->latest = &node;
  upper->tokens.assign(node.tokens.begin(), cut);
  upper->depth = depth;
  upper->used = node.used;
  upper->id = ++last_id_;
  if (node.parent->latest == &node) node.parent->latest = upper.get();
  std::unique_ptr<Node>& place = node.parent->children[node.tokens[0]];
  node.tokens.erase(node.tokens.begin(), cut);
  node.parent = upper.get();
  upper->children[node.tokens[0]] = std::move(place);
  place = std::move(upper);
  stats_.index_bytes += kNodeBytes;
  return *place;
}

// Undoes splits above a node: merges it with its parent while the parent has no other child and was last used with it.
void PrefixTree::join(Node& node) {
  for (Node* upper = node.parent; upper->parent != nullptr; upper = node.parent) {
    if (upper->children.size() != 1 || upper->used != node.used) return;
    const std::unique_ptr<Node> gone = std::move(upper->parent->children[upper->tokens[0]]);
    std::unique_ptr<Node> self = std::move(gone->children.begin()->second);
    node.tokens.insert(node.tokens.begin(), gone->tokens.begin(), gone->tokens.end());
    node.parent = gone->parent;
    if (node.parent->latest == upper) node.parent->latest = &node;
    node.parent->children[node.tokens[0]] = std::move(self);
    stats_.index_bytes -= kNodeBytes;
  }
}

// Marks a node and its ancestors as used now.
void PrefixTree::touch(Node& node) {
  ++clock_;
  if (node.cache != nullptr) {
    leaves_.erase({node.used, &node});
    leaves_.insert({clock_, &node});
  }
  for (Node* at = &node; at != nullptr; at = at->parent) {
    at->used = clock_;
    if (at->parent != nullptr) at->parent->latest = at;
  }
  if (node.parent != nullptr) join(node);
}

void PrefixTree::keep(Node& node, std::shared_ptr<Layout> cache) {
  for (const Layout::Piece& piece : cache->memory())
    if (++held_[piece.id] == 1) stats_.bytes += piece.bytes;
  node.cache = std::move(cache);
  leaves_.insert({node.used, &node});
}

std::shared_ptr<Layout> PrefixTree::drop(Node& node) {
  leaves_.erase({node.used, &node});
  let_go(node.cache->memory());
  return std::exchange(node.cache, nullptr);
}

void PrefixTree::let_go(std::span<const Layout::Piece> pieces) {
  for (const Layout::Piece& piece : pieces)
    if (--held_[piece.id] == 0) {
      stats_.bytes -= piece.bytes;
      held_.erase(piece.id);
    }
}

// ---- eviction -----------------------------------------------------------------------------------------------------

bool PrefixTree::give_back(size_t bytes) {
  const MutexLock lock(mutex_);
  const size_t before = stats_.bytes;
  bool some = false;
  while (before - stats_.bytes < bytes && evict_block(bytes != SIZE_MAX)) some = true;
  return some;
}

// Whether only entries of this tree hold the piece.
bool PrefixTree::is_spare(const Layout::Piece& piece) const { return piece.holders == held_.at(piece.id); }

size_t PrefixTree::spare_bytes() const {
  const MutexLock lock(mutex_);
  std::unordered_set<const void*> counted;
  size_t bytes = 0;
  for (const auto& [used, leaf] : leaves_)
    for (const Layout::Piece& piece : leaf->cache->memory())
      if (is_spare(piece) && counted.insert(piece.id).second) bytes += piece.bytes;
  return bytes;
}

// Evicts one block of the least recently used sequence, or all of it down to where it branches off, if that is less.
bool PrefixTree::evict_block(bool spare_only) {
  for (const auto& [used, leaf] : leaves_) {
    if (leaf->cache.use_count() > 1 || (spare_only && !is_spare(leaf->cache->memory().back()))) continue;
    const int shorter = (leaf->depth - 1) / kTilePositions * kTilePositions;
    const int before = leaf->depth - std::max(shorter, leaf->parent->depth);
    if (shorter > leaf->parent->depth)
      shorten(*leaf, shorter);
    else
      remove(*leaf);
    stats_.evicted_tokens += before;
    return true;
  }
  return false;
}

void PrefixTree::shorten(Node& leaf, int depth) {
  const std::vector<Layout::Piece> before = leaf.cache->memory();
  if (!leaf.cache->truncate(depth)) return remove(leaf);
  let_go(std::span(before).subspan(leaf.cache->memory().size()));
  const auto gone = static_cast<size_t>(leaf.depth - depth);
  leaf.tokens.resize(leaf.tokens.size() - gone);
  leaf.depth = depth;
  stats_.index_bytes -= bytes_of_tokens(gone);
}

// Evicts a leaf. If its parent has no other child, the parent becomes a leaf and keeps the shorter prefix. If the cache
// cannot be truncated to that prefix, the parent is removed too.
void PrefixTree::remove(Node& leaf) {
  const std::shared_ptr<Layout> cache = drop(leaf);
  for (Node* gone = &leaf; gone->parent != nullptr;) {
    Node& parent = *gone->parent;
    stats_.index_bytes -= kNodeBytes + bytes_of_tokens(gone->tokens.size());
    if (parent.latest == gone) parent.latest = nullptr;
    parent.children.erase(gone->tokens[0]);
    gone = &parent;
    if (!parent.children.empty()) {
      if (parent.latest == nullptr) parent.latest = last_used(parent.children);
      if (parent.children.size() == 1) join(*parent.latest);
      return;
    }
    if (parent.parent != nullptr && cache->truncate(parent.depth)) return keep(parent, cache);
  }
  std::erase_if(roots_, [](const auto& root) { return root.second->children.empty(); });
}

void PrefixTree::visit(const std::function<void(const Visited& node)>& f) const {
  const MutexLock lock(mutex_);
  for (const auto& [space, root] : roots_) {
    std::vector<const Node*> next{root.get()};
    while (!next.empty()) {
      const Node& node = *next.back();
      next.pop_back();
      for (const auto& [token, child] : node.children) next.push_back(child.get());
      if (node.parent == nullptr) continue;
      f({node.id, node.parent->id, space, node.depth - static_cast<int>(node.tokens.size()), node.tokens, node.used});
    }
  }
}

std::vector<const void*> PrefixTree::held() const {
  const MutexLock lock(mutex_);
  std::vector<const void*> ids;
  for (const auto& [id, holders] : held_) ids.push_back(id);
  return ids;
}

PrefixStats PrefixTree::stats() const {
  const MutexLock lock(mutex_);
  PrefixStats now = stats_;
  now.entries = leaves_.size();
  return now;
}

}  // namespace kvasir
