// Tests calls to this library's own server, and to servers that do not speak HTTP or fail.
#include "serve/http/http_client.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http_server_fixture.h"
#include "tests/support/raw_server.h"

namespace kvasir::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Told {
  std::vector<int> heads;
  std::vector<std::string> pieces;
  std::vector<Result<void>> ends;

  std::string body() const {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    return all;
  }
  HttpListener listener() {
    return {.on_head = [this](int status) { heads.push_back(status); },
            .on_body = [this](std::string_view bytes) { pieces.emplace_back(bytes); },
            .on_end = [this](Result<void> whole) { ends.push_back(std::move(whole)); }};
  }
};

std::unique_ptr<HttpClient> client_of(uint16_t port, const HttpClientLimits& limits = {}) {
  return HttpClient::create({.host = "127.0.0.1", .port = port}, limits).value();
}

Told ask(uint16_t port, HttpCall call = {}, const HttpClientLimits& limits = {}) {
  Told told;
  const auto client = client_of(port, limits);
  client->send(std::move(call), told.listener());
  client->run();
  EXPECT_EQ(told.ends.size(), 1u);
  return told;
}

// ---- URLs ---------------------------------------------------------------------------------------------------------

TEST(HttpUrl, IsTakenApart) {
  const auto is = [](const char* url, const std::string& host, int port, const std::string& path) {
    const auto parsed = parse_url(url);
    ASSERT_TRUE(parsed) << url;
    EXPECT_EQ(parsed->host, host) << url;
    EXPECT_EQ(parsed->port, port) << url;
    EXPECT_EQ(parsed->path, path) << url;
  };
  is("http://a.example", "a.example", 80, "");
  is("http://127.0.0.1:8081/", "127.0.0.1", 8081, "");
  is("http://[::1]:65535/v1/", "::1", 65535, "/v1");
  is("http://[fe80::1]/a/b", "fe80::1", 80, "/a/b");
}

TEST(HttpUrl, RefusesWhatIsNone) {
  for (const char* url : {"", "127.0.0.1:80", "ftp://a", "http://", "http:///v1", "http://:80",
                          "http://a:", "http://a:0", "http://a:65536", "http://a:8x", "http://a:-1", "http://[::1",
                          "http://a b", "http://u@a", "http://a/?x", "http://a/\r\nX: y"}) {
    const auto parsed = parse_url(url);
    ASSERT_FALSE(parsed) << url;
    EXPECT_EQ(parsed.error().kind, Error::bad_argument) << url;
  }
  EXPECT_EQ(parse_url("https://a").error().kind, Error::unsupported);
  const auto client = HttpClient::create({.host = "no such.invalid", .port = 80});
  EXPECT_EQ(client.error().kind, Error::bad_argument);
}

// ---- answers ------------------------------------------------------------------------------------------------------

TEST(HttpClient, GivesTheCallAndTheWholeAnswer) {
  RunningServer server(echo);
  const Told told =
      ask(server.port(), {.method = "POST", .path = "/a?b=c", .body = "body", .headers = {{"X-One", "1"}}});
  EXPECT_THAT(told.heads, ElementsAre(200));
  EXPECT_EQ(told.body(), "POST /a|b=c|body");
  EXPECT_TRUE(told.ends[0]);
}

TEST(HttpClient, SendsItsHeaders) {
  raw::Speaker server("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_THAT(ask(server.port(), {.path = "/x", .headers = {{"X-One", "1"}}}).heads, ElementsAre(204));
  EXPECT_THAT(server.head(), testing::StartsWith("GET /x HTTP/1.1\r\nHost: 127.0.0.1:"));
  EXPECT_THAT(server.head(), HasSubstr("\r\nX-One: 1\r\n"));
  EXPECT_THAT(server.head(), HasSubstr("\r\nConnection: close\r\n"));
}

TEST(HttpClient, TellsAStreamAsItComes) {
  Source source;
  RunningServer server(source.handler());
  const auto client = client_of(server.port());
  Told told;
  HttpListener listener = told.listener();
  std::vector<std::string> parts = {"last", "second", "first"};
  const auto put = [&] {
    std::string part = parts.back();
    parts.pop_back();
    server->post([&source, part, last = parts.empty()] { source.put({part, last}); });
  };
  listener.on_head = [&](int) { put(); };
  listener.on_body = [&](std::string_view bytes) {  // each piece is sent only after the one before was received
    told.pieces.emplace_back(bytes);
    if (!parts.empty()) put();
  };
  client->send({}, std::move(listener));
  client->run();
  EXPECT_THAT(told.pieces, ElementsAre("first", "second", "last"));
  ASSERT_EQ(told.ends.size(), 1u);
  EXPECT_TRUE(told.ends[0]);
}

TEST(HttpClient, ReadsAnAnswerByteByByte) {
  constexpr std::string_view kAnswer =
      "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "4;x=y\r\ndata\r\n1\r\n:\r\n3\r\n 1\n\r\n0\r\nTrailer: z\r\n\r\n";
  raw::Speaker server([&](int socket) {
    for (const char& c : kAnswer) raw::Speaker::say(socket, {&c, 1});
  });
  const Told told = ask(server.port());
  EXPECT_THAT(told.heads, ElementsAre(200));
  EXPECT_EQ(told.body(), "data: 1\n");
  EXPECT_TRUE(told.ends[0]) << told.ends[0].error().message();
}

TEST(HttpClient, ReadsToTheEndOfTheConnection) {
  raw::Speaker server("HTTP/1.0 503 Busy\r\n\r\nall that comes");
  const Told told = ask(server.port());
  EXPECT_THAT(told.heads, ElementsAre(503));
  EXPECT_EQ(told.body(), "all that comes");
  EXPECT_TRUE(told.ends[0]);
}

TEST(HttpClient, HasManyCallsAtOnce) {
  std::vector<std::shared_ptr<Exchange>> kept;
  RunningServer server([&](std::shared_ptr<Exchange> exchange) {
    kept.push_back(std::move(exchange));
    if (kept.size() < 50) return;
    for (const auto& each : kept) echo(each);  // answered once all 50 have arrived
  });
  const auto client = client_of(server.port());
  std::vector<Told> told(50);
  for (size_t i = 0; i < told.size(); ++i) client->send({.path = "/" + std::to_string(i)}, told[i].listener());
  client->run();
  for (size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i].body(), "GET /" + std::to_string(i) + "||");
  server.stop();
}

