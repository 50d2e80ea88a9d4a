// Steps: which tokens are fed to which pass. Sessions are in session.cc.
#include <kvasir/engine.h>

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "arch/footprint.h"
#include "base/system.h"
#include "engine/engine_impl.h"
#include "engine/memory_plan.h"
#include "engine/session_shape.h"

namespace kvasir {

Engine::Engine() = default;
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<const Model> model, const EngineOptions& options) {
  if (options.prefill_chunk < 1)
    return fail(fmt::format("a prefill chunk of {} tokens", options.prefill_chunk), "--prefill-chunk", "1 or more");
  std::unique_ptr<Engine> engine(new Engine);
  engine->impl_ = std::make_unique<EngineImpl>();
  engine->impl_->network = &model->network();
  engine->model_ = std::move(model);
  if (options.prefix_ram > 0) {
    engine->impl_->prefixes = std::make_shared<PrefixTree>(options.prefix_ram);
    engine->model_->block_pool()->add_holder(engine->impl_->prefixes);
  }
  KVASIR_TRY(engine->impl_->compute, Compute::create(options.threads == 0 ? default_threads() : options.threads));
  KVASIR_CHECK(engine->impl_->plan_memory(*engine->model_->budget(), options.prefill_chunk));
  return engine;
}

Result<void> EngineImpl::plan_memory(Budget& budget, int prefill_chunk) {
  const ModelConfig& c = network->config();
  chunk = budgeted_chunk(network->footprint(), std::min(prefill_chunk, c.max_ctx), compute->threads(), budget.bytes());
  const size_t bytes = network->footprint().activation_bytes(chunk, compute->threads());
  KVASIR_TRY(share, budget.take(bytes, "activations", fmt::format("passes of {} tokens need", chunk),
                                "a smaller --prefill-chunk or fewer --threads"));
  return {};
}

int Engine::threads() const { return impl_->compute->threads(); }
std::string Engine::cpu() const { return impl_->compute->kernels().name; }

Result<Session> Engine::open_session(const SessionOptions& options) const {
  KVASIR_TRY(const LayoutInfo* info, find_layout(options.layout));
  return open_session(*info, options);
}

Result<Session> Engine::open_session(const LayoutInfo& layout, const SessionOptions& options) const {
  const Network& net = model_->network();
  KVASIR_TRY(CacheShape shape, session_shape(net.family(), net.config(), options, layout, impl_->chunk));
  const Budget &budget = *model_->budget(), &kv_budget = *model_->kv_budget();
  if (options.ctx == 0 && (budget.limited() || kv_budget.limited())) {
    const size_t spare = model_->block_pool()->spare_bytes();
    const auto room = [spare](const Budget& of) { return of.limited() ? of.left() + spare : SIZE_MAX; };
    shape.max_ctx = std::max(1, positions_that_fit(net.config(), layout, shape, room(budget), room(kv_budget)));
  }
  KVASIR_TRY(Session session, Session::open(model_, layout, shape));
  session.salt_ = options.salt;
  return session;
}

Result<void> Engine::step(std::span<const Feed> feeds, StepOutput* out) {
  std::vector<const Session*> sessions;
  for (const Feed& feed : feeds) {
    sessions.push_back(feed.session);
    if (feed.tokens.empty()) return fail("no tokens to feed", "prompt", "a prompt that is not empty");
    KVASIR_CHECK(model_->check_ids(feed.tokens, "prompt"));
    const size_t end = feed.session->tokens_.size() + feed.tokens.size();
    if (end > static_cast<size_t>(feed.session->ctx_))
      return fail(fmt::format("{} tokens do not fit the context of {}", end, feed.session->ctx_), "prompt",
                  "a shorter prompt or a larger --ctx");
  }
  std::sort(sessions.begin(), sessions.end());
  if (std::adjacent_find(sessions.begin(), sessions.end()) != sessions.end())
    return fail("a session is fed twice in one step", "batch", "one feed a session, with all its tokens");
  std::vector<int> before;
  for (const Feed& feed : feeds) {
    before.push_back(feed.session->pos());
    feed.session->tokens_.insert(feed.session->tokens_.end(), feed.tokens.begin(), feed.tokens.end());
  }
  auto done = impl_->run_passes(feeds, before, out);
  for (size_t i = 0; i < feeds.size(); ++i) {
    Session& session = *feeds[i].session;
    if (!done) session.take_back(before[i]);
    session.cache_->end_step();
  }
  return done;
}

