// Waiting threads spin briefly, then yield, then sleep on a futex.
#include "base/thread_pool.h"

#include <sched.h>

#include <system_error>

#include <fmt/format.h>

#include "base/float_env.h"
#include "base/system.h"

namespace kvasir {
namespace {

constexpr int kSpins = 4000, kYields = 16;

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield");
#endif
}

constexpr uint64_t make_ticket(uint32_t epoch, int left) {
  return static_cast<uint64_t>(epoch) << 32 | static_cast<uint32_t>(left);
}

}  // namespace

ThreadPool::ThreadPool() = default;

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int threads) {
  if (threads < 1 || threads > kMaxThreads)
    return fail(Error::bad_argument, fmt::format("{} threads, allowed 1..{}", threads, kMaxThreads),
                "EngineOptions::threads", "the number of cores");
  std::unique_ptr<ThreadPool> pool(new ThreadPool);
  pool->spins_ = threads > available_cpus() ? 0 : kSpins;
  try {
    for (int worker = 1; worker < threads; ++worker)
      pool->workers_.emplace_back([p = pool.get(), worker] { p->work(worker); });
  } catch (const std::system_error& error) {
    return fail(Error::io, fmt::format("cannot start thread {}: {}", pool->threads() + 1, error.what()),
                "EngineOptions::threads", "fewer threads");
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  ++epoch_;
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_erased(int chunks, Call call, void* context) {
  if (chunks <= 0) return;
  if (workers_.empty() || chunks == 1) {
    for (int chunk = 0; chunk < chunks; ++chunk) call(context, chunk, 0);
    return;
  }
  call_.store(call, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  chunks_.store(chunks, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  const uint32_t epoch = epoch_.load(std::memory_order_relaxed) + 1;
  ticket_.store(make_ticket(epoch, chunks));
  epoch_.store(epoch);
  if (sleepers_.load() > 0) epoch_.notify_all();

  while (claim_and_call(0)) {
  }
  for (int spin = 0; done_.load(std::memory_order_acquire) != chunks; ++spin) {
    if (spin < spins_)
      pause_cpu();
    else
      sched_yield();
  }
}

bool ThreadPool::claim_and_call(int worker) {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  for (;;) {
    const int left = static_cast<int>(ticket & 0xffffffffu);
    if (left == 0) return false;
    const Call call = call_.load(std::memory_order_relaxed);
    void* context = context_.load(std::memory_order_relaxed);
    const int chunks = chunks_.load(std::memory_order_relaxed);
    if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    call(context, chunks - left, worker);
    done_.fetch_add(1, std::memory_order_release);
    return true;
  }
}

void ThreadPool::work(int worker) {
  const FloatEnv env;
  uint32_t seen = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    wait_for_epoch(seen);
    seen = epoch_.load();
    while (claim_and_call(worker)) {
    }
  }
}

void ThreadPool::wait_for_epoch(uint32_t seen) {
  for (int spin = 0; spin < spins_; ++spin) {
    if (epoch_.load(std::memory_order_relaxed) != seen) return;
    pause_cpu();
  }
  for (int yield = 0; yield < kYields; ++yield) {
    if (epoch_.load(std::memory_order_relaxed) != seen) return;
    sched_yield();
  }
  ++sleepers_;
  epoch_.wait(seen);
  --sleepers_;
}

}  // namespace kvasir
