// The HTTP/1.1 client: many calls at once on the thread that calls run(), each on a connection of its own, whose answer
// is told as it comes. It knows no JSON and no events.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kvasir/result.h>

namespace kvasir::serve {

struct HttpUrl {
  std::string host;  ///< of an IPv6 address without its brackets
  uint16_t port = 80;
  std::string path = {};  ///< "" or "/prefix"
};

/// "http://HOST[:PORT][/PREFIX]". Errors: anything else (bad_argument); https (unsupported).
Result<HttpUrl> parse_url(const std::string& url);

struct HttpClientLimits {
  double connect_s = 10;
  double silence_s = 600;  ///< without a byte from the server
  size_t header_bytes = 64 << 10;
};

struct HttpCall {
  std::string method = "GET", path = "/";
  std::string body = {};  ///< JSON
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// Called in the client's loop with the status, the body in pieces, and once with the end. Nothing is called after the
/// end or after cancel().
struct HttpListener {
  std::function<void(int status)> on_head = {};
  std::function<void(std::string_view bytes)> on_body = {};
  /// Errors: no connection, one that breaks (io); what is no HTTP (damaged); a limit of time (timed_out).
  std::function<void(Result<void> whole)> on_end = {};
};

class HttpClient {
 public:
  /// Errors: a host without an address (bad_argument).
  static Result<std::unique_ptr<HttpClient>> create(const HttpUrl& url, const HttpClientLimits& limits = {});
  virtual ~HttpClient() = default;

  /// The path is the call's alone, without the prefix of the URL.
  virtual uint64_t send(HttpCall call, HttpListener listener) = 0;
  /// Closes the call's connection.
  virtual void cancel(uint64_t call) = 0;
  /// `task` in the client's loop, in `seconds`.
  virtual void after(double seconds, std::function<void()> task) = 0;
  /// Until nothing is under way, or stop().
  virtual void run() = 0;
  virtual void stop() = 0;
};

}  // namespace kvasir::serve
