// The HTTP/1.1 server: sockets, limits, times and streams. It knows no model and no JSON; what a request means is its
// handler's. Everything but post() belongs to the thread that calls run().
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
  size_t header_bytes = 16 << 10;  ///< more: 431
  size_t body_bytes = 4 << 20;     ///< more: 413, before it is read if Content-Length says so
  double header_s = 10;    ///< from the first byte of a request, or the start of a connection, to its headers' end
  double body_s = 30;      ///< from there to the body's end; more: 408
  double idle_s = 75;      ///< between two requests of a connection
  double write_s = 30;     ///< without a byte taken by the client: the connection is closed
  int connections = 1024;  ///< more wait to be accepted
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;  ///< 0: any free one
  HttpLimits limits = {};
};

struct HttpRequest {
  std::string method, path, query;             ///< of "/a/b?c=d": "/a/b" (percent-decoded) and "c=d" (as sent)
  std::map<std::string, std::string> headers;  ///< names in lower case; of several values of a name, joined by ", "
  std::string body;
  std::string peer;  ///< the client's address
};

struct HttpAnswer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< besides those that HTTP itself needs
};

/// A piece of a stream.
struct StreamPart {
  std::string bytes = {};  ///< empty: nothing now; the connection asks again after wake()
  bool last = false;
};

/// One request and its answer. A handler may keep it, and answers when it can: once, by answer() or by stream().
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  explicit Exchange(HttpRequest request) : request_(std::move(request)) {}
  virtual ~Exchange() = default;
  const HttpRequest& request() const { return request_; }

  virtual void answer(HttpAnswer answer) = 0;
  /// Sends head at once (its body is not looked at) with chunked transfer. Whenever the socket can take more, `next` is
  /// asked for what there is: a slow reader makes nobody wait, and what it has not read is the handler's to join.
  virtual void stream(HttpAnswer head, std::function<StreamPart()> next) = 0;
  /// `next` has something again. Without a stream: nothing happens.
  virtual void wake() = 0;
  /// Called once, from the server's loop, if the client is gone before its answer was written.
  virtual void on_gone(std::function<void()> gone) = 0;

 private:
  HttpRequest request_;
};

using HttpHandler = std::function<void(std::shared_ptr<Exchange> exchange)>;
/// The answer to what never became a request, and to a handler's absence: status, and what was wrong.
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
  /// `task` in the server's loop; from any thread.
  virtual void post(std::function<void()> task) = 0;
  /// `task` in the server's loop, in `seconds`.
  virtual void after(double seconds, std::function<void()> task) = 0;
  /// `task` in the server's loop at each SIGINT and SIGTERM.
  virtual void on_signal(std::function<void(int signal)> task) = 0;
  /// Listens no more, and closes connections when their answer is written: what is asked for is answered.
  virtual void drain() = 0;
  /// Ends run(). Connections are closed.
  virtual void stop() = 0;
};

}  // namespace kvasir::serve
