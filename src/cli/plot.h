// Plots of a benchmark: CSV beside SVG, drawn by gnuplot.
#pragma once

#include <string>
#include <vector>

#include <kvasir/bench.h>

namespace kvasir::cli {

/// Measures the step series of the layouts and writes steps.csv, cached.svg, layouts.svg and kv_bytes.svg into
/// `folder`. Errors: a folder that cannot be written, gnuplot absent or failing.
Result<void> write_plots(const std::shared_ptr<const Model>& model, const BenchOptions& options, int threads,
                         const std::string& folder);

}  // namespace kvasir::cli
