// One server connection: reads requests, passes them to the handler and writes the answers, one after the other. Owns
// the socket and its deadlines. message.h formats the text of HTTP; http_server.cc listens.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include "serve/http/exchange.h"
#include "serve/http/http_server.h"
#include "serve/http/message.h"

namespace kvasir::serve {

/// The data that all connections of a server share.
struct ConnectionContext {
  HttpLimits limits;
  HttpHandler handler;
  HttpRefusal refusal;
};

/// Converts seconds, clamped to 0..1e9 (over 30 years), since a larger span would overflow the clock.
std::chrono::nanoseconds to_duration(double seconds);

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, const ConnectionContext& context);
  ~Connection();

  /// Serves until the connection has ended.
  boost::asio::awaitable<void> serve();
  /// Ends the connection after the current answer; at once if no request is pending.
  void drain();
  /// Ends the connection now. A pending request sees its client as gone.
  void close();

 private:
  struct Parser;
  using Buffers = std::array<boost::asio::const_buffer, 3>;
  template <class T>
  using Task = boost::asio::awaitable<T>;
  /// status 0: success. Negative: the connection ends without an answer. Positive: it ends after a refusal with this
  /// HTTP status and `what` as its reason.
  struct Verdict {
    int status = 0;
    std::string what = {};
  };

  // Reading.
  Task<bool> arrival(bool first);
  Task<bool> take_request();
  Task<Verdict> read_request(HttpRequest& request);
  Task<Verdict> read_head(Parser& parser);
  Task<Verdict> read_body(Parser& parser);
  Task<Verdict> receive();
  Verdict understand(const Parser& parser, HttpRequest& request);

  // Answering.
  Task<Verdict> give_to_handler(HttpRequest request);
  Task<bool> write_answer(const HttpAnswer& answer);
  Task<bool> write_stream(Turn& turn);
  Task<bool> write(const Buffers& buffers);
  Task<void> linger();
  std::string head_of(const HttpAnswer& answer, bool stream);

  // Waiting.
  void expires(double seconds);
  void never_expires();
  void ring();
  Task<void> rung();
  void watch();
  void look();

  boost::asio::ip::tcp::socket socket_;
  const ConnectionContext& context_;
  boost::beast::flat_buffer buffer_;  ///< received bytes that are not parsed yet; holds no memory while idle
  boost::asio::steady_timer deadline_, bell_, look_again_;
  std::shared_ptr<Turn> turn_;  ///< of the request that the handler has
  std::string peer_;
  Framing framing_;
  unsigned deadline_number_ = 0;
  bool head_only_ = false;  ///< the method is HEAD
  bool late_ = false;       ///< the deadline passed
  bool rung_ = false;
  bool idle_ = false;  ///< between two requests
  bool draining_ = false, closed_ = false;
};

}  // namespace kvasir::serve
