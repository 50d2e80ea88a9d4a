// The standard mutex, lock and condition variable, with the annotations of clang's thread safety analysis.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/thread_annotations.h"

namespace kvasir {

class KVASIR_CAPABILITY("mutex") Mutex {
 public:
  void lock() KVASIR_ACQUIRE() { mutex_.lock(); }
  void unlock() KVASIR_RELEASE() { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

/// Holds the mutex until the end of the scope.
class KVASIR_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) KVASIR_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() KVASIR_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class Condition {
 public:
  /// Releases the mutex until a notification or a spurious wakeup, so callers test their condition in a loop.
  void wait(Mutex& mutex) KVASIR_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace kvasir
