// Walking, splitting, giving up.
#include "cache/share/prefix_tree.h"

#include <algorithm>

namespace kvasir {

PrefixTree::Hit PrefixTree::find(const std::string& space, std::span<const int> tokens) {
  const MutexLock lock(mutex_);
  ++stats_.queries;
  stats_.asked_tokens += static_cast<int64_t>(tokens.size());
  const auto root = roots_.find(space);
  if (root == roots_.end()) return {};
  const Match found = match(*root->second, tokens);
  if (found.length == 0) return {};
  Node* leaf = &split(*found.node, found.length);
  touch(*leaf);
  while (leaf->cache == nullptr)
    leaf = std::max_element(leaf->children.begin(), leaf->children.end(), [](const auto& a, const auto& b) {
             return a.second->used < b.second->used;
           })->second.get();
  ++stats_.hits;
  stats_.reused_tokens += found.length;
  return {leaf->cache, found.length};
}

void PrefixTree::insert(const std::string& space, std::span<const int> tokens, std::shared_ptr<Layout> cache) {
  const MutexLock lock(mutex_);
  auto& root = roots_[space];
  if (root == nullptr) root = std::make_unique<Node>();
  const Match found = match(*root, tokens);
  const auto length = static_cast<int>(tokens.size());
  if (found.length == length) return touch(*found.node);
  Node& from = split(*found.node, found.length);
  if (from.cache != nullptr) drop(from);  // the new one begins with it
  const auto rest = tokens.subspan(static_cast<size_t>(found.length));
  auto leaf = std::make_unique<Node>();
  leaf->parent = &from;
  leaf->tokens.assign(rest.begin(), rest.end());
  leaf->depth = length;
  Node& added = *(from.children[rest[0]] = std::move(leaf));
  keep(added, std::move(cache));
  touch(added);
  while (stats_.bytes > limit_ && evict_one()) {
  }
}

bool PrefixTree::give_back() {
  const MutexLock lock(mutex_);
  return evict_one();
}

PrefixStats PrefixTree::stats() const {
  const MutexLock lock(mutex_);
  PrefixStats now = stats_;
  now.entries = leaves_.size();
  return now;
}

PrefixTree::Match PrefixTree::match(Node& root, std::span<const int> tokens) const {
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

// The node that ends at `depth`, on the edge that leads to `node`.
PrefixTree::Node& PrefixTree::split(Node& node, int depth) {
  if (depth == node.depth) return node;
  const auto cut = node.tokens.end() - (node.depth - depth);
  auto upper = std::make_unique<Node>();
  upper->parent = node.parent;
  upper->tokens.assign(node.tokens.begin(), cut);
  upper->depth = depth;
  upper->used = node.used;
  std::unique_ptr<Node>& place = node.parent->children[node.tokens[0]];
  node.tokens.erase(node.tokens.begin(), cut);
  node.parent = upper.get();
  upper->children[node.tokens[0]] = std::move(place);
  place = std::move(upper);
  return *place;
}

// It and what it goes on from are used now.
void PrefixTree::touch(Node& node) {
  ++clock_;
  if (node.cache != nullptr) {
    leaves_.erase({node.used, &node});
    leaves_.insert({clock_, &node});
  }
  for (Node* at = &node; at != nullptr; at = at->parent) at->used = clock_;
}

void PrefixTree::keep(Node& node, std::shared_ptr<Layout> cache) {
  for (const auto& [part, bytes] : cache->memory())
    if (++held_[part] == 1) stats_.bytes += bytes;
  node.cache = std::move(cache);
  leaves_.insert({node.used, &node});
}

std::shared_ptr<Layout> PrefixTree::drop(Node& node) {
  leaves_.erase({node.used, &node});
  for (const auto& [part, bytes] : node.cache->memory())
    if (--held_[part] == 0) {
      stats_.bytes -= bytes;
      held_.erase(part);
    }
  return std::exchange(node.cache, nullptr);
}

bool PrefixTree::evict_one() {
  for (const auto& [used, leaf] : leaves_)
    if (leaf->cache.use_count() == 1) {
      remove(*leaf);
      ++stats_.evictions;
      return true;
    }
  return false;
}

// What it goes on from is kept, where nothing else goes on from there: it was used later, or is the last to go.
void PrefixTree::remove(Node& leaf) {
  const std::shared_ptr<Layout> cache = drop(leaf);
  for (Node* gone = &leaf; gone->parent != nullptr;) {
    Node& parent = *gone->parent;
    parent.children.erase(gone->tokens[0]);
    gone = &parent;
    if (!parent.children.empty()) return;
    if (parent.parent != nullptr && cache->truncate(parent.depth)) return keep(parent, cache);
  }
  std::erase_if(roots_, [](const auto& root) { return root.second->children.empty(); });
}

}  // namespace kvasir
