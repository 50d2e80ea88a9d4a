// Checks of a session's context, window and KV types.
#include "engine/session_shape.h"

#include <algorithm>

#include <fmt/format.h>

#include "cache/kv_type.h"

namespace kvasir {
namespace {

constexpr int kMostPositions = 1 << 28;

Result<int> choose_ctx(int asked, const ModelConfig& config, bool windowed) {
  const int most = windowed ? kMostPositions : config.max_ctx;
  if (asked == 0) return config.max_ctx;
  if (asked >= 1 && asked <= most) return asked;
  return fail(Error::bad_argument, fmt::format("a context of {} positions, this model allows 1..{}", asked, most),
              "SessionOptions::ctx", fmt::format("SessionOptions::ctx = {}", most));
}

// Applies the window that the options ask for. Errors: this model cannot have it.
Result<void> set_window(const ModelConfig& c, const SessionOptions& options, CacheShape* shape) {
  const int window = options.window, sinks = options.sinks.value_or(window != 0 ? kDefaultSinks : 0);
  if (window == 0 && sinks == 0) return {};
  if (c.ropes.empty())
    return fail(
        Error::unsupported,
        "this model's positions are learned: there are none past its last, and kept tokens cannot move to others",
        "SessionOptions::window", "GenerateOptions::on_full = recompute, or a model with RoPE");
  if (c.norm_after_rope && sinks > 0)
    return fail(Error::unsupported, "keys are normalised after RoPE, so the keys of sinks cannot be rotated again",
                "SessionOptions::sinks", "SessionOptions::sinks = 0");
  if (!shape->windows.empty())
    return fail(Error::bad_argument, fmt::format("this model has a window of its own: {}", shape->window_policy()),
                "SessionOptions::window",
                "SessionOptions::layout = windowed, which keeps only what that window sees; results are the same");
  if (window == 0)
    return fail(Error::bad_argument, fmt::format("{} sinks without a window", sinks), "SessionOptions::sinks",
                "SessionOptions::window too");
  if (window < 0)
    return fail(Error::bad_argument, fmt::format("a window of {} positions", window), "SessionOptions::window",
                "1 or more");
  if (sinks < 0 || sinks > kTilePositions)
    return fail(Error::bad_argument, fmt::format("{} sinks", sinks), "SessionOptions::sinks",
                fmt::format("0..{}", kTilePositions));
  if (int64_t{window} + sinks > c.max_ctx)
    return fail(
        Error::bad_argument,
        fmt::format("a window of {} and {} sinks exceed the {} positions of this model", window, sinks, c.max_ctx),
        "SessionOptions::window", fmt::format("SessionOptions::window = {}", c.max_ctx - sinks));
  shape->windows.assign(static_cast<size_t>(c.layers), window);
  shape->sinks = sinks;
  return {};
}

// Turns SessionOptions::slide into a window that fills the context.
Result<SessionOptions> sliding(const ModelConfig& config, SessionOptions options, const LayoutInfo& layout) {
  if (!layout.drops_old)
    return fail(Error::bad_argument,
                fmt::format("layout {} holds every position, and a sequence that slides has no end", layout.name),
                "SessionOptions::layout", "SessionOptions::layout = windowed");
  if (options.window != 0 && options.ctx != 0)
    return fail(Error::bad_argument,
                fmt::format("a window of {} slides by itself, so a context of {} positions has no meaning",
                            options.window, options.ctx),
                "SessionOptions::ctx", "SessionOptions::window or SessionOptions::ctx, not both");
  if (options.window == 0) {
    KVASIR_TRY(const int ctx, choose_ctx(options.ctx, config, false));
    options.sinks = options.sinks.value_or(std::min(kDefaultSinks, ctx - 1));
    options.window = ctx - *options.sinks;
  }
  options.ctx = kMostPositions;
  return options;
}

}  // namespace

Result<CacheShape> session_shape(const Family& family, const ModelConfig& config, const SessionOptions& asked,
                                 const LayoutInfo& layout, int lookahead) {
  SessionOptions options = asked;
  if (asked.slide) {
    KVASIR_TRY(options, sliding(config, asked, layout));
  }
  CacheShape shape = family.cache_needs(config);
  KVASIR_CHECK(set_window(config, options, &shape));
  KVASIR_TRY(shape.max_ctx, choose_ctx(options.ctx, config, options.window > 0));
  shape.long_rope = std::ranges::any_of(config.ropes, [&](const RopeConfig& rope) {
    return !rope.long_factors.empty() && shape.max_ctx > rope.original_ctx;
  });
  if (options.max_positions < 0)
    return fail(Error::bad_argument, fmt::format("{} positions", options.max_positions),
                "SessionOptions::max_positions", "1 or more, or 0 for all of SessionOptions::ctx");
  if (options.max_positions > 0) shape.max_ctx = std::min(shape.max_ctx, options.max_positions);
  KVASIR_TRY(shape.k, find_kv_type(options.kv_type_k));
  KVASIR_TRY(shape.v, find_kv_type(options.kv_type_v, "SessionOptions::kv_type_v"));
  shape.lookahead = lookahead;
  return shape;
}

}  // namespace kvasir
