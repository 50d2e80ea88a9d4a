// Output of kvasir run: statistics as text, results as JSON.
#pragma once

#include <kvasir/generate.h>

#include "cli/json.h"

namespace kvasir::cli {

/// Prints the statistics on stderr.
void print_stats(const Generation& g, const SamplingParams& p);
Json run_json(const Generation& g, const SamplingParams& p);

}  // namespace kvasir::cli
