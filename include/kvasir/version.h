// Versions that results depend on.
#pragma once

namespace kvasir {

/// Changes with every change of any computed bit (golden receipts break the build otherwise). It is part of every
/// receipt, snapshot and cache key.
inline constexpr int kNumericsVersion = 3;

}  // namespace kvasir
