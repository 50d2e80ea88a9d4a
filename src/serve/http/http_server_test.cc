// Tests requests as the handler sees them, and answers as the client gets them.
#include "serve/http/http_server.h"

#include <netinet/tcp.h>

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http_server_fixture.h"

namespace kvasir::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(HttpServerRequest, TheHandlerSeesAllOfIt) {
  HttpRequest seen;
  RunningServer server([&](const std::shared_ptr<Exchange>& exchange) {
    seen = exchange->request();
    echo(exchange);
  });
  raw::Client client = server.client();
  client.ask(
      "PUT /a%20b/%C3%A9?c=%20d&e HTTP/1.1\r\nHost: h\r\nX-One: 1\r\nACCEPT: a\r\naccept: b\r\n"
      "Content-Length: 3\r\n\r\nxyz");
  server.stop();
  EXPECT_EQ(told(seen), "PUT /a b/\xC3\xA9|c=%20d&e|xyz");
  EXPECT_THAT(seen.headers,
              ElementsAre(Pair("accept", "a, b"), Pair("content-length", "3"), Pair("host", "h"), Pair("x-one", "1")));
  EXPECT_EQ(seen.peer, "127.0.0.1");
}

TEST(HttpServerRequest, TargetsInOtherForms) {
  RunningServer server(echo);
  raw::Client client = server.client();
  EXPECT_EQ(client.ask("GET http://h:80/a?b HTTP/1.1\r\n\r\n").body, "GET /a|b|");
  EXPECT_EQ(client.ask("GET http://h HTTP/1.1\r\n\r\n").body, "GET /||");
  EXPECT_EQ(client.ask("GET /x://y HTTP/1.1\r\n\r\n").body, "GET /x://y||");
  EXPECT_EQ(client.ask("OPTIONS * HTTP/1.1\r\n\r\n").body, "OPTIONS *||");
}

TEST(HttpServerRequest, ABodyInChunks) {
  RunningServer server(echo);
  raw::Client client = server.client();
  const std::string chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(client.ask(chunked + "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n").body,
            "POST /||abc0123456789");
  EXPECT_EQ(client.ask(chunked + "0\r\n\r\n").body, "POST /||");
}

TEST(HttpServerRequest, AClientThatWaitsIsToldToGoOn) {
  RunningServer server(echo, any_port({.body_bytes = 10}));
  raw::Client client = server.client();
  EXPECT_EQ(client.ask("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n").status, 100);
  EXPECT_EQ(client.ask("ab").body, "POST /||ab");
  EXPECT_EQ(client.ask("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n").status, 413);
}

TEST(HttpServerRequest, WhatIsNoRequestIsRefused) {
  RunningServer server(echo);
  const std::vector<std::string> wrong = {
      "G(T / HTTP/1.1\r\n\r\n",
      "\x16\x03\x01\x02",  // from a client that speaks TLS
      "GET / HTTP/3.7\r\n\r\n",
      "GET / HTTP/1.1\r\nno colon\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
      "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
      "GET /%4 HTTP/1.1\r\n\r\n",
      "GET /%zz HTTP/1.1\r\n\r\n",
  };
  for (const std::string& request : wrong) {
    raw::Client client = server.client();
    const raw::Answer answer = client.ask(request);
    EXPECT_EQ(answer.status, 400) << request;
    EXPECT_THAT(answer.body, HasSubstr("400: ")) << request;
    EXPECT_EQ(answer.headers.at("connection"), "close") << request;
    client.close();
  }
  raw::Client client = server.client();
  EXPECT_EQ(client.ask("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\nGET /evil HTTP/1.1\r\n\r\n").status, 501);
  EXPECT_EQ(client.answer().status, 0);  // the rest was not read as a request
}

