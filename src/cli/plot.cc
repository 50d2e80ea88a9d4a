// The plots that docs/kv-cache.md explains.
#include "cli/plot.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "cli/cli.h"

namespace kvasir::cli {
namespace fs = std::filesystem;

namespace {

constexpr const char* kUncached = "none";
constexpr const char* kLayouts[] = {"concat", "dense", "grow"};

Result<void> write_csv(const fs::path& path, const std::string& title, const std::vector<StepSeries>& all) {
  std::ofstream out(path);
  out << "# " << title << "\n# position";
  for (const StepSeries& s : all)
    out << ',' << s.layout << "_ms," << s.layout << "_total_ms," << s.layout << "_kv_bytes";
  out << '\n';
  std::vector<double> totals(all.size());
  for (size_t i = 0; i < all[0].ms.size(); ++i) {
    out << i + 1;
    for (size_t s = 0; s < all.size(); ++s)
      out << fmt::format(",{:.6f},{:.4f},{}", all[s].ms[i], totals[s] += all[s].ms[i], all[s].kv_bytes[i]);
    out << '\n';
  }
  if (!out.flush()) return fail("cannot be written", path.string(), "a folder with free space");
  return {};
}

Result<void> gnuplot(const fs::path& folder, const std::string& script) {
  std::FILE* pipe = popen("gnuplot", "w");
  if (pipe == nullptr) return fail("gnuplot cannot be started", "--plot", "apt-get install gnuplot-nox");
  const std::string all = fmt::format(
      "cd '{}'\nset datafile separator ','\nset terminal svg size 900,420 font 'sans,13' "
      "background '#ffffff'\nset grid lc rgb '#dddddd'\nset key left top\nset border 3\n"
      "set tics nomirror\n{}",
      folder.string(), script);
  std::fwrite(all.data(), 1, all.size(), pipe);
  if (pclose(pipe) != 0) return fail("gnuplot failed", folder.string(), "apt-get install gnuplot-nox");
  return {};
}

// One curve per series: column `which` (0 ms, 1 total, 2 bytes) of its three.
std::string curves(const std::string& csv, const std::vector<StepSeries>& all, int which, const char* scale) {
  std::string plot = "plot ";
  for (size_t s = 0; s < all.size(); ++s)
    plot += fmt::format("{}'{}' using 1:(${}{}) with lines lw 2 title '{}'", s == 0 ? "" : ", ", csv,
                        2 + 3 * s + static_cast<size_t>(which), scale, all[s].layout);
  return plot + "\n";
}

std::string two_panels(const std::string& svg, const std::string& title, const std::string& csv,
                       const std::vector<StepSeries>& all) {
  return fmt::format(
      "set output '{}'\nset multiplot layout 1,2 title \"{}\"\nset xlabel 'position'\n"
      "set ylabel 'ms for this token'\n{}set ylabel 'seconds so far'\n{}unset multiplot\n",
      svg, title, curves(csv, all, 0, ""), curves(csv, all, 1, "/1000"));
}

Result<std::vector<StepSeries>> measure(const std::shared_ptr<const Model>& model, const BenchOptions& o, int threads,
                                        std::vector<std::string> names, int positions, int repeats) {
  std::vector<StepSeries> all;
  for (const std::string& name : names) {
    if (o.progress) o.progress(fmt::format("{}: {} steps", name, positions));
    SessionOptions session = o.session;
    session.layout = name;
    KVASIR_TRY(StepSeries series, measure_steps(model, session, threads, positions, repeats));
    all.push_back(std::move(series));
  }
  return all;
}

}  // namespace

Result<void> write_plots(const std::shared_ptr<const Model>& model, const BenchOptions& o, int threads,
                         const std::string& folder_name) {
  const fs::path folder = folder_name;
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) return fail("the folder cannot be made: " + ec.message(), folder_name, "a folder that can be written");
  const int ctx = o.session.ctx > 0 ? o.session.ctx : model->info().max_ctx;
  const std::string where = fmt::format("{} ({} threads; {})", model->info().name, threads, provenance());

  KVASIR_TRY(const auto cached, measure(model, o, threads, {kUncached, "grow"}, std::min(ctx, 512), 1));
  KVASIR_CHECK(write_csv(folder / "cached.csv", "cached against uncached: " + where, cached));
  KVASIR_CHECK(gnuplot(
      folder, two_panels("cached.svg", "With a KV cache (grow) and without (none): " + where, "cached.csv", cached)));

  KVASIR_TRY(const auto layouts, measure(model, o, threads, {std::begin(kLayouts), std::end(kLayouts)}, ctx, 5));
  KVASIR_CHECK(write_csv(folder / "layouts.csv", "layouts: " + where, layouts));
  KVASIR_CHECK(gnuplot(folder, two_panels("layouts.svg",
                                          fmt::format("concat copies {} positions in {} steps: {}",
                                                      with_commas(layouts[0].copied_rows), ctx, where),
                                          "layouts.csv", layouts)));
  return gnuplot(
      folder,
      fmt::format("set output 'kv_bytes.svg'\nset key right bottom\nset title \"KV bytes held by one sequence: {}\"\n"
                  "set xlabel 'position'\nset ylabel 'KiB'\n{}",
                  where, curves("layouts.csv", layouts, 2, "/1024")));
}

}  // namespace kvasir::cli
