// Progress bars over the windows of a text or the bytes of files, for a person at a terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace kvasir::cli {

/// For PerplexityOptions::progress and DriftOptions::progress; empty if stderr is not a terminal.
std::function<void(int done, int all, double so_far)> window_bar();
/// A bar over downloaded bytes, with the name of the current file; empty if stderr is not a terminal.
std::function<void(uint64_t done, uint64_t all, const std::string& file)> byte_bar();
/// Erases the bar.
void clear_bar();

}  // namespace kvasir::cli
