// The plots that docs/kv-cache.md explains, and the CSV and gnuplot output of any plot.
#include "cli/plot.h"

#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "base/files.h"
#include "cli/cli.h"
#include "cli/printable.h"

namespace kvasir::cli {
namespace fs = std::filesystem;

namespace {

constexpr const char* kUncached = "none";
constexpr const char* kLayouts[] = {"concat", "dense", "grow"};

Result<void> write_series(const fs::path& path, const std::string& title, const std::vector<StepSeries>& all) {
  std::string columns = "position";
  for (const StepSeries& s : all) columns += fmt::format(",{0}_ms,{0}_total_ms,{0}_kv_bytes", s.layout);
  std::vector<double> totals(all.size());
  std::vector<std::string> rows;
  for (size_t i = 0; i < all[0].ms.size(); ++i) {
    std::string row = std::to_string(i + 1);
    for (size_t s = 0; s < all.size(); ++s)
      row += fmt::format(",{:.6f},{:.4f},{}", all[s].ms[i], totals[s] += all[s].ms[i], all[s].kv_bytes[i]);
    rows.push_back(std::move(row));
  }
  return write_csv(path, title, columns, rows);
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
      "set output '{}'\nset multiplot layout 1,2 title {}\nset xlabel 'position'\n"
      "set ylabel 'ms for this token'\n{}set ylabel 'seconds so far'\n{}unset multiplot\n",
      svg, quoted(title), curves(csv, all, 0, ""), curves(csv, all, 1, "/1000"));
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

Result<void> write_csv(const fs::path& path, const std::string& title, const std::string& columns,
                       const std::vector<std::string>& rows) {
  std::string text = fmt::format("# {}\n# {}\n", printable(title), columns);
  for (const std::string& row : rows) text += row + '\n';
  return write_file_atomically(path, std::as_bytes(std::span(text)));
}

Result<void> gnuplot(const fs::path& folder, const std::string& script) {
  // After an error gnuplot continues and draws on stdout what it could not write, hence /dev/null. Input that it leaves
  // unread would break the pipe, hence the loop.
  constexpr const char* kCommand = "gnuplot >/dev/null 2>&1; status=$?; while read -r line; do :; done; exit $status";
  constexpr int kNotFound = 127;
  std::FILE* pipe = popen(kCommand, "w");
  if (pipe == nullptr) return fail(Error::io, "no shell to start it", "gnuplot", "fewer processes");
  const std::string all = fmt::format(
      "cd {}\nset datafile separator ','\nset terminal svg noenhanced size 900,420 font 'sans,13' "
      "background '#ffffff'\nset grid lt 1 lc rgb '#dddddd'\nset key left top\nset border 3\n"
      "set tics nomirror\n{}",
      quoted(folder.string()), script);
  std::fwrite(all.data(), 1, all.size(), pipe);
  const int status = pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound)
    return fail(Error::not_found, "not installed", "gnuplot", "apt-get install gnuplot-nox");
  if (status != 0)
    return fail(Error::io, "gnuplot could not draw here", folder.string(), "a folder that can be written");
  return {};
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : printable(text)) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

namespace {

Result<fs::path> made_folder(const std::string& name) {
  std::error_code ec;
  fs::create_directories(name, ec);
  if (ec)
    return fail(kind_of_errno(ec.value()), "the folder cannot be made: " + ec.message(), name,
                "a folder that can be written");
  return fs::path(name);
}

}  // namespace

Result<void> write_prefix_plot(const Model& model, const PrefixReport& r, const std::string& folder_name) {
  KVASIR_TRY(const fs::path folder, made_folder(folder_name));
  const std::string title = fmt::format("First token after {} known tokens and {} new ones: {} ({})", r.shared,
                                        r.suffix, model.info().name, provenance());
  KVASIR_CHECK(write_csv(
      folder / "prefix.csv", title, "what was known,ms",
      {fmt::format("nothing,{:.3f}", r.ttft_cold_ms), fmt::format("a snapshot,{:.3f}", r.ttft_snapshot_ms),
       fmt::format("a kept prefix,{:.3f}", r.ttft_hit_ms), fmt::format("the session itself,{:.3f}", r.suffix_ms)}));
  return gnuplot(folder, fmt::format("set output 'prefix.svg'\nset title {}\nset logscale y\nset ylabel 'ms'\n"
                                     "set style fill solid 0.7\nset boxwidth 0.6\nunset key\nset yrange [0.9:*]\n"
                                     "plot 'prefix.csv' using 0:2:xtic(1) with boxes, "
                                     "'' using 0:2:(sprintf('%.1f ms', $2)) with labels offset 0,0.7\n",
                                     quoted(title)));
}

Result<void> write_plots(const std::shared_ptr<const Model>& model, const BenchOptions& o, int threads,
                         const std::string& folder_name) {
  KVASIR_TRY(const fs::path folder, made_folder(folder_name));
  const int ctx = o.session.ctx > 0 ? o.session.ctx : model->info().max_ctx;
  const std::string where = fmt::format("{} ({} threads; {})", model->info().name, threads, provenance());

  KVASIR_TRY(const auto cached, measure(model, o, threads, {kUncached, "grow"}, std::min(ctx, 512), 1));
  KVASIR_CHECK(write_series(folder / "cached.csv", "cached against uncached: " + where, cached));
  KVASIR_CHECK(gnuplot(
      folder, two_panels("cached.svg", "With a KV cache (grow) and without (none): " + where, "cached.csv", cached)));

  KVASIR_TRY(const auto layouts, measure(model, o, threads, {std::begin(kLayouts), std::end(kLayouts)}, ctx, 5));
  KVASIR_CHECK(write_series(folder / "layouts.csv", "layouts: " + where, layouts));
  KVASIR_CHECK(gnuplot(folder, two_panels("layouts.svg",
                                          fmt::format("concat copies {} positions in {} steps: {}",
                                                      with_commas(layouts[0].copied_rows), ctx, where),
                                          "layouts.csv", layouts)));
  return gnuplot(folder, fmt::format("set output 'kv_bytes.svg'\nset key right bottom\nset title {}\n"
                                     "set xlabel 'position'\nset ylabel 'KiB'\n{}",
                                     quoted("KV bytes held by one sequence: " + where),
                                     curves("layouts.csv", layouts, 2, "/1024")));
}

}  // namespace kvasir::cli
