// Laying out a batch.
#include "arch/pass.h"

#include "math/functions_f64.h"

namespace kvasir {

Pass::Pass(const ModelConfig& config, std::span<const double> rope_frequencies, Compute& compute, Workspace& workspace,
           std::span<const BatchItem> items, const Trace* trace)
    : config_(config), compute_(compute), workspace_(workspace), items_(items), trace_(trace) {
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
}

void Pass::make_rope_tables(std::span<const double> frequencies) {
  cos_ = take(static_cast<int64_t>(frequencies.size()));
  sin_ = take(static_cast<int64_t>(frequencies.size()));
  compute_.for_rows(tokens(), [&](int t) {
    for (size_t i = 0; i < frequencies.size(); ++i) {
      double s = 0, c = 0;
      sincos_f64(position(t) * frequencies[i], &s, &c);
      cos_.row(t)[i] = static_cast<float>(c);
      sin_.row(t)[i] = static_cast<float>(s);
    }
  });
}

}  // namespace kvasir
