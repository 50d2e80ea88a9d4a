// Checking what a session was asked to hold.
#include "engine/session_shape.h"

#include <fmt/format.h>

namespace kvasir {
namespace {

Result<const Codec*> find_kv_type(const std::string& name) {
  std::string known;
  for (const Codec* codec : kv_codecs()) {
    if (name == codec->name || name == codec->file_name) return codec;
    known += (known.empty() ? "" : ", ") + std::string(codec->name);
  }
  return fail(fmt::format("\"{}\" is not a KV type", name), "--kv-type", known);
}

Result<int> choose_ctx(int asked, const ModelConfig& config) {
  const int most = config.full_ctx();
  if (asked == 0) return most;
  if (asked >= 1 && asked <= most) return asked;
  const std::string hint = fmt::format("--ctx {}", most);
  if (asked > most && asked <= config.max_ctx)
    return fail(fmt::format("a context of {} positions is longer than this model's own attention window of {}, and "
                            "sliding windows are not supported yet",
                            asked, most),
                "--ctx", hint);
  return fail(fmt::format("a context of {} positions, this model allows 1..{}", asked, most), "--ctx", hint);
}

}  // namespace

Result<CacheShape> session_shape(const Family& family, const ModelConfig& config, const SessionOptions& options) {
  CacheShape shape = family.cache_needs(config);
  KVASIR_TRY(shape.max_ctx, choose_ctx(options.ctx, config));
  KVASIR_TRY(shape.k, find_kv_type(options.kv_type_k));
  KVASIR_TRY(shape.v, find_kv_type(options.kv_type_v));
  return shape;
}

}  // namespace kvasir
