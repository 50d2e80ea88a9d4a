// Each call is a coroutine on one loop: connect, write, read. Beast parses the answers.
#include "serve/http/http_client.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

#include "serve/http/connection.h"

namespace kvasir::serve {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Parser = http::response_parser<http::buffer_body>;

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

std::string name_of(const HttpUrl& url) {
  const bool is_v6 = url.host.find(':') != std::string::npos;
  return fmt::format("{}:{}", is_v6 ? "[" + url.host + "]" : url.host, url.port);
}

std::string head_of(const HttpCall& call, const std::string& host) {
  std::string head = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: kvasir\r\nConnection: close\r\n",
                                 call.method, call.path, host);
  if (!call.body.empty() || call.method == "POST")
    head += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", call.body.size());
  for (const auto& [name, value] : call.headers) head += fmt::format("{}: {}\r\n", name, value);
  return head + "\r\n";
}

// ---- a call -------------------------------------------------------------------------------------------------------

/// The data that all calls of a client share.
struct Server {
  std::vector<tcp::endpoint> endpoints;
  std::string name;
  HttpClientLimits limits;
};

class Flight : public std::enable_shared_from_this<Flight> {
 public:
  Flight(asio::io_context& context, const Server& server, HttpCall call, HttpListener listener)
      : server_(server), call_(std::move(call)), listener_(std::move(listener)), socket_(context), watch_(context) {}

  asio::awaitable<void> fly();
  void end(Result<void> whole);
  /// Closes the connection. The listener is not called any more.
  void drop();

 private:
  asio::awaitable<Result<void>> talk();
  asio::awaitable<error_code> open();
  asio::awaitable<error_code> read_head(std::optional<Parser>* parser);
  asio::awaitable<error_code> read_body(Parser* parser);
  void expires(double seconds);
  void watch();
  Result<void> failed(error_code error, const char* when) const;

  const Server& server_;
  HttpCall call_;
  HttpListener listener_;
  tcp::socket socket_;
  asio::steady_timer watch_;
  boost::beast::flat_buffer buffer_;
  std::array<char, 16 << 10> block_ = {};
  Clock::time_point deadline_;
  bool watching_ = false, late_ = false, over_ = false;
};

asio::awaitable<void> Flight::fly() {
  const auto self = shared_from_this();
  expires(server_.limits.connect_s);
  Result<void> whole = co_await talk();
  end(std::move(whole));
}

void Flight::end(Result<void> whole) {
  if (over_) return;
  const auto on_end = std::move(listener_.on_end);
  drop();
  if (on_end) on_end(std::move(whole));
}

void Flight::drop() {
  over_ = true;
  error_code ignored;
  socket_.close(ignored);
  watch_.cancel();
}

asio::awaitable<Result<void>> Flight::talk() {
  error_code error = co_await open();
  if (error) co_return failed(error, "cannot connect");
  std::optional<Parser> parser;
  error = co_await read_head(&parser);
  if (error) co_return failed(error, "no answer");
  if (listener_.on_head) listener_.on_head(parser->get().result_int());
  error = co_await read_body(&*parser);
  if (error) co_return failed(error, "the answer breaks off");
  co_return Result<void>();
}

/// Connects and sends the request.
asio::awaitable<error_code> Flight::open() {
  const auto [error, endpoint] = co_await asio::async_connect(socket_, server_.endpoints, kAsTuple);
  if (error) co_return error;
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  expires(server_.limits.silence_s);
  const std::string head = head_of(call_, server_.name);
  const std::array<asio::const_buffer, 2> buffers = {asio::buffer(head), asio::buffer(call_.body)};
  // A write error is ignored: a server that stops reading early usually answers with the reason.
  co_await asio::async_write(socket_, buffers, kAsTuple);
  co_return error_code();
}

/// Reads a head, skipping informational answers (1xx).
asio::awaitable<error_code> Flight::read_head(std::optional<Parser>* parser) {
  for (;;) {
    parser->emplace();
    (*parser)->header_limit(static_cast<std::uint32_t>(server_.limits.header_bytes));
    (*parser)->body_limit(boost::none);
    (*parser)->skip(call_.method == "HEAD");
    const auto [error, count] = co_await http::async_read_header(socket_, buffer_, **parser, kAsTuple);
    if (error || over_ || (*parser)->get().result_int() >= 200) co_return error;
  }
}

asio::awaitable<error_code> Flight::read_body(Parser* parser) {
  while (!over_ && !parser->is_done()) {
    auto& body = parser->get().body();
    body.data = block_.data();
    body.size = block_.size();
    expires(server_.limits.silence_s);
    const auto [error, count] = co_await http::async_read_some(socket_, buffer_, *parser, kAsTuple);
    const size_t bytes = block_.size() - body.size;
    if (bytes > 0 && !over_ && listener_.on_body) listener_.on_body({block_.data(), bytes});
    if (error && error != http::error::need_buffer) co_return error;
  }
  co_return error_code();
}

/// Moves the deadline. Called for every piece of an answer, so it restarts the timer only if that would fire too late.
void Flight::expires(double seconds) {
  deadline_ = Clock::now() + to_duration(seconds);
  if (!watching_ || deadline_ < watch_.expiry()) watch();
}

