// What the replay of a trace prints: bench --serve.
#pragma once

#include <kvasir/bench.h>

#include "cli/json.h"

namespace kvasir::cli {

Json serve_json(const ServeReport& report);
void print_serve(const ServeReport& report);

}  // namespace kvasir::cli
