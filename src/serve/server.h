// Runs a service on a socket, from start to shutdown.
#pragma once

#include <functional>
#include <string>

#include "serve/service.h"

namespace kvasir::serve {

struct ServerOptions {
  HttpOptions http = {};
  ServiceOptions service = {};
  double drain_s = 30;  ///< time for running answers to end after the first SIGINT or SIGTERM
  std::function<void(uint16_t port, const Model& model, int ctx)> on_ready = {};
};

/// Serves on this thread until SIGINT or SIGTERM. The first signal drains: running answers are completed and new calls
/// refused. A second signal ends at once. Errors: the address cannot be bound, or the first model cannot be opened.
Result<void> serve(ServerOptions options);

/// Binds the address and opens the first model, then releases both. Errors: those of serve().
Result<void> check(const ServerOptions& options);

}  // namespace kvasir::serve
