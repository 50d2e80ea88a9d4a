// Tests the server's loop: its end, its tasks and signals, and other threads.
#include <csignal>

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http_server_fixture.h"

namespace kvasir::serve {
namespace {

TEST(HttpServerEnd, DrainingAnswersWhatWasAsked) {
  Keeper keeper;
  RunningServer server(keeper.handler());
  raw::Client idle = server.client(), asking = server.client();
  asking.send(kGet);
  ASSERT_TRUE(server.soon([&] { return keeper.exchange && server->connections() == 2; }));
  server.in_loop([&] { server->drain(); });
  EXPECT_TRUE(idle.closes_within(2));
  EXPECT_FALSE(server.client().connected());
  EXPECT_TRUE(asking.is_silent_for(0.02));
  server.in_loop([&] { keeper.exchange->answer({.body = "done"}); });
  const raw::Answer answer = asking.answer();
  EXPECT_EQ(answer.body, "done");
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_TRUE(asking.closes_within(2));
  EXPECT_TRUE(server.soon([&] { return server->connections() == 0; }));
  EXPECT_EQ(keeper.gone, 0);
}

TEST(HttpServerEnd, StoppingClosesAllAndTellsWhoWaits) {
  Keeper keeper;
  Source source;
  RunningServer server([&](const std::shared_ptr<Exchange>& exchange) {
    (exchange->request().path == "/" ? keeper.handler() : source.handler())(exchange);
  });
  raw::Client idle = server.client(), waiting = server.client(), reading = server.client(), half = server.client();
  waiting.send(kGet);
  reading.send("GET /stream HTTP/1.1\r\n\r\n");
  half.send("GET");
  ASSERT_TRUE(server.soon([&] { return keeper.exchange && source.asked > 0 && server->connections() == 4; }));
  server->post([&] { server->after(60, [exchange = keeper.exchange] { exchange->answer({}); }); });
  server.stop();
  EXPECT_EQ(keeper.gone, 1);
  EXPECT_EQ(source.gone, 1);
  for (raw::Client* client : {&idle, &waiting, &reading, &half}) EXPECT_TRUE(client->closes_within(2));
  server.destroy();
  keeper.exchange->answer({.body = "nobody"});
  source.put({"nobody", true});
}

TEST(HttpServerEnd, WithoutARunThereIsNothingToStop) {
  auto server = HttpServer::listen(any_port(), echo, plain_refusal).value();
  server->post([] {});
  server->after(1, [] {});
  server->stop();
  server->run();
}

TEST(HttpServerLoop, TasksComeAtTheirTimeAndSignalsEachTime) {
  auto server = HttpServer::listen(any_port(), echo, plain_refusal).value();
  std::vector<int> seen;
  server->on_signal([&](int signal) {
    seen.push_back(signal);
    if (signal == SIGTERM) return server->stop();
    server->after(0.01, [] { ::raise(SIGTERM); });
  });
  const auto start = std::chrono::steady_clock::now();
  server->after(0.05, [&] { ::raise(SIGINT); });
  server->after(0.02, [&] { seen.push_back(0); });
  server->after(-1, [&] { seen.push_back(-1); });
  server->run();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(60));
  EXPECT_THAT(seen, testing::ElementsAre(-1, 0, SIGINT, SIGTERM));
}

TEST(ThreadsHttpServer, AnswersComeFromOtherThreadsByPost) {
  std::atomic<int> answered = 0;
  HttpServer* loop = nullptr;
  std::vector<std::thread> workers;
  RunningServer server([&](std::shared_ptr<Exchange> exchange) {
    workers.emplace_back([&, exchange = std::move(exchange)]() mutable {
      // Moves the exchange back into the loop, which must release the last reference.
      loop->post([&, kept = std::move(exchange)] {
        kept->answer({.body = told(kept->request())});
        ++answered;
      });
    });
  });
  server.in_loop([&] { loop = &*server; });
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&server, c] {
      raw::Client client = server.client();
      for (int i = 0; i < 20; ++i) {
        const std::string path = "/" + std::to_string(c) + "/" + std::to_string(i);
        EXPECT_EQ(client.ask("GET " + path + " HTTP/1.1\r\n\r\n").body, "GET " + path + "||");
      }
    });
  }
  for (std::thread& client : clients) client.join();
  server.stop();
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(answered, 80);
}

}  // namespace
}  // namespace kvasir::serve
