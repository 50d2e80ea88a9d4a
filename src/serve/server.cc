// Startup, signals and shutdown.
#include "serve/server.h"

#include <utility>

namespace kvasir::serve {

namespace {

// Waits until finished answers are written. HttpLimits::write_s limits the time for clients that do not read.
void stop_when_written(HttpServer& server) {
  if (server.connections() == 0) return server.stop();
  server.after(0.01, [&server] { stop_when_written(server); });
}

}  // namespace

Result<void> serve(ServerOptions options) {
  // Tasks that the service posts to the server need both, so the server is created first and destroyed last.
  Service* handler = nullptr;
  KVASIR_TRY(const auto server,
             HttpServer::listen(
                 options.http, [&](const std::shared_ptr<Exchange>& e) { handler->handle(e); }, refusal));
  Service service(std::move(options.service));
  handler = &service;
  KVASIR_CHECK(service.open(*server));
  int signals = 0;
  server->on_signal([&](int) {
    if (++signals > 1) return server->stop();
    service.drain(options.drain_s, [&] {
      server->drain();
      stop_when_written(*server);
    });
  });
  if (options.on_ready) options.on_ready(server->port(), service.first_model(), service.first_ctx());
  server->run();
  return {};
}

Result<void> check(const ServerOptions& options) {
  KVASIR_TRY(const auto server, HttpServer::listen(
                                    options.http, [](const auto&) {}, refusal));
  Service service(options.service);
  return service.open(*server);
}

}  // namespace kvasir::serve
