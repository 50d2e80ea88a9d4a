// The report of a replayed trace, as a table and as JSON: bench --serve.
#pragma once

#include <kvasir/bench.h>

#include "cli/json.h"

namespace kvasir::cli {

Json serve_json(const ServeReport& report);
void print_serve(const ServeReport& report);

}  // namespace kvasir::cli
