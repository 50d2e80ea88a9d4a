// How a generation is told.
#pragma once

#include <nlohmann/json.hpp>

#include <kvasir/generate.h>

namespace kvasir::cli {

/// On stderr.
void print_stats(const Generation& g, const SamplingParams& p);
nlohmann::json run_json(const Generation& g, const SamplingParams& p);

}  // namespace kvasir::cli
