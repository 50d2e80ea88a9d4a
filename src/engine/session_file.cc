// Sessions in files: what a snapshot must agree with before it becomes one.
#include <kvasir/engine.h>

#include <algorithm>

#include <fmt/format.h>

#include <kvasir/version.h>

#include "arch/network.h"
#include "cache/share/snapshot.h"

namespace kvasir {
namespace {

// What a header says of windows, as CacheShape does of its own.
std::string window_policy(const SnapshotHeader& h) {
  CacheShape shape{.layers = h.layers};
  if (std::any_of(h.windows.begin(), h.windows.end(), [](int w) { return w != 0; })) shape.windows = h.windows;
  shape.sinks = h.sinks;
  return shape.window_policy();
}

Result<void> check(const SnapshotHeader& theirs, const SnapshotHeader& ours, const std::string& path, int ctx,
                   int vocab) {
  const auto differs = [&](const std::string& what, const std::string& is, const std::string& was,
                           const std::string& hint) {
    return fail(fmt::format("the snapshot is of {} {}, not {}", what, was, is), path, hint);
  };
  if (theirs.fingerprint != ours.fingerprint)
    return differs("model", ours.fingerprint, theirs.fingerprint, "the model that it was saved with");
  if (theirs.numerics_version != ours.numerics_version)
    return differs("numerics version", std::to_string(ours.numerics_version), std::to_string(theirs.numerics_version),
                   "the version of Kvasir that wrote it");
  if (theirs.kv_type_k != ours.kv_type_k)
    return differs("K type", ours.kv_type_k, theirs.kv_type_k, "-ctk " + theirs.kv_type_k);
  if (theirs.kv_type_v != ours.kv_type_v)
    return differs("V type", ours.kv_type_v, theirs.kv_type_v, "-ctv " + theirs.kv_type_v);
  if (window_policy(theirs) != window_policy(ours))
    return differs("window", window_policy(ours), window_policy(theirs), "the same --window and --sinks");
  if (theirs.layers != ours.layers || theirs.kv_heads != ours.kv_heads || theirs.head_dim != ours.head_dim)
    return fail("the snapshot is of a cache of another shape", path, "the model that it was saved with");
  if (theirs.tokens.size() > static_cast<size_t>(ctx))
    return fail(fmt::format("the snapshot's {} tokens do not fit the context of {}", theirs.tokens.size(), ctx), path,
                fmt::format("--ctx {}", theirs.tokens.size()));
  if (std::any_of(theirs.tokens.begin(), theirs.tokens.end(), [vocab](int id) { return id < 0 || id >= vocab; }))
    return fail("the snapshot has tokens that the model does not know", path, "the model that it was saved with");
  return {};
}

}  // namespace

Result<void> Session::save(const std::string& path) const {
  KVASIR_TRY(const std::string fingerprint, model_->fingerprint());
  return save_snapshot(path, *cache_, tokens_, fingerprint);
}

// An empty session takes it as it comes, for it can be emptied again. Another is replaced by a new one that holds it.
Result<void> Session::load(const std::string& path) {
  KVASIR_TRY(const Snapshot snapshot, Snapshot::open(path));
  KVASIR_TRY(const std::string fingerprint, model_->fingerprint());
  const SnapshotHeader& header = snapshot.header();
  KVASIR_CHECK(check(header, snapshot_header(*cache_, tokens_, fingerprint), path, ctx_, model_->info().vocab));
  if (cache_->coverage() > 0 || !tokens_.empty()) {
    KVASIR_TRY(Session other, open(model_, cache_->info(), cache_->shape()));
    KVASIR_CHECK(other.load(path));
    other.salt_ = salt_;
    *this = std::move(other);
    return {};
  }
  KVASIR_CHECK(snapshot.load(cache_.get()));
  cache_->end_step();
  tokens_ = header.tokens;
  reached_ = header.positions;
  return {};
}

}  // namespace kvasir
