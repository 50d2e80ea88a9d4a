// Versions of the library and of its arithmetic, and the macro that exports symbols from the shared library.
#pragma once

/// Marks public classes and functions; the shared library exports nothing else.
#define KVASIR_API __attribute__((visibility("default")))

namespace kvasir {

/// The version of these headers. While the major version is 0, a change of the minor version may break programs.
inline constexpr int kVersionMajor = 0, kVersionMinor = 2, kVersionPatch = 0;
inline constexpr const char* kVersion = "0.2.0";

/// Changes whenever any computed bit changes (otherwise the golden receipts' tests fail). Part of every receipt,
/// snapshot and cache key.
inline constexpr int kNumericsVersion = 3;

}  // namespace kvasir