void Flight::watch() {
  watching_ = true;
  watch_.expires_at(deadline_);
  watch_.async_wait([this, self = shared_from_this()](error_code error) {
    if (error || over_) return;
    if (Clock::now() < deadline_) return watch();
    late_ = true;
    socket_.close(error);
  });
}

Result<void> Flight::failed(error_code error, const char* when) const {
  if (late_) return fail(Error::timed_out, fmt::format("{}: nothing came for too long", when), server_.name);
  const bool is_http = error.category() == make_error_code(http::error::bad_version).category() &&
                       error != http::error::end_of_stream && error != http::error::partial_message;
  return fail(is_http ? Error::damaged : Error::io, fmt::format("{}: {}", when, error.message()), server_.name);
}

// ---- the client ---------------------------------------------------------------------------------------------------

class Client final : public HttpClient {
 public:
  explicit Client(const HttpClientLimits& limits) { server_.limits = limits; }
  ~Client() override {
    for (const auto& [id, flight] : flights_) flight->drop();
  }

  Result<void> resolve(const HttpUrl& url);

  uint64_t send(HttpCall call, HttpListener listener) override;
  void cancel(uint64_t call) override;
  void after(double seconds, std::function<void()> task) override;
  void run() override {
    context_.restart();
    context_.run();
  }
  void stop() override { context_.stop(); }

 private:
  Server server_;
  asio::io_context context_{1};
  std::map<uint64_t, std::shared_ptr<Flight>> flights_;
  uint64_t last_id_ = 0;
};

Result<void> Client::resolve(const HttpUrl& url) {
  server_.name = name_of(url);
  error_code error;
  const auto found =
      tcp::resolver(context_).resolve(url.host, std::to_string(url.port), tcp::resolver::numeric_service, error);
  if (error) return fail(Error::bad_argument, "the host name has no address: " + error.message(), server_.name);
  server_.endpoints.assign(found.begin(), found.end());
  // "localhost" has IPv4 and IPv6 addresses, and most servers listen on IPv4.
  std::stable_partition(server_.endpoints.begin(), server_.endpoints.end(),
                        [](const tcp::endpoint& at) { return at.address().is_v4(); });
  return {};
}

uint64_t Client::send(HttpCall call, HttpListener listener) {
  const uint64_t id = ++last_id_;
  const auto flight = std::make_shared<Flight>(context_, server_, std::move(call), std::move(listener));
  flights_[id] = flight;
  asio::co_spawn(context_, flight->fly(), [this, id, flight](const std::exception_ptr& thrown) {
    flights_.erase(id);
    if (thrown) flight->end(fail(Error::internal, "a call ended early", server_.name));
  });
  return id;
}

void Client::cancel(uint64_t call) {
  if (const auto at = flights_.find(call); at != flights_.end()) at->second->drop();
}

void Client::after(double seconds, std::function<void()> task) {
  const auto timer = std::make_shared<asio::steady_timer>(context_, to_duration(seconds));
  timer->async_wait([timer, task = std::move(task)](error_code error) {
    if (!error) task();
  });
}

// Parses host and port: "a.example", "127.0.0.1:80", "[::1]:80".
bool parse_place(std::string_view place, HttpUrl* url) {
  if (place.starts_with('[')) {
    const size_t end = place.find(']');
    if (end == place.npos) return false;
    url->host = place.substr(1, end - 1);
    place.remove_prefix(end + 1);
  } else {
    url->host = place.substr(0, place.find(':'));
    place.remove_prefix(url->host.size());
  }
  if (url->host.empty() || place.empty()) return !url->host.empty();
  if (place[0] != ':') return false;
  const char* const end = place.data() + place.size();
  const auto [at, error] = std::from_chars(place.data() + 1, end, url->port);
  return error == std::errc() && at == end && url->port != 0;
}

}  // namespace

Result<HttpUrl> parse_url(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  if (url.starts_with("https://"))
    return fail(Error::unsupported, "https is not supported", url, "http, through a proxy that speaks https");
  const size_t slash = std::min(url.find('/', kScheme.size()), url.size());
  HttpUrl parsed;
  if (!url.starts_with(kScheme) || url.find_first_of(" \r\n?#@") != url.npos ||
      !parse_place(std::string_view(url).substr(kScheme.size(), slash - kScheme.size()), &parsed))
    return fail(Error::bad_argument, "it is not the URL of a server", url, "http://127.0.0.1:8080");
  parsed.path = url.substr(slash);
  while (parsed.path.ends_with('/')) parsed.path.pop_back();
  return parsed;
}

Result<std::unique_ptr<HttpClient>> HttpClient::create(const HttpUrl& url, const HttpClientLimits& limits) {
  try {
    auto client = std::make_unique<Client>(limits);
    KVASIR_CHECK(client->resolve(url));
    return client;
  } catch (const boost::system::system_error& error) {
    return fail(Error::io, error.what(), name_of(url));  // the loop could not get its file descriptors
  }
}

}  // namespace kvasir::serve
