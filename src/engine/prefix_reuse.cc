// Reuse of computed K and V: a session's own past, and stored prefixes.
#include <kvasir/engine.h>

#include <algorithm>

#include <fmt/format.h>

#include <kvasir/version.h>

#include "arch/network.h"
#include "engine/engine_impl.h"
#include "engine/model_impl.h"
#include "engine/session_impl.h"

namespace kvasir {
namespace {

// The name of everything besides the tokens that K and V depend on; salt_of() finds the salt in it.
Result<std::string> space_of(const Model& model, const CacheShape& shape, const std::string& salt) {
  KVASIR_TRY(const std::string fingerprint, model.fingerprint());
  return fmt::format("{} {} {} {} {}\n{}", fingerprint, shape.k->name, shape.v->name, kNumericsVersion,
                     shape.window_policy(), salt);
}

Result<std::string> space_of(const Model& model, const Session::Impl& session) {
  return space_of(model, session.cache->shape(), session.salt);
}

// Stores the first `length` positions of a session as a prefix, if the session still has all of them.
Result<void> keep_positions(const Engine::Impl& engine, const Session& session, int length) {
  const Layout& cache = *session.impl().cache;
  bool whole = engine.prefixes != nullptr && length > 0;
  for (int layer = 0; layer < cache.shape().layers && whole; ++layer) whole = cache.oldest(layer) == 0;
  if (!whole) return {};
  KVASIR_TRY(const std::string space, space_of(*engine.model, session.impl()));
  KVASIR_TRY(const LayoutInfo* paged, find_layout("paged"));
  auto kept = paged->make(cache.shape(), engine.model->impl().memory.pool());
  if (!kept || !(*kept)->adopt(cache, length)) return {};  // no room: stores nothing
  engine.prefixes->insert(space, session.tokens().first(static_cast<size_t>(length)), std::move(*kept));
  return {};
}

}  // namespace

Result<Reuse> Engine::reuse(Session& session, std::span<const int> text) {
  if (text.empty())
    return fail(Error::bad_argument, "no tokens to feed", "Generator::prompt", "a prompt that is not empty");
  const auto own = session.tokens();
  const auto same =
      static_cast<int>(std::mismatch(own.begin(), own.end(), text.begin(), text.end()).first - own.begin());
  Reuse reuse{.tokens = std::min(same, static_cast<int>(text.size()) - 1)};
  if (same < session.pos()) reuse.differs = same;
  if (impl_->prefixes != nullptr) {
    KVASIR_TRY(const std::string space, space_of(*impl_->model, session.impl()));
    PrefixTree::Hit hit = impl_->prefixes->find(space, text.first(text.size() - 1));
    reuse.kept_ids = std::move(hit.next);
    if (hit.length > reuse.tokens && session.impl().adopt(hit.cache, text.first(static_cast<size_t>(hit.length)))) {
      reuse.tokens = hit.length;
      return reuse;
    }
  }
  session.impl().roll_back(std::min(reuse.tokens, session.pos()));
  reuse.tokens = std::min(reuse.tokens, session.computed());
  return reuse;
}

Result<int> Engine::reusable(const SessionOptions& options, std::span<const int> text) const {
  KVASIR_TRY(const auto made, impl_->shape_of(options));
  if (impl_->prefixes == nullptr || text.empty()) return 0;
  KVASIR_TRY(const std::string space, space_of(*impl_->model, made.second, options.salt));
  return impl_->prefixes->length_of(space, text.first(text.size() - 1));
}

Result<void> Engine::keep(const Session& session) { return keep_positions(*impl_, session, session.computed()); }

Result<void> Engine::publish(const Session& session) {
  return keep_positions(*impl_, session, session.computed() / kTilePositions * kTilePositions);
}

bool Engine::keeps_texts() const { return impl_->prefixes != nullptr; }

PrefixStats Engine::prefix_stats() const {
  return impl_->prefixes == nullptr ? PrefixStats{} : impl_->prefixes->stats();
}

}  // namespace kvasir
