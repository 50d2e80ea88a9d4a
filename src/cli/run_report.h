// How a generation is told.
#pragma once

#include <kvasir/generate.h>

#include "cli/json.h"

namespace kvasir::cli {

/// On stderr.
void print_stats(const Generation& g, const SamplingParams& p);
Json run_json(const Generation& g, const SamplingParams& p);

}  // namespace kvasir::cli
