// Sessions: the memory reserved for one, and how its tokens and its cache stay consistent.
#include <algorithm>

#include <fmt/format.h>

#include "arch/activation_memory.h"
#include "cache/kv_type.h"
#include "engine/budget_fit.h"
#include "engine/model_impl.h"
#include "engine/session_impl.h"

namespace kvasir {

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

// ---- memory -------------------------------------------------------------------------------------------------------

// A pooled layout reserves nothing here: each block is reserved when it is taken.
Result<void> Session::Impl::promise(const LayoutInfo& layout, const CacheShape& shape) {
  const Network& net = *model->impl().network;
  SharedMemory& memory = model->impl().memory;
  const std::string hint = net.source().mode() == WeightsMode::streamed
                               ? "a smaller SessionOptions::ctx or a narrower SessionOptions::kv_type_k and kv_type_v"
                               : "a smaller SessionOptions::ctx, a narrower SessionOptions::kv_type_k and kv_type_v or "
                                 "ModelOptions::weights = streamed";
  const std::string what = fmt::format("a context of {} positions in layout {} needs", shape.max_ctx, layout.name);
  const size_t kv = layout.pooled ? 0 : layout.peak_bytes(shape, shape.max_ctx);
  const auto promised = [&](Budget& budget, size_t bytes) {
    auto taken = budget.take(bytes, "sequences", what, hint);
    while (!taken && memory.pool()->shrink(bytes, &budget)) taken = budget.take(bytes, "sequences", what, hint);
    return taken;
  };
  KVASIR_TRY(share, promised(memory.budget(), session_activation_bytes(net.config(), shape) + kv));
  KVASIR_TRY(kv_share, promised(memory.kv_budget(), kv));
  return {};
}

Result<std::unique_ptr<Layout::Growth>> Session::Impl::prepare(int end) {
  if (share == nullptr) KVASIR_CHECK(promise(cache->info(), cache->shape()));
  return cache->prepare(end);
}

void Session::Impl::apply(std::unique_ptr<Layout::Growth> growth, int end) {
  cache->apply(std::move(growth));
  reached = std::max(reached, end);
}

Result<Session> Session::Impl::open(std::shared_ptr<const Model> model, const LayoutInfo& layout,
                                    const CacheShape& shape) {
  auto session = std::make_unique<Impl>();
  session->ctx = shape.max_ctx;
  session->model = std::move(model);
  KVASIR_CHECK(session->promise(layout, shape));
  KVASIR_TRY(session->cache, layout.make(shape, session->model->impl().memory.pool()));
  return Session(std::move(session));
}

Result<Session> Session::fork() const {
  const Impl& s = *impl_;
  KVASIR_TRY(Session copy, Impl::open(s.model, s.cache->info(), s.cache->shape()));
  KVASIR_CHECK(copy.impl_->cache->adopt(*s.cache, s.cache->coverage()));
  copy.impl_->tokens = s.tokens;
  copy.impl_->salt = s.salt;
  copy.impl_->reached = s.cache->coverage();
  return copy;
}

void Session::release() {
  Impl& s = *impl_;
  (void)s.cache->truncate(0);
  s.lease.reset();
  if (!s.cache->info().pooled) return;  // other layouts keep their reservation and continue with it
  s.reached = 0;
  s.share.reset();
  s.kv_share.reset();
}

// ---- tokens -------------------------------------------------------------------------------------------------------

std::span<const int> Session::tokens() const { return impl_->tokens; }
int Session::pos() const { return impl_->pos(); }
int Session::computed() const { return impl_->cache->coverage(); }
bool Session::recomputes() const { return impl_->cache->info().recomputes; }
int Session::ctx() const { return impl_->ctx; }

Result<void> Session::append(std::span<const int> tokens) {
  Impl& s = *impl_;
  if (tokens.size() > static_cast<size_t>(s.ctx - pos()))
    return fail(Error::too_long,
                fmt::format("{} tokens do not fit the context of {}", s.tokens.size() + tokens.size(), s.ctx),
                "session", "a shorter text or a larger SessionOptions::ctx");
  KVASIR_CHECK(s.model->check_ids(tokens, "session"));
  s.tokens.insert(s.tokens.end(), tokens.begin(), tokens.end());
  return {};
}

Result<void> Session::truncate(int length) { return impl_->truncate(length); }

Result<void> Session::Impl::truncate(int length) {
  if (length < 0 || length > pos())
    return fail(Error::bad_argument, fmt::format("cannot truncate to {} tokens, the session has {}", length, pos()),
                "session", fmt::format("0..{}", pos()));
  if (length <= cache->coverage()) KVASIR_CHECK(cache->truncate(length));
  tokens.resize(static_cast<size_t>(length));
  if (cache->info().pooled) reached = length;
  return {};
}

void Session::Impl::roll_back(int length) {
  if (truncate(length)) return;
  (void)cache->truncate(0);
  tokens.resize(static_cast<size_t>(length));
}

int Session::can_take_back() const {
  return impl_->cache->info().drops_old ? impl_->cache->shape().lookahead : impl_->pos();
}

void Session::clear() {
  (void)truncate(0);
  impl_->lease.reset();
}

bool Session::Impl::adopt(const std::shared_ptr<const Layout>& prefix, std::span<const int> text) {
  (void)truncate(0);
  lease.reset();
  if (!cache->adopt(*prefix, static_cast<int>(text.size()))) return false;
  tokens.assign(text.begin(), text.end());
  reached = std::max(reached, pos());
  if (!cache->info().pooled) lease = prefix;  // shared blocks live as long as anyone holds them
  cache->end_step();
  return true;
}

CacheStats Session::cache_stats() const {
  const Layout& cache = *impl_->cache;
  const CacheShape& shape = cache.shape();
  CacheStats stats;
  stats.layout = cache.info().name;
  stats.kv_type_k = shape.k->name;
  stats.kv_type_v = shape.v->name;
  stats.window = shape.window_policy();
  stats.token_bytes = shape.position_bytes();
  stats.bytes = cache.bytes();
  stats.predicted_bytes = cache.info().bytes(shape, impl_->reached);
  stats.peak_bytes = cache.peak_bytes();
  stats.capacity = cache.capacity();
  stats.growths = cache.growths();
  stats.copied_rows = cache.copied_rows();
  stats.saturated = cache.saturated();
  return stats;
}

}  // namespace kvasir
