// Which table of kernels a CPU target has. Chooses no target (base/system.h).
#pragma once

#include "base/system.h"
#include "math/kernels.h"

namespace kvasir {

/// Requires: a target of supported_targets().
const Kernels& kernels_for(CpuTarget target);

}  // namespace kvasir
