// Sessions in files: save, load, and the checks of a snapshot against the session that loads it.
#include <algorithm>

#include <fmt/format.h>

#include <kvasir/version.h>

#include "cache/share/snapshot.h"
#include "engine/session_impl.h"

namespace kvasir {
namespace {

Result<void> check(const SnapshotHeader& h, const std::string& fingerprint, const CacheShape& ours, int vocab,
                   const std::string& path) {
  const CacheShape& theirs = h.shape;
  const auto same = [&](std::string_view what, std::string_view is, std::string_view was,
                        const std::string& hint) -> Result<void> {
    if (is == was) return {};
    return fail(Error::bad_argument, fmt::format("the snapshot is of {} {}, not {}", what, was, is), path, hint);
  };
  const std::string_view k = theirs.k->name, v = theirs.v->name;
  KVASIR_CHECK(same("model", fingerprint, h.fingerprint, "the model that it was saved with"));
  KVASIR_CHECK(same("numerics version", std::to_string(kNumericsVersion), std::to_string(h.numerics_version),
                    "the version of Kvasir that wrote it"));
  KVASIR_CHECK(same("K type", ours.k->name, k, fmt::format("SessionOptions::kv_type_k = {}", k)));
  KVASIR_CHECK(same("V type", ours.v->name, v, fmt::format("SessionOptions::kv_type_v = {}", v)));
  KVASIR_CHECK(same("window", ours.window_policy(), theirs.window_policy(),
                    "the same SessionOptions::window and SessionOptions::sinks"));
  if (theirs.layers != ours.layers || theirs.kv_heads != ours.kv_heads || theirs.head_dim != ours.head_dim)
    return fail(Error::bad_argument, "the snapshot is of a cache of another shape", path,
                "the model that it was saved with");
  if (h.tokens.size() > static_cast<size_t>(ours.max_ctx))
    return fail(Error::too_long,
                fmt::format("the snapshot's {} tokens do not fit the context of {}", h.tokens.size(), ours.max_ctx),
                path, fmt::format("SessionOptions::ctx = {}", h.tokens.size()));
  if (std::any_of(h.tokens.begin(), h.tokens.end(), [vocab](int id) { return id < 0 || id >= vocab; }))
    return fail(Error::damaged, "the snapshot has tokens that the model does not know", path,
                "the model that it was saved with");
  return {};
}

}  // namespace

Result<void> Session::save(const std::string& path) const {
  KVASIR_TRY(const std::string fingerprint, impl_->model->fingerprint());
  return save_snapshot(path, *impl_->cache, impl_->tokens, fingerprint);
}

// An empty session loads in place and is emptied on failure. A used one is replaced only after a new one has loaded.
Result<void> Session::load(const std::string& path) {
  Impl& s = *impl_;
  KVASIR_TRY(const Snapshot snapshot, Snapshot::open(path));
  KVASIR_TRY(const std::string fingerprint, s.model->fingerprint());
  const SnapshotHeader& header = snapshot.header();
  KVASIR_CHECK(check(header, fingerprint, s.cache->shape(), s.model->info().vocab, path));
  if (s.cache->coverage() > 0 || !s.tokens.empty()) {
    KVASIR_TRY(Session other, Impl::open(s.model, s.cache->info(), s.cache->shape()));
    KVASIR_CHECK(other.load(path));
    other.impl_->salt = s.salt;
    *this = std::move(other);
    return {};
  }
  KVASIR_CHECK(snapshot.load(s.cache.get()));
  s.cache->end_step();
  s.tokens = header.tokens;
  s.reached = header.positions;
  return {};
}

}  // namespace kvasir
