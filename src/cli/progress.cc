// The bar is one line on stderr, written over itself.
#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "base/clock.h"

namespace kvasir::cli {
namespace {

bool at_terminal() { return isatty(STDERR_FILENO) != 0; }

// "[########------------] 12/30 windows, perplexity 5.9321, 18 s left"
void show(int done, int all, double so_far, double seconds) {
  constexpr size_t kWidth = 30;
  const size_t full = kWidth * static_cast<size_t>(done) / static_cast<size_t>(all);
  fmt::print(stderr, "\r\033[K[{}{}] {}/{} windows, perplexity {:.4f}, {:.0f} s left", std::string(full, '#'),
             std::string(kWidth - full, '-'), done, all, so_far, seconds / done * (all - done));
}

}  // namespace

std::function<void(int done, int all, double so_far)> window_bar() {
  if (!at_terminal()) return {};
  return [start = now_seconds()](int done, int all, double so_far) { show(done, all, so_far, now_seconds() - start); };
}

void clear_window_bar() {
  if (at_terminal()) fmt::print(stderr, "\r\033[K");
}

}  // namespace kvasir::cli
