// A server on its own thread, and handlers for tests. Tests only.
#pragma once

#include <chrono>
#include <deque>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "serve/http/http_server.h"
#include "tests/support/raw_http.h"

namespace kvasir::serve {

inline HttpOptions any_port(const HttpLimits& limits = {}, const std::string& host = "127.0.0.1") {
  return {.host = host, .port = 0, .limits = limits};
}

/// "413: the body is over 100 bytes"
inline HttpAnswer plain_refusal(int status, const std::string& what) {
  return {.status = status, .content_type = "text/plain", .body = std::to_string(status) + ": " + what};
}

/// "POST /a b|c=d|body"
inline std::string told(const HttpRequest& request) {
  return request.method + " " + request.path + "|" + request.query + "|" + request.body;
}

inline void echo(const std::shared_ptr<Exchange>& exchange) { exchange->answer({.body = told(exchange->request())}); }

inline const std::string kGet = "GET / HTTP/1.1\r\n\r\n";

/// A handler that streams what the test puts into it.
struct Source {
  std::shared_ptr<Exchange> exchange;
  std::deque<StreamPart> parts;
  HttpAnswer head = {.content_type = "text/event-stream", .body = "unseen"};
  int asked = 0, gone = 0;

  HttpHandler handler() {
    return [this](const std::shared_ptr<Exchange>& given) {
      exchange = given;
      given->on_gone([this] { ++gone; });
      given->stream(head, [this] {
        ++asked;
        if (parts.empty()) return StreamPart{};
        StreamPart part = std::move(parts.front());
        parts.pop_front();
        return part;
      });
    };
  }
  void put(StreamPart part) {
    parts.push_back(std::move(part));
    exchange->wake();
  }
};

/// A handler that keeps the exchange and counts when its client is gone.
struct Keeper {
  std::shared_ptr<Exchange> exchange;
  int gone = 0;
  HttpHandler handler() {
    return [this](std::shared_ptr<Exchange> given) {
      given->on_gone([this] { ++gone; });
      exchange = std::move(given);
    };
  }
};

class RunningServer {
 public:
  explicit RunningServer(HttpHandler handler, const HttpOptions& options = any_port())
      : server_(HttpServer::listen(options, std::move(handler), plain_refusal).value()),
        port_(server_->port()),
        thread_([this] { server_->run(); }) {}
  ~RunningServer() { stop(); }

  uint16_t port() const { return port_; }
  HttpServer& operator*() { return *server_; }
  HttpServer* operator->() { return server_.get(); }
  raw::Client client() const { return raw::Client(port_); }

  /// Runs `task` in the server's loop and returns its result.
  template <class Task>
  auto in_loop(Task task) {
    std::packaged_task<decltype(task())()> packaged(std::move(task));
    auto result = packaged.get_future();
    server_->post([&] { packaged(); });
    return result.get();
  }
  /// True if `condition`, evaluated in the server's loop, becomes true in time.
  template <class Condition>
  bool soon(Condition condition, double seconds = 10) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!in_loop(condition)) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  void stop() {
    if (!thread_.joinable()) return;
    server_->post([this] { server_->stop(); });
    thread_.join();
  }
  void destroy() {
    stop();
    server_.reset();
  }

 private:
  std::unique_ptr<HttpServer> server_;
  uint16_t port_;
  std::thread thread_;
};

}  // namespace kvasir::serve
