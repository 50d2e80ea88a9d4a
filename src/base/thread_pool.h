// Fork and join for kernels: run(n, f) calls f(chunk, worker) for every chunk, on all threads and the caller.
//
// Invariants:
// - One run at a time, from one thread (the session's). Chunks write disjoint memory, so the undefined order of claims
//   never changes a result.
// - A worker that arrives late finds no chunk left and is not waited for: threads beyond the cores cost little.
// - A chunk is claimed by a compare-and-swap on one word, (epoch, chunks left). A successful claim proves that the job
//   read before it is still the current one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include <kvasir/result.h>

namespace kvasir {

class ThreadPool {
 public:
  static constexpr int kMaxThreads = 256;

  /// `threads` includes the caller; 1 starts no thread. Errors: not in 1..256, or the system cannot start a thread.
  static Result<std::unique_ptr<ThreadPool>> create(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls f(chunk, worker) for each chunk in [0, chunks). `worker` in [0, threads()) identifies the calling thread and
  /// so its scratch memory.
  template <class F>
  void run(int chunks, F&& f) {
    using Fn = std::remove_reference_t<F>;
    run_erased(
        chunks, [](void* context, int chunk, int worker) { (*static_cast<Fn*>(context))(chunk, worker); },
        const_cast<void*>(static_cast<const void*>(&f)));
  }

 private:
  using Call = void (*)(void* context, int chunk, int worker);

  ThreadPool();
  void run_erased(int chunks, Call call, void* context);
  bool claim_and_call(int worker);
  void work(int worker);
  void wait_for_epoch(uint32_t seen);

  // The job of the current epoch; stable while its ticket has chunks left.
  std::atomic<Call> call_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<int> chunks_{0};

  alignas(64) std::atomic<uint64_t> ticket_{0};  // epoch << 32 | chunks left
  alignas(64) std::atomic<int> done_{0};
  alignas(64) std::atomic<uint32_t> epoch_{0};  // sleeping workers wait on it
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  int spins_ = 0;  // spins before yielding; 0 if threads outnumber the CPUs
  std::vector<std::thread> workers_;
};

}  // namespace kvasir
