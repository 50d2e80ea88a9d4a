// Lays out a batch: rows, positions and RoPE tables.
#include "arch/forward_pass.h"

#include <algorithm>

#include "math/functions_f64.h"

namespace kvasir {
namespace {

int most_sinks(std::span<const BatchItem> items) {
  int most = 0;
  for (const BatchItem& item : items) most = std::max(most, item.cache->shape().sinks);
  return most;
}

}  // namespace

size_t sink_angle_floats(const ModelConfig& config, std::span<const BatchItem> items) {
  int tokens = 0;
  for (const BatchItem& item : items) tokens += static_cast<int>(item.tokens.size());
  size_t floats = 0;
  for (const RopeConfig& rope : config.ropes)
    floats += 2 * Workspace::floats_for(tokens * most_sinks(items), rope.channels / 2);
  return floats;
}

Pass::Pass(const ModelConfig& config, std::span<const RopeFrequencies> ropes, Compute& compute, Workspace& workspace,
           std::span<const BatchItem> items, const Trace* trace)
    : config_(config),
      compute_(compute),
      workspace_(workspace),
      items_(items),
      trace_(trace),
      most_sinks_(most_sinks(items)) {
  for (size_t i = 0; i < items.size(); ++i) {
    first_rows_.push_back(static_cast<int>(ids_.size()));
    for (size_t j = 0; j < items[i].tokens.size(); ++j) {
      ids_.push_back(items[i].tokens[j]);
      positions_.push_back(items[i].first + static_cast<int>(j));
      owners_.push_back(static_cast<int>(i));
    }
  }
  x = take(config.hidden);
  make_rope_tables(ropes);
  if (most_sinks_ > 0) make_sink_tables(ropes);
}

// Sets the angles of one row for the token in row t; `position` is the token's own or a sink's.
void Pass::set_angles(int t, size_t kind, const RopeFrequencies& rope, double position, const Angles& angles,
                      int row) const {
  const std::vector<double>& frequencies = item_of(t).cache->shape().long_rope ? rope.longer : rope.usual;
  const auto magnitude = static_cast<double>(config_.ropes[kind].magnitude);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double s = 0, c = 0;
    sincos_f64(position * frequencies[i], &s, &c);
    angles.cos.row(row)[i] = static_cast<float>(c * magnitude);
    angles.sin.row(row)[i] = static_cast<float>(s * magnitude);
  }
}

void Pass::make_rope_tables(std::span<const RopeFrequencies> ropes) {
  for (size_t kind = 0; kind < ropes.size(); ++kind) {
    const auto half = static_cast<int64_t>(ropes[kind].usual.size());
    const Angles angles = angles_.emplace_back(Angles{take(half), take(half)});
    compute_.for_rows(tokens(), [&](int t) { set_angles(t, kind, ropes[kind], position(t), angles, t); });
  }
}

// Uses layer 0's window: every layer of a sequence with sinks has the same one.
void Pass::make_sink_tables(std::span<const RopeFrequencies> ropes) {
  for (size_t kind = 0; kind < ropes.size(); ++kind) {
    const auto half = static_cast<int64_t>(ropes[kind].usual.size());
    const auto rows = [&] { return workspace_.take(tokens() * most_sinks_, half); };
    const Angles angles = sink_angles_.emplace_back(Angles{rows(), rows()});
    compute_.for_rows(tokens(), [&](int t) {
      const CacheShape& shape = item_of(t).cache->shape();
      const int place = std::max(0, position(t) + 1 - shape.window(0) - shape.sinks);
      for (int i = 0; i < shape.sinks; ++i) set_angles(t, kind, ropes[kind], place + i, angles, t * most_sinks_ + i);
    });
  }
}

void Pass::rotate(int layer, float* heads, int count, const std::vector<Angles>& angles, int row) const {
  const auto kind = static_cast<size_t>(config_.rope_kind(layer));
  const RopeConfig& rope = config_.ropes[kind];
  kernels().rope({heads, count, config_.head_dim, rope.channels, angles[kind].cos.row(row), angles[kind].sin.row(row),
                  rope.interleaved});
}

}  // namespace kvasir
