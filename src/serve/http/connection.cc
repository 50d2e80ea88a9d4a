// The coroutines of a connection on the server's one thread: waiting, answering, closing. connection_read.cc reads
// requests.
#include "serve/http/connection.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <tuple>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/status.hpp>

namespace kvasir::serve {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kWriteBytes = 256 << 10;
/// Time that an ending connection waits for the client to read the last answer and close.
constexpr double kLingerSeconds = 2;

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

}  // namespace

std::chrono::nanoseconds to_duration(double seconds) {
  const std::chrono::duration<double> span(std::clamp(seconds, 0.0, 1e9));
  return std::chrono::duration_cast<std::chrono::nanoseconds>(span);
}

Connection::Connection(tcp::socket socket, const ConnectionContext& context)
    : socket_(std::move(socket)),
      context_(context),
      deadline_(socket_.get_executor()),
      bell_(socket_.get_executor()),
      look_again_(socket_.get_executor()) {
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  error_code error;
  if (const auto peer = socket_.remote_endpoint(error); !error) peer_ = peer.address().to_string();
}

Connection::~Connection() { close(); }

void Connection::close() {
  if (closed_) return;
  closed_ = true;
  error_code ignored;
  socket_.close(ignored);
  never_expires();
  look_again_.cancel();
  ring();
  if (const auto turn = std::exchange(turn_, nullptr)) turn->end(true);
}

void Connection::drain() {
  draining_ = true;
  error_code ignored;
  if (idle_) socket_.cancel(ignored);
}

asio::awaitable<void> Connection::serve() {
  const auto self = shared_from_this();
  for (bool first = true;; first = false) {
    const bool arrived = co_await arrival(first);
    if (!arrived) break;
    const bool goes_on = co_await take_request();
    if (!goes_on) break;
  }
  close();
}

/// Waits for a request's first byte, without a buffer. Returns false if the connection ends.
asio::awaitable<bool> Connection::arrival(bool first) {
  if (buffer_.size() == 0) {
    buffer_ = {};
    expires(first ? context_.limits.header_s : context_.limits.idle_s);
    idle_ = true;
    error_code error;
    if (!draining_) std::tie(error) = co_await socket_.async_wait(tcp::socket::wait_read, kAsTuple);
    idle_ = false;
    if (closed_ || late_) co_return false;
    // A request may have arrived just before drain() was called; it is still answered.
    if (draining_ && socket_.available(error) == 0) co_return false;
    if (error && !draining_) co_return false;
  }
  if (!first) expires(context_.limits.header_s);
  co_return true;
}

/// Reads and answers one request. Returns false if the connection ends.
asio::awaitable<bool> Connection::take_request() {
  HttpRequest request;
  framing_ = {};
  head_only_ = false;
  Verdict verdict = co_await read_request(request);
  never_expires();
  if (verdict.status == 0) verdict = co_await give_to_handler(std::move(request));
  if (closed_ || verdict.status < 0) co_return false;
  if (verdict.status > 0) {
    framing_.keep_alive = false;
    const HttpAnswer refusal = context_.refusal(verdict.status, verdict.what);
    const bool written = co_await write_answer(refusal);
    if (!written) co_return false;
  }
  error_code ignored;
  // Closing a socket with unread bytes sends a reset, by which the client might lose the answer.
  const bool unread = verdict.status > 0 || buffer_.size() > 0 || socket_.available(ignored) > 0;
  if (!framing_.keep_alive && unread) co_await linger();
  co_return framing_.keep_alive;
}

asio::awaitable<Connection::Verdict> Connection::give_to_handler(HttpRequest request) {
  const auto turn = turn_ = std::make_shared<Turn>();
  turn->notify = [this] { ring(); };
  rung_ = false;
  context_.handler(make_exchange(turn, std::move(request)));
  const auto is_answered = [&] { return closed_ || turn->answer || turn->dropped; };
  if (!is_answered() || turn->next) watch();
  while (!is_answered()) co_await rung();
  if (closed_) co_return Verdict{-1};
  Verdict verdict;
  if (!turn->answer) {
    verdict = {500, "the handler gave no answer"};
  } else {
    bool written = false;
    if (turn->next) {
      written = co_await write_stream(*turn);
    } else {
      written = co_await write_answer(*turn->answer);
    }
    if (!written) verdict.status = -1;
  }
  error_code ignored;
  socket_.cancel(ignored);  // ends watch()
  look_again_.cancel();
  turn_ = nullptr;
  turn->end(verdict.status < 0);
  co_return verdict;
}

