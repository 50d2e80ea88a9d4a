// Laying out a batch.
#include "arch/pass.h"

#include <algorithm>

#include "math/functions_f64.h"

namespace kvasir {
namespace {

int most_sinks(std::span<const BatchItem> items) {
  int most = 0;
  for (const BatchItem& item : items) most = std::max(most, item.cache->shape().sinks);
  return most;
}

void angles(double position, std::span<const double> frequencies, float* cos, float* sin) {
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double s = 0, c = 0;
    sincos_f64(position * frequencies[i], &s, &c);
    cos[i] = static_cast<float>(c);
    sin[i] = static_cast<float>(s);
  }
}

}  // namespace

size_t sink_angle_floats(const ModelConfig& config, std::span<const BatchItem> items) {
  int tokens = 0;
  for (const BatchItem& item : items) tokens += static_cast<int>(item.tokens.size());
  return 2 * Workspace::floats_for(tokens * most_sinks(items), config.head_dim / 2);
}

Pass::Pass(const ModelConfig& config, std::span<const double> rope_frequencies, Compute& compute, Workspace& workspace,
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
  if (!rope_frequencies.empty()) make_rope_tables(rope_frequencies);
  if (most_sinks_ > 0) make_sink_tables(rope_frequencies);
}

void Pass::make_rope_tables(std::span<const double> frequencies) {
  cos_ = take(static_cast<int64_t>(frequencies.size()));
  sin_ = take(static_cast<int64_t>(frequencies.size()));
  compute_.for_rows(tokens(), [&](int t) { angles(position(t), frequencies, cos_.row(t), sin_.row(t)); });
}

// Every layer of a sequence with sinks has the same window.
void Pass::make_sink_tables(std::span<const double> frequencies) {
  const auto half = static_cast<int64_t>(frequencies.size());
  sink_cos_ = workspace_.take(tokens() * most_sinks_, half);
  sink_sin_ = workspace_.take(tokens() * most_sinks_, half);
  compute_.for_rows(tokens(), [&](int t) {
    const CacheShape& shape = item_of(t).cache->shape();
    const int place = std::max(0, position(t) + 1 - shape.window(0) - shape.sinks);
    for (int i = 0; i < shape.sinks; ++i)
      angles(place + i, frequencies, sink_cos_.row(t * most_sinks_ + i), sink_sin_.row(t * most_sinks_ + i));
  });
}

}  // namespace kvasir
