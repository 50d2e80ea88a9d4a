// Writes NumPy's .npy files (format version 1.0).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include <kvasir/result.h>

namespace kvasir {

/// Writes row-major little-endian float32; `path` appears complete or not at all. Errors: the product of `shape` is not
/// data.size(), or the file cannot be written.
Result<void> write_npy_f32(const std::filesystem::path& path, std::span<const float> data, std::vector<int64_t> shape);

}  // namespace kvasir
