// Engines: their memory, the sessions that they open, passes and steps. feeding.cc decides which tokens share a pass.
#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "arch/activation_memory.h"
#include "base/system.h"
#include "engine/budget_fit.h"
#include "engine/engine_impl.h"
#include "engine/feeding.h"
#include "engine/model_impl.h"
#include "engine/session_impl.h"
#include "engine/session_shape.h"

namespace kvasir {

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<const Model> model, const EngineOptions& options) {
  if (options.prefill_chunk < 1)
    return fail(Error::bad_argument, fmt::format("a prefill chunk of {} tokens", options.prefill_chunk),
                "EngineOptions::prefill_chunk", "1 or more");
  auto impl = std::make_unique<Impl>();
  impl->network = model->impl().network.get();
  KVASIR_CHECK(impl->network->source().check());
  impl->model = std::move(model);
  SharedMemory& memory = impl->model->impl().memory;
  if (options.prefix_ram > 0) impl->prefixes = memory.prefixes(options.prefix_ram);
  KVASIR_TRY(impl->compute, Compute::create(options.threads == 0 ? default_threads() : options.threads));
  KVASIR_CHECK(impl->plan_memory(memory.budget(), options.prefill_chunk));
  return std::make_unique<Engine>(std::move(impl));
}

Result<void> Engine::Impl::plan_memory(Budget& budget, int prefill_chunk) {
  const ModelConfig& c = network->config();
  chunk = budgeted_chunk(network->footprint(), std::min(prefill_chunk, c.max_ctx), compute->threads(), budget.bytes(),
                         budget.left());
  const size_t bytes = network->footprint().activation_bytes(chunk, compute->threads());
  KVASIR_TRY(share, budget.take(bytes, "activations", fmt::format("passes of {} tokens need", chunk),
                                "a smaller EngineOptions::prefill_chunk or fewer EngineOptions::threads"));
  return {};
}

const std::shared_ptr<const Model>& Engine::shared_model() const { return impl_->model; }
int Engine::pass_tokens() const { return impl_->chunk; }
int Engine::threads() const { return impl_->compute->threads(); }
void Engine::in_parallel(size_t n, const std::function<void(size_t)>& f) {
  impl_->compute->pool().run(static_cast<int>(n), [&](int i, int) { f(static_cast<size_t>(i)); });
}
std::string Engine::cpu() const { return impl_->compute->kernels().name; }

Result<std::pair<const LayoutInfo*, CacheShape>> Engine::Impl::shape_of(const SessionOptions& options) const {
  KVASIR_TRY(const LayoutInfo* layout, find_layout(options.layout));
  KVASIR_TRY(CacheShape shape, session_shape(network->family(), network->config(), options, *layout, chunk));
  return std::pair(layout, std::move(shape));
}

Result<Session> Engine::open_session(const SessionOptions& options) const {
  KVASIR_TRY(auto made, impl_->shape_of(options));
  auto& [layout, shape] = made;
  const Network& net = *impl_->network;
  SharedMemory& memory = impl_->model->impl().memory;
  if (options.ctx == 0 && options.max_positions == 0 && (memory.budget().limited() || memory.kv_budget().limited())) {
    const auto room = [&memory](const Budget& of) {
      return of.limited() ? of.left() + memory.pool()->spare_bytes(of) : SIZE_MAX;
    };
    shape.max_ctx =
        std::max(1, positions_that_fit(net.config(), *layout, shape, room(memory.budget()), room(memory.kv_budget())));
  }
  KVASIR_TRY(Session session, Session::Impl::open(impl_->model, *layout, shape));
  session.impl().salt = options.salt;
  return session;
}

size_t Engine::kv_room() const { return impl_->model->impl().memory.pool()->room(); }

size_t Engine::kv_used() const { return impl_->model->impl().memory.pool()->used_bytes(); }

Result<size_t> Engine::kv_bytes(const SessionOptions& options, int positions) const {
  KVASIR_TRY(const auto made, impl_->shape_of(options));
  const auto& [layout, shape] = made;
  if (layout->pooled) return layout->peak_bytes(shape, positions);
  return session_bytes(impl_->network->config(), *layout, shape);
}

Result<void> Engine::pass(std::span<const Feed> feeds, PassOutput* out) {
  KVASIR_CHECK(Feeding::check(*impl_->model, feeds));
  const size_t tokens = Feeding::tokens_to_compute(feeds),
               most = std::max<size_t>(feeds.size(), static_cast<size_t>(impl_->chunk));
  if (tokens > most)
    return fail(Error::too_long, fmt::format("{} tokens to compute, a pass takes {}", tokens, most), "Feed::tokens",
                "fewer tokens at once, or Engine::step()");
  return Feeding(*impl_, feeds).run(out);
}

Result<void> Engine::step(std::span<const Feed> feeds, PassOutput* out) {
  KVASIR_CHECK(Feeding::check(*impl_->model, feeds));
  return Feeding(*impl_, feeds).run(out);
}

Result<void> Engine::make_room(const Feed& feed) {
  Session::Impl& session = feed.session->impl();
  const int end = session.pos() + static_cast<int>(feed.tokens.size());
  KVASIR_TRY(auto growth, session.prepare(end));
  session.apply(std::move(growth), end);
  return {};
}

Result<void> Engine::prefill(Session& session, std::span<const int> tokens, FeedOutput* out) {
  const Feed feed{&session, tokens};
  PassOutput all;
  KVASIR_CHECK(step({&feed, 1}, &all));
  if (all[0].error) return tl::unexpected(std::move(*all[0].error));
  *out = std::move(all[0]);
  return {};
}

Result<void> Engine::decode_step(std::span<Session* const> sessions, std::span<const int> tokens, PassOutput* out) {
  if (sessions.size() != tokens.size())
    return fail(Error::bad_argument, fmt::format("{} tokens for {} sessions", tokens.size(), sessions.size()),
                "decode_step");
  std::vector<Feed> feeds;
  for (size_t b = 0; b < sessions.size(); ++b) feeds.push_back({sessions[b], tokens.subspan(b, 1)});
  return step(feeds, out);
}

}  // namespace kvasir
