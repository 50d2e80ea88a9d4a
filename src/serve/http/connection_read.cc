// Reads a request with Beast's parser, within the limits.
#include <cstdint>
#include <limits>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "serve/http/connection.h"

namespace kvasir::serve {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr size_t kReadBytes = 16 << 10;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

/// Skips line breaks before a request; some clients send one after a body.
void skip_line_ends(boost::beast::flat_buffer& buffer) {
  while (buffer.size() > 0) {
    const char c = *static_cast<const char*>(buffer.data().data());
    if (c != '\r' && c != '\n') return;
    buffer.consume(1);
  }
}

}  // namespace

struct Connection::Parser : http::request_parser<http::string_body> {};

asio::awaitable<Connection::Verdict> Connection::read_request(HttpRequest& request) {
  Parser parser;
  parser.header_limit(std::numeric_limits<std::uint32_t>::max());  // Beast's limit depends on how the bytes arrive
  parser.body_limit(context_.limits.body_bytes);
  Verdict verdict = co_await read_head(parser);
  if (verdict.status != 0) co_return verdict;
  verdict = understand(parser, request);
  if (verdict.status != 0) co_return verdict;
  if (!parser.is_done()) {
    expires(context_.limits.body_s);
    verdict = co_await read_body(parser);
    if (verdict.status != 0) co_return verdict;
  }
  request.body = std::move(parser.get().body());
  co_return Verdict{};
}

asio::awaitable<Connection::Verdict> Connection::read_head(Parser& parser) {
  size_t parsed = 0;
  for (;;) {
    if (parsed == 0) skip_line_ends(buffer_);
    error_code error = http::error::need_more;
    if (buffer_.size() > 0) {
      const size_t used = parser.put(buffer_.data(), error);
      buffer_.consume(used);
      parsed += used;
    }
    const bool more = error == http::error::need_more;
    if (parsed + (more ? buffer_.size() : 0) > context_.limits.header_bytes) {
      co_return Verdict{431, "the headers are over " + std::to_string(context_.limits.header_bytes) + " bytes"};
    }
    if (error == http::error::body_limit) {
      co_return Verdict{413, "the body is over " + std::to_string(context_.limits.body_bytes) + " bytes"};
    }
    if (error && !more) co_return Verdict{400, error.message()};
    if (!more) co_return Verdict{};
    Verdict verdict = co_await receive();
    if (verdict.status == 408) verdict.what = "the headers took too long";
    if (verdict.status != 0) co_return verdict;
  }
}

asio::awaitable<Connection::Verdict> Connection::read_body(Parser& parser) {
  const auto& head = parser.get();
  if (!framing_.http10 && buffer_.size() == 0 && boost::beast::iequals(head[http::field::expect], "100-continue")) {
    const Buffers go_on = {asio::buffer(kContinue)};
    const bool written = co_await write(go_on);
    if (!written) co_return Verdict{-1};
    expires(context_.limits.body_s);
  }
  for (;;) {
    error_code error;
    while (buffer_.size() > 0 && !parser.is_done() && !error) {
      const size_t used = parser.put(buffer_.data(), error);
      buffer_.consume(used);
    }
    if (error == http::error::body_limit) {
      co_return Verdict{413, "the body is over " + std::to_string(context_.limits.body_bytes) + " bytes"};
    }
    if (error && error != http::error::need_more) co_return Verdict{400, error.message()};
    if (parser.is_done()) co_return Verdict{};
    // The unparsed rest is an incomplete chunk line or trailer.
    if (buffer_.size() > context_.limits.header_bytes) co_return Verdict{400, "a chunk's line is too long"};
    Verdict verdict = co_await receive();
    if (verdict.status == 408) verdict.what = "the body took too long";
    if (verdict.status != 0) co_return verdict;
  }
}

asio::awaitable<Connection::Verdict> Connection::receive() {
  const auto space = buffer_.prepare(kReadBytes);
  const auto [error, count] = co_await socket_.async_read_some(space, asio::as_tuple(asio::use_awaitable));
  buffer_.commit(count);
  if (closed_) co_return Verdict{-1};
  if (late_) co_return Verdict{408};
  co_return Verdict{error ? -1 : 0};
}

/// Fills in the request and the framing of its answer from the parsed head.
Connection::Verdict Connection::understand(const Parser& parser, HttpRequest& request) {
  const auto& head = parser.get();
  framing_.http10 = head.version() == 10;
  framing_.keep_alive = parser.keep_alive();
  head_only_ = head.method() == http::verb::head;
  request.method = std::string(head.method_string());
  request.peer = peer_;
  for (const auto& field : head) {
    auto [at, is_new] = request.headers.try_emplace(lower_case(field.name_string()), field.value());
    if (!is_new) at->second.append(", ").append(field.value());
  }
  // The end of a body in another coding is unknown, so the body would be read as the next request.
  if (head.count(http::field::transfer_encoding) > 0 && !parser.chunked()) {
    return {501, "chunked is the only supported transfer coding"};
  }
  if (!parse_target(head.target(), request)) return {400, "the path has an invalid escape"};
  return {};
}

}  // namespace kvasir::serve
