// A bar over the windows of a text, for a person who waits at a terminal.
#pragma once

#include <functional>

namespace kvasir::cli {

/// What PerplexityOptions::progress and DriftOptions::progress take; empty where stderr is no terminal.
std::function<void(int done, int all, double so_far)> window_bar();
/// Wipes the bar away.
void clear_window_bar();

}  // namespace kvasir::cli
