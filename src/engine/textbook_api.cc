// The textbook's interface: B sequences of equal length in one KVCache, without sessions.
#include <algorithm>

#include <fmt/format.h>

#include "cache/grow.h"
#include "engine/engine_impl.h"

namespace kvasir {
namespace {

Result<CacheShape> shape_of(const KVCache& cache, const Network& network) {
  CacheShape shape = network.family().cache_needs(network.config());
  if (cache.layers() != shape.layers || cache.kv_heads() != shape.kv_heads || cache.head_dim() != shape.head_dim)
    return fail(Error::bad_argument,
                fmt::format("a KVCache of {} layers, {} KV heads of {}; the model needs {}, {} of {}", cache.layers(),
                            cache.kv_heads(), cache.head_dim(), shape.layers, shape.kv_heads, shape.head_dim),
                "KV cache", "the model's own shape");
  shape.max_ctx = cache.max_len();
  KVASIR_TRY(shape.k, find_kv_type(cache.k_type()));
  KVASIR_TRY(shape.v, find_kv_type(cache.v_type()));
  return shape;
}

}  // namespace

Result<void> Engine::prefill(KVCache& cache, std::span<const int> tokens, FeedOutput* out) {
  KVASIR_TRY(const CacheShape shape, shape_of(cache, *impl_->network));
  const size_t batch = static_cast<size_t>(cache.batch()), n = tokens.size() / batch;
  if (n == 0 || tokens.size() % batch != 0)
    return fail(Error::bad_argument, fmt::format("{} tokens for {} sequences of equal length", tokens.size(), batch),
                "prefill");
  const int start = cache.seq_len();
  KVASIR_CHECK(cache.grow_to(start + static_cast<int>(n)));
  std::vector<std::unique_ptr<Layout>> views;
  for (int b = 0; b < cache.batch(); ++b) views.push_back(make_grow_view(cache, shape, b));
  const size_t rows = batch * static_cast<size_t>(impl_->model->info().vocab);
  KVASIR_CHECK(impl_->logits.reserve(rows));
  const size_t chunk = std::max<size_t>(1, static_cast<size_t>(impl_->chunk) / batch);
  for (size_t from = 0; from < n; from += chunk) {
    const size_t count = std::min(n - from, chunk);
    const int wanted = from + count == n ? static_cast<int>(count) - 1 : static_cast<int>(count);
    std::vector<BatchItem> items;
    for (size_t b = 0; b < batch; ++b)
      items.push_back({views[b].get(), start + static_cast<int>(from), tokens.subspan(b * n + from, count), wanted});
    Network::Output pass{.logits = impl_->logits.data(), .errors = {}};
    auto done = impl_->network->forward(items, *impl_->compute, impl_->workspace, &pass);
    for (auto& error : pass.errors)
      if (done && error) done = tl::unexpected(std::move(*error));
    if (!done) {
      (void)cache.set_seq_len(start);
      return done;
    }
  }
  *out = {.logits = {impl_->logits.data(), rows}, .hidden = {}, .error = {}};
  return {};
}

Result<void> Engine::decode_step(KVCache& cache, std::span<const int> tokens, FeedOutput* out) {
  if (tokens.size() != static_cast<size_t>(cache.batch()))
    return fail(Error::bad_argument, fmt::format("{} tokens for {} sequences", tokens.size(), cache.batch()),
                "decode_step");
  return prefill(cache, tokens, out);
}

}  // namespace kvasir
