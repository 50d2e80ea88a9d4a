// The text of HTTP. Nothing here depends on the program's locale.
#include "serve/http/message.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>

namespace kvasir::serve {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool equal_names(std::string_view a, std::string_view b) { return lower_case(a) == lower_case(b); }

bool has_header(const HttpAnswer& answer, std::string_view name) {
  return std::any_of(answer.headers.begin(), answer.headers.end(),
                     [&](const auto& header) { return equal_names(header.first, name); });
}

bool is_framing(std::string_view name) {
  constexpr std::array kNames = {"connection", "content-length", "transfer-encoding", "date", "server", "content-type"};
  return std::any_of(kNames.begin(), kNames.end(), [&](const char* known) { return equal_names(name, known); });
}

std::string date() {
  constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm t = {};
  gmtime_r(&now, &t);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[static_cast<size_t>(t.tm_wday)], t.tm_mday,
                     kMonths[static_cast<size_t>(t.tm_mon)], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

void add(std::string& head, std::string_view name, std::string_view value) {
  const auto append = [&](std::string_view text) {
    // A line break in a value that came from a request would let the client add headers.
    std::copy_if(text.begin(), text.end(), std::back_inserter(head), [](char c) { return c != '\r' && c != '\n'; });
  };
  append(name);
  head += ": ";
  append(value);
  head += "\r\n";
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return lower;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return {};
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return {};
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

bool parse_target(std::string_view target, HttpRequest& request) {
  // Clients send "http://host/path" to proxies; a server must accept it too.
  if (const size_t scheme = target.find("://"); scheme != target.npos && target.front() != '/') {
    const size_t path = target.find_first_of("/?", scheme + 3);
    target = path == target.npos ? "/" : target.substr(path);
  }
  const size_t mark = target.find('?');
  request.query = mark == target.npos ? "" : target.substr(mark + 1);
  auto path = percent_decoded(target.substr(0, mark));
  if (!path) return false;
  request.path = std::move(*path);
  return true;
}

bool has_body(int status) { return status >= 200 && status != 204 && status != 304; }

std::string answer_head(const HttpAnswer& answer, std::string_view reason, const Framing& framing) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", answer.status, reason);
  add(head, "Date", date());
  add(head, "Server", "kvasir");
  if (!answer.content_type.empty() && has_body(answer.status)) add(head, "Content-Type", answer.content_type);
  for (const auto& [name, value] : answer.headers) {
    if (!is_framing(name)) add(head, name, value);
  }
  if (framing.stream) {
    if (!has_header(answer, "Cache-Control")) add(head, "Cache-Control", "no-cache");
    // Without this, proxies such as nginx would buffer the stream.
    if (!has_header(answer, "X-Accel-Buffering")) add(head, "X-Accel-Buffering", "no");
    if (!framing.http10) add(head, "Transfer-Encoding", "chunked");
  } else if (has_body(answer.status)) {
    add(head, "Content-Length", fmt::to_string(answer.body.size()));
  }
  // Each HTTP version states only what differs from its default.
  if (!framing.keep_alive) add(head, "Connection", "close");
  if (framing.keep_alive && framing.http10) add(head, "Connection", "keep-alive");
  head += "\r\n";
  return head;
}

std::string chunk_head(size_t bytes) { return fmt::format("{:x}\r\n", bytes); }

}  // namespace kvasir::serve
