// The stream of GET /v1/cache/events: a snapshot of the cache, then what has changed. docs/api-http.md has the format.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kvasir/scheduler.h>
#include <kvasir/tokenizer.h>

#include "serve/json.h"

namespace kvasir::serve {

/// The same in every event of a stream.
struct CacheFacts {
  std::string model, layout;
  size_t block_bytes = 0;
  size_t capacity = SIZE_MAX;  ///< bytes of KV; SIZE_MAX: no budget
  double step_ms = 0, started = 0;
  std::string owner = {};                      ///< the viewer, who sees the texts of their own salts
  std::string salt = {};                       ///< beginning of these salts
  std::shared_ptr<const Tokenizer> tokenizer;  ///< null: no texts
};

/// The events for one viewer.
class CacheEvents {
 public:
  explicit CacheEvents(CacheFacts facts) : facts_(std::move(facts)) {}
  /// Notes what a view says of the time since the one before, for views that next() never sees.
  void note(const CacheView& view) {
    first_tokens_.insert(first_tokens_.end(), view.first_tokens.begin(), view.first_tokens.end());
  }
  /// The event that leads from the view before to this one: first a snapshot, then a diff.
  Json next(std::shared_ptr<const CacheView> view);

 private:
  Json snapshot(const CacheView& now);
  Json diff(const CacheView& before, const CacheView& now);
  bool is_mine(const std::string& salt) const;
  Json json_of(const CacheSequence& sequence) const;
  Json json_of(const CacheNode& node) const;
  static Json json_of(const CacheBlock& block);
  Json counters(const CacheView& now) const;

  CacheFacts facts_;
  std::shared_ptr<const CacheView> before_;
  std::vector<double> first_tokens_;  // noted and not sent
};

}  // namespace kvasir::serve
