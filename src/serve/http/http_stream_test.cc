// Tests streams, and clients that disconnect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http_server_fixture.h"

namespace kvasir::serve {
namespace {

TEST(HttpServerStream, PartsArriveAsTheyComeAndTheConnectionIsKept) {
  Source source;
  RunningServer server(source.handler());
  raw::Client client = server.client();
  client.send(kGet);
  const std::string head = client.take_until("\r\n\r\n");
  for (const char* line :
       {"HTTP/1.1 200 OK\r\n", "\r\nTransfer-Encoding: chunked\r\n", "\r\nCache-Control: no-cache\r\n",
        "\r\nX-Accel-Buffering: no\r\n", "\r\nContent-Type: text/event-stream\r\n"}) {
    EXPECT_THAT(head, testing::HasSubstr(line));
  }
  EXPECT_THAT(head, testing::Not(testing::HasSubstr("Content-Length")));
  std::string chunk;
  for (const std::string& part : {std::string("one"), std::string("a second"), std::string(20, 'x')}) {
    server.in_loop([&] { source.put({part, false}); });
    ASSERT_TRUE(client.chunk_of(chunk));
    EXPECT_EQ(chunk, part);
  }
  server.in_loop([&] { source.put({"end", true}); });
  EXPECT_EQ(client.take(13), "3\r\nend\r\n0\r\n\r\n");
  server.in_loop([&] { source.parts = {{"next", true}}; });
  EXPECT_EQ(client.ask(kGet).body, "next");
  EXPECT_EQ(server.in_loop([&] { return source.gone; }), 0);
}

TEST(HttpServerStream, AnEmptyLastPartEndsIt) {
  Source source;
  source.head.headers = {{"cache-control", "no-store"}, {"x-accel-buffering", "yes"}};
  source.parts = {{"a", false}, {"", true}};
  RunningServer server(source.handler());
  raw::Client client = server.client();
  const raw::Answer answer = client.ask(kGet);
  EXPECT_EQ(answer.body, "a");
  EXPECT_EQ(answer.headers.at("cache-control"), "no-store");
  EXPECT_EQ(answer.headers.at("x-accel-buffering"), "yes");
}

TEST(HttpServerStream, OldClientsGetItWithoutChunks) {
  Source source;
  source.parts = {{"one ", false}, {"two", true}};
  RunningServer server(source.handler());
  raw::Client client = server.client();
  client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(client.take_until("\r\n\r\n"), testing::HasSubstr("Connection: close"));
  EXPECT_EQ(client.take_all(), "one two");
}

TEST(HttpServerStream, HeadGetsItsHeadersOnly) {
  Source source;
  RunningServer server(source.handler());
  raw::Client client = server.client();
  client.send("HEAD / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.answer(true).headers.at("transfer-encoding"), "chunked");
  server.in_loop([&] { source.parts = {{"body", true}}; });
  EXPECT_EQ(client.ask(kGet).body, "body");
}

TEST(HttpServerStream, ManyWakesAskOnceAndNoneIsLost) {
  Source source;
  RunningServer server(source.handler());
  raw::Client client = server.client();
  client.send(kGet);
  client.take_until("\r\n\r\n");
  const auto asked = [&] { return server.in_loop([&] { return source.asked; }); };
  ASSERT_TRUE(server.soon([&] { return source.asked == 1; }));
  server.in_loop([&] {
    for (int i = 0; i < 100000; ++i) source.exchange->wake();
  });
  EXPECT_LE(asked(), 3);
  std::string chunk;
  for (int i = 0; i < 2000; ++i) {
    // Posted without waiting, so some pieces arrive during a write and some after it.
    server->post([&source, i] { source.put({std::to_string(i), false}); });
    ASSERT_TRUE(client.chunk_of(chunk));
    ASSERT_EQ(chunk, std::to_string(i));
  }
}

TEST(HttpServerStream, ANextThatWakesItselfDoesNotHoldTheLoop) {
  std::shared_ptr<Exchange> kept;
  RunningServer server([&](const std::shared_ptr<Exchange>& exchange) {
    kept = exchange;
    exchange->stream({}, [&] {
      kept->wake();
      return StreamPart{};
    });
  });
  raw::Client client = server.client();
  client.send(kGet);
  client.take_until("\r\n\r\n");
  EXPECT_EQ(server.in_loop([] { return 5; }), 5);
}

TEST(HttpServerStream, ASlowReaderIsAskedNoFurther) {
  int asked = 0;
  RunningServer server([&](const std::shared_ptr<Exchange>& exchange) {
    exchange->stream({}, [&] { return StreamPart{std::string(100000, 'x'), ++asked == 100}; });
  });
  raw::Client client(server.port(), "127.0.0.1", 32768);
  client.send(kGet);
  int before = -1, now = 0;
  while (before != now) {
    before = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    now = server.in_loop([&] { return asked; });
  }
  EXPECT_LT(now, 80);  // 80 parts are 8 MB, more than any socket buffers
  raw::Client other = server.client();
  const raw::Answer answer = client.answer();
  EXPECT_EQ(answer.body.size(), 10000000u);
  EXPECT_EQ(answer.chunks, 100);
}

TEST(HttpServerGone, WhileTheAnswerIsAwaited) {
  for (const bool half : {false, true}) {
    Keeper keeper;
    RunningServer server(keeper.handler());
    raw::Client client = server.client();
    client.send(kGet);
    ASSERT_TRUE(server.soon([&] { return keeper.exchange != nullptr; }));
    if (half) client.shutdown_write();
    if (!half) client.close();
    ASSERT_TRUE(server.soon([&] { return keeper.gone == 1 && server->connections() == 0; }, 2));
    int late = 0;
    server.in_loop([&] {
      keeper.exchange->on_gone([&] { ++late; });
      keeper.exchange->answer({.body = "too late"});
      keeper.exchange->stream({}, [] { return StreamPart{}; });
      keeper.exchange->wake();
    });
    server.destroy();
    EXPECT_EQ(late, 1);
    EXPECT_EQ(keeper.gone, 1);
    keeper.exchange->answer({});
  }
}

TEST(HttpServerGone, InTheMiddleOfAStream) {
  for (const bool half : {false, true}) {
    Source source;
    RunningServer server(source.handler());
    raw::Client client = server.client();
    client.send(kGet);
    client.take_until("\r\n\r\n");
    server.in_loop([&] { source.put({"one", false}); });
    if (half) client.shutdown_write();
    if (!half) client.close();
    ASSERT_TRUE(server.soon([&] { return source.gone == 1 && server->connections() == 0; }, 2));
    server.in_loop([&] { source.put({"two", false}); });
    EXPECT_EQ(server.in_loop([&] { return source.parts.size(); }), 1u);
  }
}

TEST(SlowHttpServerGone, WithTheNextRequestUnread) {
  Keeper keeper;
  RunningServer server(keeper.handler());
  raw::Client client = server.client();
  client.send(kGet);
  ASSERT_TRUE(server.soon([&] { return keeper.exchange != nullptr; }));
  client.send(kGet);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the server has stopped waiting for bytes
  EXPECT_EQ(keeper.gone, 0);
  client.close();
  EXPECT_TRUE(server.soon([&] { return keeper.gone == 1 && server->connections() == 0; }, 3));
}

}  // namespace
}  // namespace kvasir::serve
