// One monotonic clock for everything that Kvasir times.
#pragma once

#include <chrono>

namespace kvasir {

/// Seconds on a monotonic clock.
inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace kvasir
