// The kernel table of a CPU target. base/system.h chooses the target.
#pragma once

#include "base/system.h"
#include "math/kernels.h"

namespace kvasir {

/// Requires: a target of supported_targets().
const Kernels& kernels_for(CpuTarget target);

}  // namespace kvasir
