// Making a view: sequences first, whose blocks get their numbers, then the prefix tree.
#include "sched/cache_view.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "engine/engine_impl.h"
#include "engine/session_impl.h"

namespace kvasir::sched {
namespace {

constexpr uint64_t kMostChoices = 1024;  // of a request

CacheSequence::State state_of(const Sequence& sequence) {
  if (sequence.session == nullptr) return sequence.preemptions > 0 ? CacheSequence::preempted : CacheSequence::waiting;
  return sequence.is_prefilling() ? CacheSequence::prefill : CacheSequence::decode;
}

}  // namespace

int CacheViewer::number_of(const void* block) {
  auto [found, is_new] = numbers_.try_emplace(block);
  if (is_new && free_.empty()) found->second.id = static_cast<int>(numbers_.size()) - 1;
  if (is_new && !free_.empty()) {  // the lowest one, so that numbers stay few
    std::pop_heap(free_.begin(), free_.end(), std::greater<>());
    found->second.id = free_.back();
    free_.pop_back();
  }
  found->second.seen = true;
  return found->second.id;
}

void CacheViewer::forget_unseen() {
  for (auto entry = numbers_.begin(); entry != numbers_.end();) {
    if (std::exchange(entry->second.seen, false)) {
      ++entry;
      continue;
    }
    free_.push_back(entry->second.id);
    std::push_heap(free_.begin(), free_.end(), std::greater<>());
    entry = numbers_.erase(entry);
  }
}

void CacheViewer::add_sequences(const std::map<RequestId, std::unique_ptr<Job>>& jobs, CacheView* view) {
  for (const auto& [id, job] : jobs)
    for (const auto& sequence : job->choices) {
      if (sequence->over) continue;
      CacheSequence& one = view->sequences.emplace_back();
      one.id = id * kMostChoices + static_cast<uint64_t>(sequence->choice);
      one.request = id;
      one.choice = sequence->choice;
      one.owner = job->request.owner;
      one.salt = job->request.salt;
      one.state = state_of(*sequence);
      one.prompt = job->prompt_tokens();
      one.reused = job->reused;
      one.generated = static_cast<int>(sequence->known().size()) - one.prompt;
      one.max_tokens = job->request.options.max_tokens;
      one.preemptions = sequence->preemptions;
      if (sequence->session == nullptr) continue;
      add_trail(*sequence);
      one.computed = sequence->session->pos();
      const Layout& cache = *sequence->session->impl().cache;
      for (const Layout::Piece& piece : cache.memory()) {
        one.blocks.push_back(number_of(piece.id));
        if (piece.id == cache.last_copy()) one.copied = one.blocks.back();
      }
    }
}

void CacheViewer::add_trail(const Sequence& sequence) {
  const Request& request = sequence.job->request;
  const std::span<const int> known = sequence.known();
  if (request.reuse) trails_.push_back({sequence.job->id, request.salt, {known.begin(), known.end()}});
}

// Parents come first, so each trail is at the node's parent if it leads through the node.
void CacheViewer::add_requests(const PrefixTree::Visited& node, std::set<RequestId>* of_node) {
  const auto depth = static_cast<size_t>(node.depth);
  for (Trail& trail : trails_) {
    if (trail.at != node.parent || trail.tokens.size() <= depth) continue;
    if (node.parent == 0 && trail.salt != salt_of(node.space)) continue;
    const auto rest = std::span(trail.tokens).subspan(depth);
    const size_t length = std::min(rest.size(), node.tokens.size());
    if (!std::equal(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(length), node.tokens.begin())) continue;
    trail.at = node.id;
    of_node->insert(trail.request);
  }
}

// An edge that was split has a new node above it, to which the requests of those below belong as well.
void CacheViewer::share_requests(CacheView* view) {
  for (auto node = view->nodes.rbegin(); node != view->nodes.rend(); ++node) {
    std::set<RequestId>& requests = requests_[node->id];
    while (requests.size() > CacheNode::kMostRequests) requests.erase(requests.begin());
    node->requests.assign(requests.begin(), requests.end());
    if (node->parent != 0) requests_[node->parent].insert(requests.begin(), requests.end());
  }
}

void CacheViewer::add_nodes(double now, const PrefixTree& tree, CacheView* view) {
  std::map<uint64_t, std::pair<uint64_t, double>> uses;
  std::map<uint64_t, std::set<RequestId>> requests_of;
  tree.visit([&](const PrefixTree::Visited& node) {
    const auto before = uses_.find(node.id);
    const bool same = before != uses_.end() && before->second.first == node.used;
    const double used = same ? before->second.second : now;
    uses[node.id] = {node.used, used};
    std::set<RequestId>& requests = requests_of[node.id] = std::exchange(requests_[node.id], {});
    add_requests(node, &requests);
    const auto shown = node.tokens.first(std::min(node.tokens.size(), CacheNode::kMostIds));
    view->nodes.push_back({node.id,
                           node.parent,
                           std::string(salt_of(node.space)),
                           node.depth,
                           static_cast<int>(node.tokens.size()),
                           used,
                           {shown.begin(), shown.end()}});
  });
  uses_ = std::move(uses);
  requests_ = std::move(requests_of);
  share_requests(view);
}

void CacheViewer::add_blocks(const PrefixTree* tree, CacheView* view) {
  std::map<int, CacheBlock> blocks;
  if (tree != nullptr)
    for (const void* const held : tree->held()) blocks[number_of(held)].stored = true;
  for (const CacheSequence& sequence : view->sequences)
    for (const int block : sequence.blocks) blocks[block].sequences.push_back(sequence.id);
  for (auto& [id, block] : blocks) {
    block.id = id;
    view->blocks.push_back(std::move(block));
  }
}

std::shared_ptr<const CacheView> CacheViewer::view(double now, const std::map<RequestId, std::unique_ptr<Job>>& jobs,
                                                   const PrefixTree* tree, const SchedulerStats& stats,
                                                   const WeightStats& weights) {
  auto view = std::make_shared<CacheView>();
  view->time = now;
  view->stats = stats;
  view->weight_bytes = weights.memory_bytes;
  view->first_tokens = std::exchange(first_tokens_, {});
  add_sequences(jobs, view.get());
  if (tree != nullptr) add_nodes(now, *tree, view.get());
  trails_.clear();
  add_blocks(tree, view.get());
  forget_unseen();
  return view;
}

}  // namespace kvasir::sched
