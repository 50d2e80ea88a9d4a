// The server: a service on a socket, from its start to its end.
#pragma once

#include <functional>
#include <string>

#include "serve/service.h"

namespace kvasir::serve {

struct ServerOptions {
  HttpOptions http = {};
  ServiceOptions service = {};
  double drain_s = 30;  ///< what a first SIGINT or SIGTERM gives to answers under way
  std::function<void(uint16_t port, const Model& model, int ctx)> on_ready = {};
};

/// Serves on this thread until a signal has ended it. The first one drains: answers under way are completed, nothing
/// more is taken; a second one ends at once. Errors: an address, a model.
Result<void> serve(ServerOptions options);

/// Binds the address and opens the first model, and lets both go. Errors: those of serve().
Result<void> check(const ServerOptions& options);

}  // namespace kvasir::serve
