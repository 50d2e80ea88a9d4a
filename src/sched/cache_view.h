// CacheView: a picture of what a scheduler and the prefix tree hold, for observers. Numbers blocks and sequences, and
// notes times of use.
#pragma once

#include <map>
#include <memory>
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
  /// Notes that a request got its first token after `seconds`.
  void first_token(double seconds) { first_tokens_.push_back(seconds); }

 private:
  struct Number {
    int id = 0;
    bool seen = false;  // in the view that is being made
  };
  int number_of(const void* block);
  void forget_unseen();
  void add_sequences(const std::map<RequestId, std::unique_ptr<Job>>& jobs, CacheView* view);
  void add_nodes(double now, const PrefixTree& tree, CacheView* view);
  void add_blocks(const PrefixTree* tree, CacheView* view);

  std::unordered_map<const void*, Number> numbers_;
  std::vector<int> free_;  // numbers below numbers_.size() + free_.size() that no block has
  std::map<uint64_t, std::pair<uint64_t, double>> uses_;  // of nodes: the tree's clock, and when it was first seen
  std::vector<double> first_tokens_;
};

}  // namespace kvasir::sched
