// Versions of the library and of its numbers, and the mark of what the shared library exports.
#pragma once

/// Public classes and functions carry it; all else stays inside the shared library.
#define KVASIR_API __attribute__((visibility("default")))

namespace kvasir {

/// The version of these headers. While the major version is 0, a change of the minor version may break programs.
inline constexpr int kVersionMajor = 0, kVersionMinor = 1, kVersionPatch = 0;
inline constexpr const char* kVersion = "0.1.0";

/// Changes with every change of any computed bit (golden receipts break the build otherwise). It is part of every
/// receipt, snapshot and cache key.
inline constexpr int kNumericsVersion = 3;

}  // namespace kvasir