TEST(HttpServerAnswer, SaysWhatHttpNeeds) {
  RunningServer server([](const std::shared_ptr<Exchange>& exchange) {
    exchange->answer({.status = 418,
                      .content_type = "text/plain",
                      .body = "short",
                      .headers = {{"X-Mine", "a\r\nX-Evil: b"}, {"content-length", "7"}, {"Connection", "odd"}}});
  });
  raw::Client client = server.client();
  const raw::Answer answer = client.ask("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(answer.status, 418);
  EXPECT_EQ(answer.body, "short");
  auto headers = answer.headers;
  EXPECT_THAT(headers["date"], testing::MatchesRegex("[A-Z]..,.[0-9]{2}.[A-Z]...[0-9]{4}.[0-9:]{8} GMT"));
  headers.erase("date");
  EXPECT_THAT(headers, ElementsAre(Pair("content-length", "5"), Pair("content-type", "text/plain"),
                                   Pair("server", "kvasir"), Pair("x-mine", "aX-Evil: b")));
}

TEST(HttpServerAnswer, HeadHasTheHeadersOfGetAndNoBody) {
  RunningServer server(echo);
  raw::Client client = server.client();
  client.send("HEAD /a HTTP/1.1\r\n\r\n");
  const raw::Answer answer = client.answer(true);
  EXPECT_EQ(answer.headers.at("content-length"), "9");  // the length of "HEAD /a||"
  EXPECT_EQ(client.ask("GET /b HTTP/1.1\r\n\r\n").body, "GET /b||");
}

TEST(HttpServerAnswer, SomeStatusesHaveNoBody) {
  RunningServer server([](const std::shared_ptr<Exchange>& exchange) {
    exchange->answer({.status = exchange->request().path == "/none" ? 204 : 200, .body = "b"});
  });
  raw::Client client = server.client();
  EXPECT_EQ(client.ask("GET /none HTTP/1.1\r\n\r\n").headers.count("content-length"), 0u);
  EXPECT_EQ(client.ask("GET /some HTTP/1.1\r\n\r\n").body, "b");
}

TEST(HttpServerAnswer, TheConnectionIsKeptAsTheClientWishes) {
  RunningServer server(echo);
  raw::Client kept = server.client(), ended = server.client(), old = server.client(), old_kept = server.client();
  EXPECT_EQ(kept.ask("GET /1 HTTP/1.1\r\n\r\n").headers.count("connection"), 0u);
  EXPECT_EQ(kept.ask("\r\nGET /2 HTTP/1.1\r\n\r\n").body, "GET /2||");
  EXPECT_EQ(ended.ask("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").headers.at("connection"), "close");
  EXPECT_TRUE(ended.closes_within(5));
  EXPECT_EQ(old.ask("GET / HTTP/1.0\r\n\r\n").body, "GET /||");
  EXPECT_TRUE(old.closes_within(5));
  EXPECT_EQ(old_kept.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").headers.at("connection"), "keep-alive");
  EXPECT_EQ(old_kept.ask("GET /2 HTTP/1.0\r\n\r\n").body, "GET /2||");
}

TEST(HttpServerAnswer, TheNextRequestWaitsForIt) {
  std::vector<std::shared_ptr<Exchange>> asked;
  RunningServer server([&](std::shared_ptr<Exchange> exchange) { asked.push_back(std::move(exchange)); });
  raw::Client client = server.client();
  client.send("GET /1 HTTP/1.1\r\n\r\nPOST /2 HTTP/1.1\r\nContent-Length: 2\r\n\r\n");
  ASSERT_TRUE(server.soon([&] { return asked.size() == 1; }));
  client.send("abGET /3 HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(client.is_silent_for(0.02));
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(server.soon([&] { return asked.size() == i + 1; }));
    server.in_loop([&] { echo(asked[i]); });
    EXPECT_EQ(client.answer().body, std::vector<std::string>({"GET /1||", "POST /2||ab", "GET /3||"})[i]);
  }
  server.in_loop([&] { asked.clear(); });
}

TEST(HttpServerAnswer, OnlyTheFirstCounts) {
  std::shared_ptr<Exchange> kept;
  RunningServer server([&](const std::shared_ptr<Exchange>& exchange) {
    echo(exchange);
    exchange->answer({.body = "again"});
    exchange->stream({}, [] { return StreamPart{"again", true}; });
    exchange->wake();
    if (exchange->request().path == "/1") kept = exchange;
    if (exchange->request().path == "/2") kept->answer({.body = "of another"});
  });
  raw::Client client = server.client();
  EXPECT_EQ(client.ask("GET /1 HTTP/1.1\r\n\r\n").body, "GET /1||");
  EXPECT_EQ(client.ask("GET /2 HTTP/1.1\r\n\r\n").body, "GET /2||");
  client.close();
  server.destroy();
  bool gone = false;
  kept->on_gone([&] { gone = true; });
  kept->answer({.body = "after the server"});
  kept->wake();
  EXPECT_FALSE(gone);  // it was answered
}

TEST(HttpServerAnswer, WithoutOneItIsTheServersFault) {
  std::shared_ptr<Exchange> kept;
  RunningServer server([&](std::shared_ptr<Exchange> exchange) {
    if (exchange->request().path == "/later") kept = std::move(exchange);
  });
  raw::Client now = server.client(), later = server.client();
  EXPECT_EQ(now.ask("GET / HTTP/1.1\r\n\r\n").body, "500: the handler gave no answer");
  EXPECT_TRUE(now.closes_within(1));
  later.send("GET /later HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(server.soon([&] { return kept != nullptr; }));
  server.in_loop([&] { kept.reset(); });
  EXPECT_EQ(later.answer().status, 500);
}

TEST(HttpServerAnswer, IsTheSameHoweverTheRequestIsCut) {
  const std::string all =
      "GET /1?a HTTP/1.1\r\nHost: h\r\n\r\n"
      "POST /2 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello\r\n"
      "POST /3 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n2;e\r\nef\r\n0\r\nT: t\r\n\r\n"
      "HEAD /4 HTTP/1.1\r\n\r\n"
      "GET /5 HTTP/1.1\r\nbad header\r\n\r\n";
  RunningServer server(echo);
  const auto answers = [&](std::vector<size_t> cuts) {
    raw::Client client = server.client();
    size_t begin = 0;
    cuts.push_back(all.size());
    for (const size_t end : cuts) {
      client.send(all.substr(begin, end - begin));
      begin = end;
      if (end < all.size()) server.in_loop([] { return 0; });  // lets the server read the piece
    }
    std::string got;
    for (int i = 0; i < 5; ++i) {
      const raw::Answer answer = client.answer(i == 3);
      got += std::to_string(answer.status) + " " + answer.body + "\n";
    }
    return got;
  };
  const std::string whole = answers({});
  EXPECT_THAT(whole, HasSubstr("200 GET /1|a|\n200 POST /2||hello\n200 POST /3||abcdef\n200 \n400 400: "));
  for (size_t cut = 1; cut < all.size(); ++cut) EXPECT_EQ(answers({cut}), whole) << cut;
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    std::vector<size_t> cuts;
    for (size_t at = 1 + random() % 9; at < all.size(); at += 1 + random() % 17) cuts.push_back(at);
    EXPECT_EQ(answers(cuts), whole) << round;
  }
}

TEST(HttpServerListen, OnAddressesAndNames) {
  for (const std::string host : {"127.0.0.1", "localhost", "0.0.0.0", "::1", "::"}) {
    auto listening = HttpServer::listen(any_port({}, host), echo, plain_refusal);
    if (!listening && host.find(':') != std::string::npos) GTEST_SKIP() << "no IPv6: " << listening.error().what;
    ASSERT_TRUE(listening) << listening.error().message();
    EXPECT_NE((*listening)->port(), 0);
    RunningServer server(echo, any_port({}, host));
    raw::Client client(server.port(), host == "::1" ? "::1" : "127.0.0.1");
    EXPECT_EQ(client.ask("GET / HTTP/1.1\r\n\r\n").status, 200) << host;
  }
}

TEST(HttpServerListen, ErrorsNameTheAddress) {
  const auto unknown = HttpServer::listen(any_port({}, "no.such.host.invalid"), echo, plain_refusal);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, Error::bad_argument);
  EXPECT_EQ(unknown.error().where, "no.such.host.invalid:0");
  EXPECT_EQ(HttpServer::listen(any_port({}, ""), echo, plain_refusal).error().kind, Error::bad_argument);
  RunningServer server(echo);
  const auto taken = HttpServer::listen({.port = server.port()}, echo, plain_refusal);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().kind, Error::io);
  EXPECT_EQ(taken.error().where, "127.0.0.1:" + std::to_string(server.port()));
}

TEST(HttpServerListen, APortCanBeTakenAgainAtOnce) {
  RunningServer server(echo);
  raw::Client client = server.client();
  client.ask("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");  // the server closes, so its socket stays in TIME_WAIT
  EXPECT_TRUE(client.closes_within(5));
  client.close();
  server.destroy();
  EXPECT_TRUE(HttpServer::listen({.port = server.port()}, echo, plain_refusal));
}

TEST(HttpServerListen, SmallAnswersAreNotHeldBack) {
  RunningServer server(echo);
  raw::Client client = server.client();
  client.ask("GET / HTTP/1.1\r\n\r\n");
  int found = 0;
  for (int fd = 0; fd < 256; ++fd) {
    sockaddr_in own = {}, peer = {};
    socklen_t size = sizeof own, peer_size = sizeof peer;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0 || ntohs(own.sin_port) != server.port())
      continue;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) continue;
    int no_delay = 0;
    socklen_t option_size = sizeof no_delay;
    ::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, &option_size);
    EXPECT_EQ(no_delay, 1);
    ++found;
  }
  EXPECT_EQ(found, 1);
}

}  // namespace
}  // namespace kvasir::serve
