// A bar over the windows of a text or the bytes of files, for a person who waits at a terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace kvasir::cli {

/// What PerplexityOptions::progress and DriftOptions::progress take; empty where stderr is no terminal.
std::function<void(int done, int all, double so_far)> window_bar();
/// The same over bytes that come, and of what file they are.
std::function<void(uint64_t done, uint64_t all, const std::string& file)> byte_bar();
/// Wipes the bar away.
void clear_bar();

}  // namespace kvasir::cli
