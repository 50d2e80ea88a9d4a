// Tests the limits of sizes, times and connections, and the cost of an idle server.
#include <sys/resource.h>

#include <ctime>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http_server_fixture.h"

namespace kvasir::serve {
namespace {

using testing::HasSubstr;

double cpu_seconds() {
  timespec t = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

size_t resident_bytes() {
  size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

void nap(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST(HttpServerLimits, LongHeaders) {
  RunningServer server(echo, any_port({.header_bytes = 100}));
  const std::string line = "GET / HTTP/1.1\r\n";  // 16 bytes
  const auto of_bytes = [&](size_t n) { return line + "a: " + std::string(n - 23, 'x') + "\r\n\r\n"; };
  EXPECT_EQ(server.client().ask(of_bytes(100)).status, 200);
  EXPECT_EQ(server.client().ask(of_bytes(101)).status, 431);
  std::string several = line;
  while (several.size() < 110) several += "b: 2\r\n";
  EXPECT_EQ(server.client().ask(several).status, 431);
  raw::Client slow = server.client();
  for (size_t at = 0; at < several.size(); at += 8) {
    slow.send(several.substr(at, 8));
    server.in_loop([] { return 0; });
  }
  EXPECT_EQ(slow.answer().status, 431);
  EXPECT_TRUE(slow.closes_within(5));
}

TEST(HttpServerLimits, LongBodies) {
  RunningServer server(echo, any_port({.header_bytes = 200, .body_bytes = 10}));
  EXPECT_EQ(server.client().ask("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n0123456789").status, 200);
  EXPECT_EQ(server.client().ask("POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n").body,
            "413: the body is over 10 bytes");
  const std::string chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(server.client().ask(chunked + "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n").status, 200);
  EXPECT_EQ(server.client().ask(chunked + "5\r\n01234\r\n6\r\n").status, 413);
  EXPECT_EQ(server.client().ask(chunked + "1;" + std::string(300, 'x')).status, 400);
}

TEST(HttpServerLimits, ARefusalReachesAClientThatIsStillSending) {
  RunningServer server(echo, any_port({.body_bytes = 10}));
  raw::Client client = server.client();
  client.send("POST / HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n");
  EXPECT_TRUE(client.send(std::string(3000000, 'x')));
  EXPECT_EQ(client.answer().status, 413);
}

TEST(HttpServerLimits, SlowHeaders) {
  RunningServer server(echo, any_port({.header_s = 0.05, .idle_s = 5}));
  raw::Client silent = server.client(), slow = server.client(), second = server.client();
  slow.send("GET / HT");
  EXPECT_EQ(second.ask("GET / HTTP/1.1\r\n\r\n").status, 200);
  EXPECT_TRUE(silent.closes_within(2));
  EXPECT_EQ(silent.take_all(), "");
  EXPECT_EQ(slow.answer().body, "408: the headers took too long");
  EXPECT_TRUE(slow.closes_within(1));
  second.send("GET");
  EXPECT_EQ(second.answer().status, 408);
}

TEST(HttpServerLimits, SlowBodies) {
  RunningServer server(echo, any_port({.header_s = 5, .body_s = 0.05}));
  raw::Client client = server.client();
  EXPECT_EQ(client.ask("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc").body, "408: the body took too long");
  EXPECT_TRUE(client.closes_within(1));
}

TEST(HttpServerLimits, IdleConnections) {
  RunningServer server(echo, any_port({.header_s = 5, .idle_s = 0.05}));
  raw::Client client = server.client();
  EXPECT_EQ(client.ask("GET / HTTP/1.1\r\n\r\n").status, 200);
  EXPECT_TRUE(client.closes_within(2));
  EXPECT_EQ(client.take_all(), "");
  EXPECT_TRUE(server.soon([&] { return server->connections() == 0; }));
}

TEST(HttpServerLimits, NoTimeRunsWhileTheHandlerThinks) {
  std::shared_ptr<Exchange> kept;
  RunningServer server([&](std::shared_ptr<Exchange> exchange) { kept = std::move(exchange); },
                       any_port({.header_s = 0.02, .body_s = 0.02, .idle_s = 0.02, .write_s = 0.02}));
  raw::Client client = server.client();
  client.send("POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nb");
  EXPECT_TRUE(client.is_silent_for(0.08));
  server.in_loop([&] { std::exchange(kept, nullptr)->answer({.body = "thought"}); });
  EXPECT_EQ(client.answer().body, "thought");
}

TEST(HttpServerLimits, AClientThatReadsNothingIsGone) {
  bool gone = false;
  RunningServer server(
      [&](const std::shared_ptr<Exchange>& exchange) {
        exchange->on_gone([&] { gone = true; });
        exchange->answer({.body = std::string(12 << 20, 'x')});
      },
      any_port({.write_s = 0.05}));
  raw::Client client(server.port(), "127.0.0.1", 4096);
  client.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(server.soon([&] { return gone && server->connections() == 0; }, 5));
}

TEST(HttpServerLimits, FurtherConnectionsWait) {
  RunningServer server(echo, any_port({.connections = 2}));
  raw::Client first = server.client(), second = server.client();
  EXPECT_EQ(first.ask("GET /1 HTTP/1.1\r\n\r\n").status, 200);
  EXPECT_EQ(second.ask("GET /2 HTTP/1.1\r\n\r\n").status, 200);
  raw::Client third = server.client();
  third.send("GET /3 HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(third.is_silent_for(0.03));
  EXPECT_EQ(server.in_loop([&] { return server->connections(); }), 2);
  first.close();
  EXPECT_EQ(third.answer().body, "GET /3||");
}

TEST(HttpServerLimits, WithoutFileDescriptorsItWaits) {
  RunningServer server(echo);
  raw::Client client = server.client();
  EXPECT_EQ(client.ask("GET /1 HTTP/1.1\r\n\r\n").status, 200);
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  // The client's socket takes the last file descriptor, so the server cannot accept it.
  const int next = ::dup(0);
  ::close(next);
  const rlimit low = {static_cast<rlim_t>(next + 1), limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &low);
  raw::Client starved = server.client();
  const double before = cpu_seconds();
  EXPECT_TRUE(starved.connected());
  starved.send("GET /2 HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(starved.is_silent_for(0.15));
  EXPECT_LT(cpu_seconds() - before, 0.05);
  EXPECT_EQ(client.ask("GET /3 HTTP/1.1\r\n\r\n").status, 200);
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(starved.answer().body, "GET /2||");
}

TEST(SlowHttpServerLimits, WaitingCostsNoTime) {
  std::vector<std::shared_ptr<Exchange>> kept;
  RunningServer server([&](std::shared_ptr<Exchange> exchange) {
    if (exchange->request().path == "/stream") exchange->stream({}, [] { return StreamPart{}; });
    kept.push_back(std::move(exchange));
  });
  raw::Client idle = server.client(), waiting = server.client(), ahead = server.client(), stream = server.client();
  waiting.send("GET / HTTP/1.1\r\n\r\n");
  ahead.send(kGet);
  stream.send("GET /stream HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(server.soon([&] { return kept.size() == 3; }));
  ahead.send(kGet);  // stays unread
  nap(0.05);
  const double before = cpu_seconds();
  nap(2.2);
  EXPECT_LT(cpu_seconds() - before, 0.01);
  RecordProperty("cpu_us", static_cast<int>((cpu_seconds() - before) * 1e6));
  server.in_loop([&] { kept.clear(); });
}

TEST(SlowHttpServerLimits, AThousandIdleConnectionsAreSmall) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's memory counts too";
#endif
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit high = {std::min<rlim_t>(limit.rlim_max, 4096), limit.rlim_max};
  if (high.rlim_cur < 2100) GTEST_SKIP() << "needs 2100 file descriptors";
  setrlimit(RLIMIT_NOFILE, &high);
  RunningServer server(echo);
  server.client().ask("GET / HTTP/1.1\r\n\r\n");
  const size_t before = resident_bytes();
  std::vector<raw::Client> clients;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(server.client());
    ASSERT_EQ(clients.back().ask("GET /" + std::to_string(i) + " HTTP/1.1\r\n\r\n").status, 200);
  }
  EXPECT_GE(server.in_loop([&] { return server->connections(); }), 1000);
  const size_t grown = resident_bytes() - before;
  EXPECT_LT(grown, size_t{10} << 20);
  RecordProperty("kib", static_cast<int>(grown >> 10));
  clients.clear();
  server.stop();
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace
}  // namespace kvasir::serve
