// Sessions: what is promised to one, and how its tokens and its cache stay together.
#include <kvasir/engine.h>

#include <fmt/format.h>

#include "arch/footprint.h"
#include "arch/network.h"
#include "base/budget.h"
#include "cache/block_pool.h"
#include "cache/kv_type.h"
#include "engine/memory_plan.h"

namespace kvasir {

Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

// KV that comes from a pool is promised block by block, as it is taken.
Result<void> Session::promise(const LayoutInfo& layout, const CacheShape& shape) {
  const Network& net = model_->network();
  const std::string hint = net.source().mode() == WeightsMode::streamed
                               ? "a smaller SessionOptions::ctx or a narrower SessionOptions::kv_type_k and kv_type_v"
                               : "a smaller SessionOptions::ctx, a narrower SessionOptions::kv_type_k and kv_type_v or "
                                 "ModelOptions::weights = streamed";
  const std::string what = fmt::format("a context of {} positions in layout {} needs", shape.max_ctx, layout.name);
  const size_t kv = layout.pooled ? 0 : layout.peak_bytes(shape, shape.max_ctx);
  const auto promised = [&](Budget& budget, size_t bytes) {
    auto share = budget.take(bytes, "sequences", what, hint);
    while (!share && model_->block_pool()->shrink()) share = budget.take(bytes, "sequences", what, hint);
    return share;
  };
  KVASIR_TRY(share_, promised(*model_->budget(), session_activation_bytes(net.config(), shape) + kv));
  KVASIR_TRY(kv_share_, promised(*model_->kv_budget(), kv));
  return {};
}

Result<Session> Session::open(std::shared_ptr<const Model> model, const LayoutInfo& layout, const CacheShape& shape) {
  Session session;
  session.ctx_ = shape.max_ctx;
  session.model_ = std::move(model);
  KVASIR_CHECK(session.promise(layout, shape));
  KVASIR_TRY(session.cache_, layout.make(shape, session.model_->block_pool()));
  return session;
}

Result<Session> Session::fork() const {
  KVASIR_TRY(Session copy, open(model_, cache_->info(), cache_->shape()));
  KVASIR_CHECK(copy.cache_->adopt(*cache_, cache_->coverage()));
  copy.tokens_ = tokens_;
  copy.salt_ = salt_;
  copy.reached_ = cache_->coverage();
  return copy;
}

Result<void> Session::truncate(int length) {
  if (length < 0 || length > pos())
    return fail(Error::bad_argument, fmt::format("cannot truncate to {} tokens, the session has {}", length, pos()),
                "session", fmt::format("0..{}", pos()));
  if (length <= cache_->coverage()) KVASIR_CHECK(cache_->truncate(length));
  tokens_.resize(static_cast<size_t>(length));
  if (cache_->info().pooled) reached_ = length;
  return {};
}

int Session::computed() const { return cache_->coverage(); }
bool Session::recomputes() const { return !cache_->info().keeps; }

Result<void> Session::append(std::span<const int> tokens) {
  if (tokens.size() > static_cast<size_t>(ctx_ - pos()))
    return fail(Error::too_long,
                fmt::format("{} tokens do not fit the context of {}", tokens_.size() + tokens.size(), ctx_), "session",
                "a shorter text or a larger SessionOptions::ctx");
  KVASIR_CHECK(model_->check_ids(tokens, "session"));
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return {};
}

void Session::take_back(int length) {
  if (truncate(length)) return;
  (void)cache_->truncate(0);
  tokens_.resize(static_cast<size_t>(length));
}

int Session::can_take_back() const { return cache_->info().forgets ? cache_->shape().lookahead : pos(); }

void Session::clear() {
  (void)truncate(0);
  lease_.reset();
}

void Session::release() {
  (void)cache_->truncate(0);
  lease_.reset();
  if (!cache_->info().pooled) return;  // others keep what they were promised, and go on with it
  reached_ = 0;
  share_.reset();
  kv_share_.reset();
}

CacheStats Session::cache_stats() const {
  CacheStats stats;
  const CacheShape& shape = cache_->shape();
  stats.layout = cache_->info().name;
  stats.kv_type_k = shape.k->name;
  stats.kv_type_v = shape.v->name;
  stats.window = shape.window_policy();
  stats.token_bytes = shape.position_bytes();
  stats.bytes = cache_->bytes();
  stats.predicted_bytes = cache_->info().bytes(shape, reached_);
  stats.peak_bytes = cache_->peak_bytes();
  stats.capacity = cache_->capacity();
  stats.growths = cache_->growths();
  stats.copied_rows = cache_->copied_rows();
  stats.saturated = cache_->saturated();
  return stats;
}

}  // namespace kvasir
