// An HTTP client on a plain socket, which can be as slow and as wrong as a test needs. Tests only.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace kvasir::raw {

struct Answer {
  int status = 0;                              ///< 0: no answer came
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;                            ///< chunks are joined
  int chunks = 0;
};

class Client {
 public:
  explicit Client(uint16_t port, const std::string& address = "127.0.0.1", int receive_bytes = 0) {
    const bool v6 = address.find(':') != std::string::npos;
    fd_ = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_bytes > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // send pieces of a request as they are written
    sockaddr_in at4 = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
    sockaddr_in6 at6 = {};
    at6.sin6_family = AF_INET6;
    at6.sin6_port = htons(port);
    ::inet_pton(AF_INET, address.c_str(), &at4.sin_addr);
    ::inet_pton(AF_INET6, address.c_str(), &at6.sin6_addr);
    connected_ = (v6 ? ::connect(fd_, reinterpret_cast<const sockaddr*>(&at6), sizeof at6)
                     : ::connect(fd_, reinterpret_cast<const sockaddr*>(&at4), sizeof at4)) == 0;
  }
  Client(Client&& other) noexcept : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {
    bytes_ = std::move(other.bytes_);
  }
  ~Client() { close(); }

  bool connected() const { return connected_; }
  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  void shutdown_write() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

  /// Reads one answer, without its body if `head_only`. Informational ones (1xx) count as separate answers.
  Answer answer(bool head_only = false) {
    Answer answer;
    const std::string head = take_until("\r\n\r\n");
    if (head.size() < 12) return answer;
    answer.status = std::stoi(head.substr(9, 3));
    for (size_t at = head.find("\r\n") + 2; at + 2 < head.size();) {
      const size_t end = head.find("\r\n", at), colon = head.find(": ", at);
      std::string name = head.substr(at, colon - at);
      for (char& c : name) c = static_cast<char>(::tolower(c));
      answer.headers[name] = head.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    if (head_only || answer.status < 200 || answer.status == 204) return answer;
    if (answer.headers.count("content-length")) answer.body = take(std::stoul(answer.headers["content-length"]));
    if (answer.headers.count("transfer-encoding")) {
      for (std::string chunk; chunk_of(chunk) && !chunk.empty(); answer.body += chunk) ++answer.chunks;
    }
    return answer;
  }
  Answer ask(std::string_view request) {
    send(request);
    return answer();
  }
  /// Reads the next chunk of a stream whose head has been read. Returns false if no whole chunk came.
  bool chunk_of(std::string& chunk) {
    const std::string size = take_until("\r\n");
    if (size.empty()) return false;
    chunk = take(std::stoul(size, nullptr, 16) + 2);
    if (chunk.size() < 2) return false;
    chunk.resize(chunk.size() - 2);
    return true;
  }
  /// Returns all bytes up to and including `end`; empty if they do not come.
  std::string take_until(std::string_view end) {
    size_t at = 0;
    while ((at = bytes_.find(end)) == std::string::npos) {
      if (!receive(kPatience)) return {};
    }
    return cut(at + end.size());
  }
  std::string take(size_t count) {
    while (bytes_.size() < count && receive(kPatience)) {
    }
    return cut(std::min(count, bytes_.size()));
  }
  /// Returns everything that comes until the server closes.
  std::string take_all() {
    while (receive(kPatience)) {
    }
    return std::exchange(bytes_, {});
  }
  /// True if the server closes within the time. Keeps the bytes that come before.
  bool closes_within(double seconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!closed_ && std::chrono::steady_clock::now() < end) {
      receive(std::chrono::duration<double>(end - std::chrono::steady_clock::now()).count());
    }
    return closed_;
  }
  /// True if nothing comes for that long, not even the end of the connection.
  bool is_silent_for(double seconds) { return bytes_.empty() && !receive(seconds) && !closed_; }

 private:
  static constexpr double kPatience = 10;  // waited only in case of a fault; bytes are read as they come

  std::string cut(size_t count) {
    std::string front = bytes_.substr(0, count);
    bytes_.erase(0, count);
    return front;
  }
  bool receive(double seconds) {
    pollfd socket = {fd_, POLLIN, 0};
    if (closed_ || ::poll(&socket, 1, static_cast<int>(seconds * 1000)) <= 0) return false;
    char block[65536];
    const ssize_t count = ::recv(fd_, block, sizeof block, 0);
    if (count > 0) bytes_.append(block, static_cast<size_t>(count));
    closed_ = count <= 0;
    return !closed_;
  }

  int fd_ = -1;
  bool connected_ = false, closed_ = false;
  std::string bytes_;
};

}  // namespace kvasir::raw
