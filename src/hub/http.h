// HTTP requests to the hub, several at once on one thread: redirects, the token, and what a failure means. fetch.h
// decides which bytes of a file to request when.
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

/// The scheme, host and port of a URL.
struct Origin {
  std::string scheme, host, port;
  bool operator==(const Origin&) const = default;
  /// Whether the host is this machine's loopback address.
  bool loopback() const;
};

/// Errors: not an http or https URL, or a URL that contains a user name. `where` is the subject of errors.
Result<Origin> origin_of(const CurlLibrary& curl, const std::string& url, const std::string& where);

/// Percent-encodes the parts between slashes: "a b/c" becomes "a%20b/c".
std::string url_path(std::string_view path);

/// The URL as errors show it: without the query, which is long and may contain a key to the file.
std::string shown_url(const std::string& url);

/// Status and headers of an answer.
struct Answer {
  long status = 0;
  std::string url;  ///< the URL that answered, after redirects
  /// By name in lower case: the headers of the last answer, and X-Linked-... and X-Repo-... of the hub's own redirects.
  std::map<std::string, std::string> headers;
  std::string header(const std::string& name) const;
};

/// Why a request failed.
struct Failure {
  Error error;
  bool again = false;                   ///< the same request may succeed later
  std::optional<double> after_seconds;  ///< the wait that the server asked for
};

/// Decides whether and when a failed request is retried.
class Patience {
 public:
  /// Returns the seconds to wait before the next try; null to give up.
  std::optional<double> wait_after(const Failure& failure);
  /// Resets the count of failures, since data has arrived.
  void progress() { failures_ = 0; }

 private:
  int failures_ = 0;
};

struct Connection {
  std::string endpoint;  ///< such as "https://huggingface.co"; Client removes slashes at the end
  std::string token;     ///< sent to the endpoint only; empty for none
  double timeout_s = 30;
};

/// One GET or HEAD that follows redirects. Its address must not change while it runs.
class Exchange {
 public:
  std::string url;
  std::optional<std::pair<uint64_t, uint64_t>> range;  ///< bytes [first, second)
  bool head_only = false;
  /// True while the exchange has visited the hub only; otherwise the token is not sent. An exchange that starts at the
  /// final URL of another one must copy its value.
  bool trusted = true;
  /// For a good answer (2xx), on_head is called once before the first byte and on_bytes with each piece of the body. An
  /// error returned by either ends the exchange.
  std::function<Result<void>(const Answer&)> on_head;
  std::function<Result<void>(std::string_view)> on_bytes;

  /// After the end: null on success, else why the exchange failed.
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
  bool take(Result<void> result);  ///< returns whether `result` is good; keeps the first error in stopped_
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
  /// Errors: libcurl cannot be loaded, the endpoint is not a URL, or the token has a forbidden character.
  static Result<std::unique_ptr<Client>> open(const Connection& connection);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Starts an exchange. Requires: the exchange lives until it has ended, and the client outlives the exchange. Errors:
  /// an invalid URL, or no memory.
  Result<void> start(Exchange& exchange);
  /// Runs the started exchanges until one ends, and returns it; null if none ends within `seconds` (at most 1).
  Exchange* wait(double seconds);
  /// Aborts an exchange.
  void stop(Exchange& exchange);

  /// Makes one request, with retries, and returns its body of at most `most` bytes. Fills `*answer` if given. Errors:
  /// those of the last try, or a longer body.
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
  std::string authorities_;  // certificate file that replaces libcurl's default; empty for none
  bool answered_ = false;    // a server has answered before, so failed connections are retried
  Exchange* ended_ = nullptr;
};

}  // namespace kvasir::hub
