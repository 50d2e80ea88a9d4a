// CacheView: a picture of what a scheduler and the prefix tree hold, for observers. Numbers blocks and sequences, and
// notes times of use.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <kvasir/scheduler.h>

#include "cache/share/prefix_tree.h"
#include "sched/request.h"

namespace kvasir::sched {

/// Used by the engine's thread only. Keeps what gives a block the same number in every view while it lives.
class CacheViewer {
 public:
  /// `tree`: null without prefix reuse. `jobs` are the requests that have not ended.
  std::shared_ptr<const CacheView> view(double now, const std::map<RequestId, std::unique_ptr<Job>>& jobs,
                                        const PrefixTree* tree, const SchedulerStats& stats,
                                        const WeightStats& weights);
  /// Notes the tokens of a sequence, whose request then belongs to the nodes that they lead through. view() does so for
  /// those that run; the others are noted as they end.
  void add_trail(const Sequence& sequence);
  /// Notes that a request got its first token after `seconds`.
  void first_token(double seconds) { first_tokens_.push_back(seconds); }

 private:
  struct Number {
    int id = 0;
    bool seen = false;  // in the view that is being made
  };
  int number_of(const void* block);
  void forget_unseen();
  /// Tokens of a request, which lead to a node of the tree.
  struct Trail {
    RequestId request;
    std::string salt;
    std::vector<int> tokens;
    uint64_t at = 0;  // the deepest node so far; 0: the root
  };
  void add_sequences(const std::map<RequestId, std::unique_ptr<Job>>& jobs, CacheView* view);
  void add_nodes(double now, const PrefixTree& tree, CacheView* view);
  void add_requests(const PrefixTree::Visited& node, std::set<RequestId>* of_node);
  void share_requests(CacheView* view);
  void add_blocks(const PrefixTree* tree, CacheView* view);

  std::unordered_map<const void*, Number> numbers_;
  std::vector<int> free_;  // numbers below numbers_.size() + free_.size() that no block has
  std::map<uint64_t, std::pair<uint64_t, double>> uses_;  // of nodes: the tree's clock, and when it was first seen
  std::map<uint64_t, std::set<RequestId>> requests_;      // of nodes
  std::vector<Trail> trails_;                             // since the last view
  std::vector<double> first_tokens_;
};

}  // namespace kvasir::sched
