// The inside of a Session: its tokens, its cache, and the memory that is promised to it.
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
  std::shared_ptr<const Layout> lease;  // the prefix that it began with, kept as long as it may go back there
  BudgetSharePtr share, kv_share;
  std::unique_ptr<Layout> cache;
  std::vector<int> tokens;
  int ctx = 0, reached = 0;  // the most positions allowed; made room for so far

  static Result<Session> open(std::shared_ptr<const Model> model, const LayoutInfo& layout, const CacheShape& shape);

  int pos() const { return static_cast<int>(tokens.size()); }
  /// Makes budgets promise the memory that the context may take.
  Result<void> promise(const LayoutInfo& layout, const CacheShape& shape);
  /// A plan that makes room for positions [0, end). Errors: no room.
  Result<std::unique_ptr<Layout::Plan>> plan(int end);
  void apply(std::unique_ptr<Layout::Plan> plan, int end);
  Result<void> truncate(int length);
  /// truncate(); a cache that cannot go back is emptied, and what it held is computed again when needed.
  void roll_back(int length);
  /// Begins with `tokens`, whose K and V `prefix` holds. False where the cache cannot adopt them: it is empty then.
  bool adopt(const std::shared_ptr<const Layout>& prefix, std::span<const int> text);
};

}  // namespace kvasir
