// The listening socket, the loop, its timers and signals. connection.h serves the connections.
#include "serve/http/http_server.h"

#include <csignal>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "serve/http/connection.h"

namespace kvasir::serve {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Pause after a failed accept, which most likely lacked a file descriptor.
constexpr auto kAcceptAgain = std::chrono::milliseconds(100);

std::string name_of(const HttpOptions& options) {
  const bool is_v6 = options.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + options.host + "]" : options.host) + ":" + std::to_string(options.port);
}

class Server final : public HttpServer {
 public:
  Server(const HttpLimits& limits, HttpHandler handler, HttpRefusal refusal)
      : shared_{limits, std::move(handler), std::move(refusal)} {}
  ~Server() override { close_all(); }

  Result<void> open(const HttpOptions& options);

  uint16_t port() const override { return port_; }
  int connections() const override { return static_cast<int>(connections_.size()); }
  void run() override;
  void post(std::function<void()> task) override { asio::post(context_, std::move(task)); }
  void after(double seconds, std::function<void()> task) override;
  void on_signal(std::function<void(int signal)> task) override;
  void drain() override;
  void stop() override { context_.stop(); }

 private:
  error_code bind(const tcp::endpoint& endpoint);
  void accept();
  void accept_later();
  void start(tcp::socket socket);
  void await_signal();
  void close_all();

  asio::io_context context_{1};
  ConnectionContext shared_;
  tcp::acceptor acceptor_{context_};
  asio::steady_timer accept_again_{context_};
  std::optional<asio::signal_set> signals_;
  std::function<void(int signal)> signal_task_;
  std::set<std::shared_ptr<Connection>> connections_;
  uint16_t port_ = 0;
  bool accepting_ = false;  ///< an accept, or the pause before it, is under way
  bool draining_ = false;
};

Result<void> Server::open(const HttpOptions& options) {
  error_code error;
  const auto flags = tcp::resolver::passive | tcp::resolver::numeric_service;
  const auto found = tcp::resolver(context_).resolve(options.host, std::to_string(options.port), flags, error);
  if (error || options.host.empty()) {
    return fail(Error::bad_argument, "the host name has no address: " + error.message(), name_of(options),
                "127.0.0.1, 0.0.0.0 or an address of this machine");
  }
  std::vector<tcp::endpoint> endpoints(found.begin(), found.end());
  // A name such as "localhost" may have IPv4 and IPv6 addresses. IPv4 comes first, since its users also write
  // 127.0.0.1.
  std::stable_partition(endpoints.begin(), endpoints.end(), [](const auto& at) { return at.address().is_v4(); });
  for (const auto& endpoint : endpoints) {
    error = bind(endpoint);
    if (!error) break;
  }
  if (error) {
    return fail(Error::io, "cannot listen: " + error.message(), name_of(options), "another port or address");
  }
  accept();
  return {};
}

error_code Server::bind(const tcp::endpoint& endpoint) {
  error_code error, ignored;
  acceptor_.close(ignored);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (!error) port_ = acceptor_.local_endpoint(error).port();
  return error;
}

void Server::accept() {
  if (accepting_ || draining_ || connections() >= std::max(1, shared_.limits.connections)) return;
  accepting_ = true;
  acceptor_.async_accept([this](error_code error, tcp::socket socket) {
    if (draining_) return;
    if (error) return accept_later();
    accepting_ = false;
    start(std::move(socket));
    accept();
  });
}

void Server::accept_later() {
  accept_again_.expires_after(kAcceptAgain);
  accept_again_.async_wait([this](error_code) {
    accepting_ = false;
    accept();
  });
}

void Server::start(tcp::socket socket) {
  const auto connection = std::make_shared<Connection>(std::move(socket), shared_);
  connections_.insert(connection);
  asio::co_spawn(context_, connection->serve(), [this, connection](std::exception_ptr) {
    connection->close();
    connections_.erase(connection);
    accept();
  });
}

void Server::run() {
  const auto work = asio::make_work_guard(context_);
  context_.run();
  close_all();
}

void Server::after(double seconds, std::function<void()> task) {
  const auto timer = std::make_shared<asio::steady_timer>(context_, to_duration(seconds));
  timer->async_wait([timer, task = std::move(task)](error_code error) {
    if (!error) task();
  });
}

void Server::on_signal(std::function<void(int signal)> task) {
  signal_task_ = std::move(task);
  if (signals_) return;
  signals_.emplace(context_, SIGINT, SIGTERM);
  await_signal();
}

void Server::await_signal() {
  signals_->async_wait([this](error_code error, int signal) {
    if (error) return;
    await_signal();
    // Copied, since the task may set another one.
    const auto task = signal_task_;
    task(signal);
  });
}

void Server::drain() {
  draining_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  accept_again_.cancel();
  for (const auto& connection : connections_) connection->drain();
}

void Server::close_all() {
  const auto all = std::exchange(connections_, {});
  for (const auto& connection : all) connection->close();
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const HttpOptions& options, HttpHandler handler,
                                                       HttpRefusal refusal) {
  try {
    auto server = std::make_unique<Server>(options.limits, std::move(handler), std::move(refusal));
    KVASIR_CHECK(server->open(options));
    return server;
  } catch (const boost::system::system_error& error) {
    return fail(Error::io, error.what(), name_of(options));  // the loop could not get its file descriptors
  }
}

}  // namespace kvasir::serve