TEST(HttpClient, TasksComeAtTheirTime) {
  raw::Speaker server("HTTP/1.1 204 No Content\r\n\r\n");
  const auto client = client_of(server.port());
  std::string order;
  client->after(0.05, [&] { order += "late "; });
  client->after(0, [&] {
    order += "soon ";
    client->send({}, {.on_end = [&](const Result<void>&) { order += "call "; }});
  });
  client->run();
  EXPECT_THAT(order, testing::AnyOf("soon call late ", "soon late call "));
}

// ---- the client leaves --------------------------------------------------------------------------------------------

TEST(HttpClient, CancelClosesTheConnectionAndTellsNothingMore) {
  Source source;
  RunningServer server(source.handler());
  const auto client = client_of(server.port());
  Told told;
  HttpListener listener = told.listener();
  uint64_t call = 0;
  listener.on_head = [&](int) { server->post([&] { source.put({"part", false}); }); };
  listener.on_body = [&](std::string_view bytes) {
    told.pieces.emplace_back(bytes);
    client->cancel(call);
  };
  call = client->send({}, std::move(listener));
  client->run();
  EXPECT_THAT(told.pieces, ElementsAre("part"));
  EXPECT_TRUE(told.ends.empty());
  EXPECT_TRUE(server.soon([&] { return source.gone == 1; }));
  client->cancel(call);
}

TEST(HttpClient, MayGoAwayInTheMiddle) {
  Source source;
  RunningServer server(source.handler());
  Told told;
  {
    const auto client = client_of(server.port());
    HttpListener listener = told.listener();
    listener.on_head = [&](int) { client->stop(); };
    client->send({}, std::move(listener));
    client->run();
  }
  EXPECT_TRUE(told.ends.empty());
  EXPECT_TRUE(server.soon([&] { return source.gone == 1; }));
}

// ---- what goes wrong ----------------------------------------------------------------------------------------------

void expect_error(const Told& told, Error::Kind kind, const std::string& says) {
  ASSERT_EQ(told.ends.size(), 1u);
  ASSERT_FALSE(told.ends[0]);
  EXPECT_EQ(told.ends[0].error().kind, kind) << told.ends[0].error().message();
  EXPECT_THAT(told.ends[0].error().message(), HasSubstr(says));
}

TEST(HttpClient, NobodyListens) {
  uint16_t port = 0;
  {
    RunningServer server(echo);
    port = server.port();
  }
  expect_error(ask(port), Error::io, "127.0.0.1:" + std::to_string(port) + ": cannot connect");
}

TEST(HttpClient, TheServerSaysNothingOrBreaksOff) {
  expect_error(ask(raw::Speaker("").port()), Error::io, "no answer");
  expect_error(ask(raw::Speaker("HTTP/1.1 200 OK\r\nContent-Le").port()), Error::io, "no answer");
  raw::Speaker length("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
  const Told told = ask(length.port());
  EXPECT_EQ(told.body(), "half");
  expect_error(told, Error::io, "breaks off");
  expect_error(ask(raw::Speaker("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf").port()), Error::io,
               "breaks off");
}

TEST(HttpClient, WhatComesIsNoHttp) {
  expect_error(ask(raw::Speaker("SSH-2.0-OpenSSH_9.2\r\n\r\n").port()), Error::damaged, "no answer");
  expect_error(ask(raw::Speaker("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").port()), Error::damaged,
               "breaks off");
  const std::string large = "HTTP/1.1 200 OK\r\nX: " + std::string(2000, 'x') + "\r\n\r\n";
  expect_error(ask(raw::Speaker(large).port(), {}, {.header_bytes = 1000}), Error::damaged, "no answer");
}

TEST(HttpClient, SilenceHasALimit) {
  const auto silent = [](std::string_view before) {
    return [before](int socket) {
      raw::Speaker::say(socket, before);
      char c = 0;
      while (::recv(socket, &c, 1, 0) > 0) {
      }
    };
  };
  const HttpClientLimits limits = {.silence_s = 0.05};
  raw::Speaker nothing(silent("")), half(silent("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"));
  expect_error(ask(nothing.port(), {}, limits), Error::timed_out, "no answer: nothing came for too long");
  expect_error(ask(half.port(), {}, limits), Error::timed_out, "breaks off: nothing came");
}

}  // namespace
}  // namespace kvasir::serve
