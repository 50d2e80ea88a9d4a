// The HTTP/1.1 client: many concurrent calls on the thread that calls run(), each on its own connection. Answers are
// passed to a listener as they arrive. JSON and events are not handled here.
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
  std::string host;  ///< an IPv6 address has no brackets here
  uint16_t port = 80;
  std::string path = {};  ///< "" or "/prefix"
};

/// Parses "http://HOST[:PORT][/PREFIX]". Errors: anything else (bad_argument); https (unsupported).
Result<HttpUrl> parse_url(const std::string& url);

struct HttpClientLimits {
  double connect_s = 10;
  double silence_s = 600;  ///< longest time without a byte from the server
  size_t header_bytes = 64 << 10;
};

struct HttpCall {
  std::string method = "GET", path = "/";
  std::string body = {};  ///< JSON
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// Functions that the client's loop calls: with the status, with each piece of the body, and once at the end. None is
/// called after the end or after cancel().
struct HttpListener {
  std::function<void(int status)> on_head = {};
  std::function<void(std::string_view bytes)> on_body = {};
  /// Errors: the connection fails or breaks (io); the answer is not HTTP (damaged); a time limit (timed_out).
  std::function<void(Result<void> whole)> on_end = {};
};

class HttpClient {
 public:
  /// Errors: a host without an address (bad_argument); no event loop can be created (io).
  static Result<std::unique_ptr<HttpClient>> create(const HttpUrl& url, const HttpClientLimits& limits = {});
  virtual ~HttpClient() = default;

  /// Starts a call and returns its id. The call's path must include the URL's prefix.
  virtual uint64_t send(HttpCall call, HttpListener listener) = 0;
  /// Closes the call's connection.
  virtual void cancel(uint64_t call) = 0;
  /// Runs `task` in the client's loop after `seconds`.
  virtual void after(double seconds, std::function<void()> task) = 0;
  /// Runs the loop until no call or task is pending, or until stop().
  virtual void run() = 0;
  virtual void stop() = 0;
};

}  // namespace kvasir::serve
