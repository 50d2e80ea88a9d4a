// One thread that runs tasks in order, for work that takes too long for the thread of the sockets.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace kvasir::serve {

class Worker {
 public:
  Worker() : thread_([this] { run(); }) {}
  ~Worker() {
    {
      const MutexLock lock(mutex_);
      over_ = true;
      news_.notify_all();
    }
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Adds a task. May be called from any thread.
  void post(std::function<void()> task) {
    const MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
    news_.notify_all();
  }

 private:
  void run() {
    for (;;) {
      std::function<void()> task;
      {
        const MutexLock lock(mutex_);
        while (tasks_.empty() && !over_) news_.wait(mutex_);
        if (over_) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  Mutex mutex_;
  Condition news_;
  std::deque<std::function<void()>> tasks_ KVASIR_GUARDED_BY(mutex_);
  bool over_ KVASIR_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // the last member, since it uses the others
};

}  // namespace kvasir::serve
