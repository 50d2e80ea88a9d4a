// Plots: CSV, and SVG drawn by gnuplot. The plots of kvasir bench are here; other commands have their own scripts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <kvasir/bench.h>

namespace kvasir::cli {

/// Measures the step series of the layouts and writes cached.csv and .svg, layouts.csv and .svg, and kv_bytes.svg into
/// `folder`. Errors: a folder that cannot be written, gnuplot not installed or failing.
Result<void> write_plots(const std::shared_ptr<const Model>& model, const BenchOptions& options, int threads,
                         const std::string& folder);

/// Writes prefix.csv and prefix.svg: the time to first token by what could be reused. Errors: those of write_plots().
Result<void> write_prefix_plot(const Model& model, const PrefixReport& report, const std::string& folder);

/// Writes title and column names as comments, then the rows. Errors: a file that cannot be written.
Result<void> write_csv(const std::filesystem::path& path, const std::string& title, const std::string& columns,
                       const std::vector<std::string>& rows);

/// Runs a gnuplot script in `folder`, with the style of all our plots. Data files are separated by commas. Errors:
/// gnuplot not installed or failing.
Result<void> gnuplot(const std::filesystem::path& folder, const std::string& script);

/// A gnuplot string literal in which no character is special.
std::string quoted(const std::string& text);

}  // namespace kvasir::cli
