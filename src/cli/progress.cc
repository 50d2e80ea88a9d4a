// The bar is one line on stderr that is overwritten.
#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "base/clock.h"
#include "cli/printable.h"

namespace kvasir::cli {
namespace {

bool at_terminal() { return isatty(STDERR_FILENO) != 0; }

// Clears the line and draws "[########------------]".
std::string bar(double share) {
  constexpr size_t kWidth = 30;
  const auto full = static_cast<size_t>(kWidth * share);
  return "\r\033[K[" + std::string(full, '#') + std::string(kWidth - full, '-') + "]";
}

// "[########------------] 12/30 windows, perplexity 5.9321, 18 s left"
void show(int done, int all, double so_far, double seconds) {
  fmt::print(stderr, "{} {}/{} windows, perplexity {:.4f}, {:.0f} s left", bar(1.0 * done / all), done, all, so_far,
             seconds / done * (all - done));
}

// The speed counts only bytes that arrived since the bar began.
class ByteBar {
 public:
  void show(uint64_t done, uint64_t all, const std::string& file) {
    constexpr double kMiB = 1024.0 * 1024.0, kSecondsBetween = 0.1;
    const double now = now_seconds();
    if (start_ == 0) {
      start_ = now;
      first_ = done;
    }
    if (now - last_ < kSecondsBetween && done < all) return;
    last_ = now;
    const double speed = static_cast<double>(done - std::min(done, first_)) / std::max(1e-3, now - start_);
    const std::string left = speed > 0 ? fmt::format(", {:.0f} s left", static_cast<double>(all - done) / speed) : "";
    fmt::print(stderr, "{} {:.1f}/{:.1f} MiB, {}, {:.1f} MiB/s{}",
               bar(all == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(all)),
               static_cast<double>(done) / kMiB, static_cast<double>(all) / kMiB, printable(cut_utf8(file, 48)),
               speed / kMiB, left);
  }

 private:
  double start_ = 0, last_ = 0;
  uint64_t first_ = 0;
};

}  // namespace

std::function<void(int done, int all, double so_far)> window_bar() {
  if (!at_terminal()) return {};
  return [start = now_seconds()](int done, int all, double so_far) { show(done, all, so_far, now_seconds() - start); };
}

std::function<void(uint64_t done, uint64_t all, const std::string& file)> byte_bar() {
  if (!at_terminal()) return {};
  return [bar = ByteBar()](uint64_t done, uint64_t all, const std::string& file) mutable { bar.show(done, all, file); };
}

void clear_bar() {
  if (at_terminal()) fmt::print(stderr, "\r\033[K");
}

}  // namespace kvasir::cli