std::string Connection::head_of(const HttpAnswer& answer, bool stream) {
  if (draining_) framing_.keep_alive = false;
  framing_.stream = stream;
  if (stream && framing_.http10) framing_.keep_alive = false;
  return answer_head(answer, http::obsolete_reason(http::int_to_status(static_cast<unsigned>(answer.status))),
                     framing_);
}

asio::awaitable<bool> Connection::write_answer(const HttpAnswer& answer) {
  const std::string head = head_of(answer, false);
  Buffers buffers = {asio::buffer(head)};
  if (!head_only_ && has_body(answer.status)) buffers[1] = asio::buffer(answer.body);
  const bool written = co_await write(buffers);
  co_return written;
}

asio::awaitable<bool> Connection::write_stream(Turn& turn) {
  const std::string head = head_of(*turn.answer, true);
  const Buffers start = {asio::buffer(head)};
  bool written = co_await write(start);
  for (bool last = head_only_ || !has_body(turn.answer->status); written && !last;) {
    rung_ = false;
    const StreamPart part = turn.next();
    last = part.last;
    if (part.bytes.empty() && !last) {
      co_await rung();
      if (closed_) co_return false;
      continue;
    }
    // An empty chunk would end the stream.
    const bool chunked = !framing_.http10;
    const std::string before = chunked && !part.bytes.empty() ? chunk_head(part.bytes.size()) : "";
    std::string after = before.empty() ? "" : "\r\n";
    if (chunked && last) after += "0\r\n\r\n";
    const Buffers buffers = {asio::buffer(before), asio::buffer(part.bytes), asio::buffer(after)};
    written = co_await write(buffers);
  }
  co_return written;
}

asio::awaitable<bool> Connection::write(const Buffers& buffers) {
  const auto progress = [this](error_code error, size_t) {
    if (error || closed_) return size_t{0};
    expires(context_.limits.write_s);
    return kWriteBytes;
  };
  const auto [error, count] = co_await asio::async_write(socket_, buffers, progress, kAsTuple);
  never_expires();
  co_return !error && !closed_ && count == asio::buffer_size(buffers);
}

asio::awaitable<void> Connection::linger() {
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  expires(kLingerSeconds);
  for (Verdict verdict; verdict.status == 0;) {
    buffer_.clear();
    verdict = co_await receive();
  }
}

void Connection::expires(double seconds) {
  late_ = false;
  deadline_.expires_after(to_duration(seconds));
  deadline_.async_wait([this, self = shared_from_this(), number = ++deadline_number_](error_code error) {
    // cancel() does not reach a handler that is already queued in the loop; the number shows that it is outdated.
    if (error || number != deadline_number_) return;
    late_ = true;
    error_code ignored;
    socket_.cancel(ignored);
  });
}

void Connection::never_expires() {
  ++deadline_number_;
  deadline_.cancel();
}

void Connection::ring() {
  rung_ = true;
  bell_.cancel();
}

/// Waits for the next ring(). Always yields to the loop once.
asio::awaitable<void> Connection::rung() {
  if (rung_) {
    co_await asio::post(socket_.get_executor(), asio::use_awaitable);
  } else {
    bell_.expires_at(asio::steady_timer::time_point::max());
    co_await bell_.async_wait(kAsTuple);
  }
  rung_ = false;
}

/// Closes the connection if the client goes before the turn ends.
void Connection::watch() {
  socket_.async_wait(tcp::socket::wait_read, [this, self = shared_from_this(), turn = turn_](error_code error) {
    if (!error && turn->notify) look();
  });
}

void Connection::look() {
  pollfd socket = {socket_.native_handle(), POLLIN | POLLRDHUP, 0};
  const int ready = ::poll(&socket, 1, 0);
  if (ready > 0 && (socket.revents & ~POLLIN) != 0) return close();
  if (ready <= 0) return watch();
  // The next request has arrived, so waiting for bytes would return at once again and again. Check once per second.
  look_again_.expires_after(std::chrono::seconds(1));
  look_again_.async_wait([this, self = shared_from_this(), turn = turn_](error_code error) {
    if (!error && turn->notify) look();
  });
}

}  // namespace kvasir::serve
