// Plots: CSV, and SVG drawn by gnuplot. What a benchmark plots is here; other commands bring their own script.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <kvasir/bench.h>

namespace kvasir::cli {

/// Measures the step series of the layouts and writes cached and layouts, CSV and SVG, and kv_bytes.svg into
/// `folder`. Errors: a folder that cannot be written, gnuplot absent or failing.
Result<void> write_plots(const std::shared_ptr<const Model>& model, const BenchOptions& options, int threads,
                         const std::string& folder);

/// Writes prefix.csv and prefix.svg: the first token's time by what was known. Errors: those of write_plots().
Result<void> write_prefix_plot(const Model& model, const PrefixReport& report, const std::string& folder);

/// Title and column names as comments, then the rows. Errors: a file that cannot be written.
Result<void> write_csv(const std::filesystem::path& path, const std::string& title, const std::string& columns,
                       const std::vector<std::string>& rows);

/// Runs a script in `folder`, with the look of all our plots. Its data are separated by commas.
/// Errors: gnuplot absent or failing.
Result<void> gnuplot(const std::filesystem::path& folder, const std::string& script);

/// A string of gnuplot's in which no character is special.
std::string quoted(const std::string& text);

}  // namespace kvasir::cli