Result<void> Engine::make_room(const Feed& feed) {
  Session& session = *feed.session;
  const int end = session.pos() + static_cast<int>(feed.tokens.size());
  if (session.share_ == nullptr) KVASIR_CHECK(session.promise(session.cache_->info(), session.cache_->shape()));
  KVASIR_TRY(auto plan, session.cache_->plan(end));
  session.cache_->apply(std::move(plan));
  session.reached_ = std::max(session.reached_, end);
  return {};
}

Result<void> Engine::prefill(Session& session, std::span<const int> tokens, StepOutput* out) {
  const Feed feed{&session, tokens};
  return step({&feed, 1}, out);
}

Result<void> Engine::decode_step(std::span<Session* const> sessions, std::span<const int> tokens, StepOutput* out) {
  if (sessions.size() != tokens.size())
    return fail(fmt::format("{} tokens for {} sessions", tokens.size(), sessions.size()), "decode_step");
  std::vector<Feed> feeds;
  for (size_t b = 0; b < sessions.size(); ++b) feeds.push_back({sessions[b], tokens.subspan(b, 1)});
  return step(feeds, out);
}

// ---- passes -----------------------------------------------------------------------------------------------------

// What a cache does not cover is fed again, which for a layout that forgets is everything. Every session has one token
// in the pass at least; those that have more to feed take, in order, what the chunk has room for.
std::vector<BatchItem> EngineImpl::next_items(std::span<const Feed> feeds, std::span<const int> before,
                                              std::vector<size_t>* owners) {
  std::vector<BatchItem> items;
  owners->clear();
  int room = std::max(0, chunk - static_cast<int>(feeds.size()));
  for (size_t i = 0; i < feeds.size(); ++i) {
    const Session& session = *feeds[i].session;
    const Layout& cache = *session.cache_;
    const int most = cache.info().forgets ? std::min(1 + room, cache.shape().lookahead) : 1 + room;
    const int first = cache.coverage(), n = std::min(session.pos() - first, most);
    if (n == 0) continue;
    room -= n - 1;
    const int wanted = feeds[i].all_logits ? before[i] : session.pos() - 1;
    items.push_back({session.cache_.get(), first,
                     session.tokens().subspan(static_cast<size_t>(first), static_cast<size_t>(n)),
                     std::clamp(wanted - first, 0, n)});
    owners->push_back(i);
  }
  return items;
}

namespace {

std::vector<float> joined(const std::vector<std::vector<float>>& parts) {
  std::vector<float> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

// All memory that the step needs, before any of it runs: a long prompt grows its cache once, and a step that does not
// fit changes nothing.
Result<void> EngineImpl::reserve(std::span<const Feed> feeds) {
  std::vector<std::unique_ptr<Layout::Plan>> plans;
  for (const Feed& feed : feeds) {
    Session& session = *feed.session;
    if (session.share_ == nullptr) KVASIR_CHECK(session.promise(session.cache_->info(), session.cache_->shape()));
    KVASIR_TRY(auto plan, feed.session->cache_->plan(feed.session->pos()));
    plans.push_back(std::move(plan));
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    Session& session = *feeds[i].session;
    session.cache_->apply(std::move(plans[i]));
    session.reached_ = std::max(session.reached_, session.pos());
  }
  return {};
}

Result<void> EngineImpl::run_passes(std::span<const Feed> feeds, std::span<const int> before, StepOutput* out) {
  KVASIR_CHECK(reserve(feeds));
  std::vector<std::vector<float>> logits(feeds.size()), hidden(feeds.size());
  std::vector<size_t> owners;
  const std::ptrdiff_t vocab = network->config().vocab, channels = network->config().hidden;
  Network::Options options;
  for (const Feed& feed : feeds) options.hidden |= feed.hidden;
  for (auto items = next_items(feeds, before, &owners); !items.empty(); items = next_items(feeds, before, &owners)) {
    Network::Output pass;
    KVASIR_CHECK(network->forward(items, *compute, workspace, options, &pass));
    auto logits_row = pass.logits.begin(), state = pass.hidden.begin();
    for (size_t i = 0; i < items.size(); ++i) {
      const size_t owner = owners[i];
      const int n = static_cast<int>(items[i].tokens.size());
      const auto logits_end = logits_row + (n - items[i].wanted_from) * vocab;
      logits[owner].insert(logits[owner].end(), logits_row, logits_end);
      logits_row = logits_end;
      if (!options.hidden) continue;
      // Positions before the feed's own are here only because the cache had forgotten them.
      const int own = feeds[owner].hidden ? std::clamp(before[owner] - items[i].first, 0, n) : n;
      hidden[owner].insert(hidden[owner].end(), state + own * channels, state + n * channels);
      state += n * channels;
    }
  }
  out->logits = joined(logits);
  out->hidden = joined(hidden);
  return {};
}

}  // namespace kvasir
