// NumPy's .npy files (format version 1.0), written only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include <kvasir/result.h>

namespace kvasir {

/// Row-major little-endian float32. The product of `shape` must be data.size(). All or nothing appears at `path`.
Result<void> write_npy_f32(const std::filesystem::path& path, std::span<const float> data, std::vector<int64_t> shape);

}  // namespace kvasir
