// The internals of a Session: its tokens, its cache, and the memory reserved for it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kvasir/engine.h>

#include "base/budget.h"
#include "cache/layout.h"

namespace kvasir {

struct Session::Impl {
  std::shared_ptr<const Model> model;
  std::string salt;
  std::shared_ptr<const Layout>
      lease;  // stored prefix that it adopted, kept from eviction while the session may return to it
  BudgetSharePtr share, kv_share;
  std::unique_ptr<Layout> cache;
  std::vector<int> tokens;
  int ctx = 0, reached = 0;  // upper bound of positions; positions for which room was made

  static Result<Session> open(std::shared_ptr<const Model> model, const LayoutInfo& layout, const CacheShape& shape);

  int pos() const { return static_cast<int>(tokens.size()); }
  /// Reserves the memory that the context may take, in both budgets.
  Result<void> promise(const LayoutInfo& layout, const CacheShape& shape);
  /// A growth that makes room for positions [0, end). Errors: no room.
  Result<std::unique_ptr<Layout::Growth>> prepare(int end);
  void apply(std::unique_ptr<Layout::Growth> growth, int end);
  Result<void> truncate(int length);
  /// Truncates. A cache that cannot is emptied; its positions are computed again when needed.
  void roll_back(int length);
  /// Starts from the tokens `text`, whose K and V `prefix` holds. Returns false, with the session empty, if the cache
  /// cannot adopt them.
  bool adopt(const std::shared_ptr<const Layout>& prefix, std::span<const int> text);
};

}  // namespace kvasir
