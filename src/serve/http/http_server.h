// The HTTP/1.1 server: sockets, limits, timeouts and streams. A handler interprets the requests; models and JSON are
// not handled here. All functions except post() belong to the thread that calls run().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kvasir/result.h>

namespace kvasir::serve {

struct HttpLimits {
  size_t header_bytes = 16 << 10;  ///< beyond: 431
  size_t body_bytes = 4 << 20;     ///< beyond: 413, without reading the body if Content-Length is too large
  double header_s = 10;    ///< from the first byte of a request, or the start of a connection, to the headers' end
  double body_s = 30;      ///< from there to the body's end; beyond: 408
  double idle_s = 75;      ///< between two requests of a connection
  double write_s = 30;     ///< the connection is closed if the client takes no byte for this time
  int connections = 1024;  ///< open at once; further clients wait to be accepted
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;  ///< 0 for any free port
  HttpLimits limits = {};
};

struct HttpRequest {
  std::string method, path, query;             ///< "/a/b?c=d": path "/a/b" (percent-decoded), query "c=d" (as sent)
  std::map<std::string, std::string> headers;  ///< by name in lower case; repeated headers are joined by ", "
  std::string body;
  std::string peer;  ///< the client's address
};

struct HttpAnswer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< in addition to those of HTTP's framing
};

/// A piece of a stream.
struct StreamPart {
  std::string bytes = {};  ///< if empty, the connection asks again after wake()
  bool last = false;
};

/// One request and its answer. A handler may keep the exchange and answer later, once, by answer() or by stream().
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  explicit Exchange(HttpRequest request) : request_(std::move(request)) {}
  virtual ~Exchange() = default;
  const HttpRequest& request() const { return request_; }

  virtual void answer(HttpAnswer answer) = 0;
  /// Sends `head` at once, without its body, and then chunks. Calls `next` for more bytes whenever the socket can take
  /// them. So a slow reader blocks nobody, and the handler can join the pieces that it has not read yet.
  virtual void stream(HttpAnswer head, std::function<StreamPart()> next) = 0;
  /// Signals that `next` has more bytes. Does nothing without a stream.
  virtual void wake() = 0;
  /// Sets a function that the server's loop calls once if the client disconnects before its answer is written.
  virtual void on_gone(std::function<void()> gone) = 0;

 private:
  HttpRequest request_;
};

using HttpHandler = std::function<void(std::shared_ptr<Exchange> exchange)>;
/// Makes the answer to an invalid request, or when the handler drops an exchange. `what`: the reason.
using HttpRefusal = std::function<HttpAnswer(int status, const std::string& what)>;

class HttpServer {
 public:
  /// Binds and listens. Errors: an address that cannot be parsed, resolved or bound (bad_argument, io), with its name.
  static Result<std::unique_ptr<HttpServer>> listen(const HttpOptions& options, HttpHandler handler,
                                                    HttpRefusal refusal);
  virtual ~HttpServer() = default;

  virtual uint16_t port() const = 0;
  virtual int connections() const = 0;
  /// Serves on this thread until stop().
  virtual void run() = 0;
  /// Runs `task` in the server's loop. May be called from any thread.
  virtual void post(std::function<void()> task) = 0;
  /// Runs `task` in the server's loop after `seconds`.
  virtual void after(double seconds, std::function<void()> task) = 0;
  /// Runs `task` in the server's loop at each SIGINT and SIGTERM.
  virtual void on_signal(std::function<void(int signal)> task) = 0;
  /// Stops listening, and closes each connection once its pending request is answered.
  virtual void drain() = 0;
  /// Ends run() and closes all connections.
  virtual void stop() = 0;
};

}  // namespace kvasir::serve
