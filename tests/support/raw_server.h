// A server on a plain socket that sends any bytes a test gives it. Tests only.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

namespace kvasir::raw {

/// Takes one connection, reads a request's head, and lets `speak` write to the socket; then it closes.
class Speaker {
 public:
  explicit Speaker(std::function<void(int socket)> speak) {
    listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at = {.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
    ::inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
    socklen_t size = sizeof at;
    ::bind(listening_, reinterpret_cast<const sockaddr*>(&at), size);
    ::listen(listening_, 1);
    ::getsockname(listening_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this, speak = std::move(speak)] {
      const int socket = ::accept(listening_, nullptr, nullptr);
      const int on = 1;
      ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      for (char c = 0; head_.find("\r\n\r\n") == std::string::npos && ::recv(socket, &c, 1, 0) == 1;) head_ += c;
      speak(socket);
      ::close(socket);
    });
  }
  explicit Speaker(std::string_view answer) : Speaker([answer](int socket) { say(socket, answer); }) {}
  ~Speaker() {
    thread_.join();
    ::close(listening_);
  }

  uint16_t port() const { return port_; }
  /// The head of the request. Valid after the call has ended.
  const std::string& head() const { return head_; }
  static void say(int socket, std::string_view text) { (void)!::send(socket, text.data(), text.size(), MSG_NOSIGNAL); }

 private:
  int listening_ = -1;
  uint16_t port_ = 0;
  std::string head_;
  std::thread thread_;
};

}  // namespace kvasir::raw
