// Requests of the hub over HTTP, several at once on one thread: redirects, the token, and what a failure means. The
// order in which the bytes of a file are asked for is fetch.h's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <kvasir/result.h>

#include "hub/curl_library.h"

namespace kvasir::hub {

/// Where a URL leads, without its path.
struct Origin {
  std::string scheme, host, port;
  bool operator==(const Origin&) const = default;
  /// The address is this machine's own.
  bool loopback() const;
};

/// Errors: no http or https URL, or one with a user's name in it. `where` is what errors speak of.
Result<Origin> origin_of(const CurlLibrary& curl, const std::string& url, const std::string& where);

/// The parts between slashes as a URL has them: "a b/c" is "a%20b/c".
std::string url_path(std::string_view path);

/// For errors: without the query, which is long and may be a key to the file.
std::string shown_url(const std::string& url);

/// The head of an answer.
struct Answer {
  long status = 0;
  std::string url;  ///< that gave it, after redirects
  /// Names in lower case: those of the last answer, and X-Linked-... and X-Repo-... of the hub's own answers before.
  std::map<std::string, std::string> headers;
  std::string header(const std::string& name) const;
};

/// Why a request came to nothing.
struct Failure {
  Error error;
  bool again = false;                   ///< the same request may succeed later
  std::optional<double> after_seconds;  ///< the server said when
};

/// How often and how late a failed request is made again.
class Patience {
 public:
  /// Seconds to wait before the next try; null: enough of it.
  std::optional<double> wait_after(const Failure& failure);
  /// Something came: the counting begins anew.
  void progress() { failures_ = 0; }

 private:
  int failures_ = 0;
};

struct Connection {
  std::string endpoint;  ///< "https://huggingface.co", without a slash at the end
  std::string token;     ///< only ever sent to the endpoint itself; empty: none
  double timeout_s = 30;
};

/// One GET or HEAD that follows redirects. Stays where it is while it runs.
class Exchange {
 public:
  std::string url;
  std::optional<std::pair<uint64_t, uint64_t>> range;  ///< first byte and the one after the last
  bool head_only = false;
  /// No other host was on the way so far: only then does the hub get the token. Whoever starts an exchange at the
  /// address where another one ended passes this on too.
  bool trusted = true;
  /// Called once before the first byte of a good answer (2xx), and then with the bytes. An error ends the exchange.
  std::function<Result<void>(const Answer&)> on_head;
  std::function<Result<void>(std::string_view)> on_bytes;

  /// After its end: null, or why it failed.
  const std::optional<Failure>& failure() const { return failure_; }
  const Answer& answer() const { return answer_; }

  Exchange() = default;
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

 private:
  friend class Client;
  static size_t take_header(char* data, size_t size, size_t count, void* exchange);
  static size_t take_bytes(char* data, size_t size, size_t count, void* exchange);
  bool take(Result<void> result);  ///< false: an error, which is kept
  bool begin_body();

  class Client* client_ = nullptr;
  CURL* easy_ = nullptr;
  curl_slist* headers_ = nullptr;
  bool added_ = false, body_begun_ = false;
  int hops_ = 0;
  size_t header_bytes_ = 0;
  Answer answer_;
  std::string refusal_;  // the first bytes of the body of an answer that is not 2xx
  std::optional<Error> stopped_;
  std::optional<Failure> failure_;
};

/// The connections to one hub.
class Client {
 public:
  /// Errors: no libcurl, an endpoint that is no URL, a token that cannot be one.
  static Result<std::unique_ptr<Client>> open(const Connection& connection);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Requires: the exchange outlives its end, and the client outlives the exchange.
  Result<void> start(Exchange& exchange);
  /// Runs what was started until one has ended or the seconds are over; then null.
  Exchange* wait(double seconds);
  /// Ends it from outside.
  void stop(Exchange& exchange);

  /// One request from start to end, again where that helps. At most `most` bytes; its answer in `*answer` if given.
  Result<std::string> get(const std::string& url, size_t most, Answer* answer = nullptr, bool head_only = false);

  const Connection& connection() const { return connection_; }

 private:
  friend class Exchange;
  Client() = default;
  Result<void> add(Exchange& exchange);
  Result<void> set_options(Exchange& exchange);
  std::optional<Failure> failure_of(const Exchange& exchange, CURLcode code) const;
  Result<bool> redirect(Exchange& exchange);
  bool sends_token(const Exchange& exchange, const Origin& origin) const;
  void end(Exchange& exchange, CURLcode code);

  const CurlLibrary* curl_ = nullptr;
  CURLM* multi_ = nullptr;
  Connection connection_;
  Origin origin_;
  std::string authorities_;  // a file of certificates in place of libcurl's own; empty: none
  bool answered_ = false;    // a server has answered: then a connection that fails is worth another try
  Exchange* ended_ = nullptr;
};

}  // namespace kvasir::hub
