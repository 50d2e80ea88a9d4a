// What a session need not compute: its own past, or texts that the model keeps.
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

// All that K and V depend on besides the tokens.
Result<std::string> space_of(const Model& model, const CacheStats& cache, const std::string& salt) {
  KVASIR_TRY(const std::string fingerprint, model.fingerprint());
  return fmt::format("{} {} {} {} {} {}", fingerprint, cache.kv_type_k, cache.kv_type_v, kNumericsVersion, cache.window,
                     salt);
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
    KVASIR_TRY(const std::string space, space_of(*impl_->model, session.cache_stats(), session.impl().salt));
    const PrefixTree::Hit hit = impl_->prefixes->find(space, text.first(text.size() - 1));
    if (hit.length > reuse.tokens && session.impl().adopt(hit.cache, text.first(static_cast<size_t>(hit.length)))) {
      reuse.tokens = hit.length;
      return reuse;
    }
  }
  session.impl().roll_back(std::min(reuse.tokens, session.pos()));
  reuse.tokens = std::min(reuse.tokens, session.computed());
  return reuse;
}

Result<void> Engine::keep(const Session& session) {
  PrefixTree* const tree = impl_->prefixes.get();
  const Layout& cache = *session.impl().cache;
  const CacheShape& shape = cache.shape();
  bool whole = tree != nullptr && cache.coverage() > 0;
  for (int layer = 0; layer < shape.layers && whole; ++layer) whole = cache.oldest(layer) == 0;
  if (!whole) return {};
  KVASIR_TRY(const std::string space, space_of(*impl_->model, session.cache_stats(), session.impl().salt));
  KVASIR_TRY(const LayoutInfo* paged, find_layout("paged"));
  auto kept = paged->make(shape, impl_->model->impl().memory.pool());
  if (!kept || !(*kept)->adopt(cache, cache.coverage())) return {};  // no room: nothing is kept
  tree->insert(space, session.tokens().first(static_cast<size_t>(cache.coverage())), std::move(*kept));
  return {};
}

bool Engine::keeps_texts() const { return impl_->prefixes != nullptr; }

PrefixStats Engine::prefix_stats() const {
  return impl_->prefixes == nullptr ? PrefixStats{} : impl_->prefixes->stats();
}

}  // namespace kvasir
