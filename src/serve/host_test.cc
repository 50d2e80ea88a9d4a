// Tests a host without sockets. The test runs the tasks that the host posts.
#include "serve/host.h"

#include <deque>

#include <gmock/gmock.h>

#include "base/clock.h"
#include "base/mutex.h"

namespace kvasir::serve {
namespace {

class ServeHost : public testing::Test {
 protected:
  void SetUp() override {
    HostOptions options{.model = KVASIR_SOURCE_DIR "/models/tales"};
    options.engine.threads = 1;
    auto opened = Host::open(options, [this](auto task) {
      const MutexLock lock(mutex_);
      tasks_.push_back(std::move(task));
      news_.notify_all();
    });
    ASSERT_TRUE(opened) << opened.error().message();
    host = std::move(*opened);
  }

  Result<RequestId> submit(std::vector<int> prompt, int tokens, Host::Sink sink) {
    Request request{.prompt = std::move(prompt)};
    request.options.max_tokens = tokens;
    request.options.ignore_eos = true;
    return host->submit(std::move(request), std::move(sink));
  }
  void do_a_task() {
    std::function<void()> task;
    {
      const MutexLock lock(mutex_);
      while (tasks_.empty()) news_.wait(mutex_);
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }

 private:
  Mutex mutex_;
  Condition news_;
  std::deque<std::function<void()>> tasks_ KVASIR_GUARDED_BY(mutex_);

 protected:
  std::unique_ptr<Host> host;  // the last member, since its thread posts until it is destroyed
};

TEST_F(ServeHost, EventsComeToTheirSinks) {
  std::map<int, int> ids;
  int ended = 0;
  for (const int tokens : {3, 5})
    ASSERT_TRUE(submit({5, 6, tokens}, tokens, [&, tokens](RequestEvent& e) {
      if (const auto* news = std::get_if<Event>(&e.news)) ids[tokens] += static_cast<int>(news->ids.size());
      ended += std::holds_alternative<Finished>(e.news) ? 1 : 0;
    }));
  EXPECT_EQ(host->under_way(), 2u);
  while (ended < 2) do_a_task();
  EXPECT_EQ(ids, (std::map<int, int>{{3, 3}, {5, 5}}));
  EXPECT_EQ(host->under_way(), 0u);
}

// A request that has just arrived must not look stuck, even if is_alive() was not called for a long time.
TEST_F(ServeHost, IsAliveWhenItsFirstWorkHasJustCome) {
  EXPECT_TRUE(host->is_alive(now_seconds() + 1000, 60)) << "it has nothing to do";
  ASSERT_TRUE(submit({5, 6, 7}, 2, [](RequestEvent&) {}));
  EXPECT_TRUE(host->is_alive(now_seconds(), 60));
  while (host->under_way() > 0) do_a_task();
  ASSERT_TRUE(submit({5, 6, 7}, 2, [](RequestEvent&) {}));
  while (host->stats().finished < 2) {
  }
  (void)host->is_alive(now_seconds(), 60);
  EXPECT_FALSE(host->is_alive(now_seconds() + 61, 60)) << "its events are not looked at, and no pass ends";
}

TEST_F(ServeHost, DrainingEndsWhatIsUnderWayAndTakesNothing) {
  bool drained = false, ended = false;
  ASSERT_TRUE(submit({5, 6, 7}, 8, [&](RequestEvent& e) { ended |= std::holds_alternative<Finished>(e.news); }));
  host->drain(100, [&] { drained = true; });
  const auto refused = submit({5}, 1, [](RequestEvent&) {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::closing);
  while (!drained) do_a_task();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace kvasir::serve
