// What this machine can do, measured: the speed limits that everything else is held against.
#include <algorithm>
#include <cstring>
#include <vector>

#include <kvasir/plan.h>

#include "engine/limits.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/system.h"
#include "base/thread_pool.h"
#include "math/compute.h"

namespace kvasir {
namespace {

// Sums 64-bit words; the compiler keeps up with memory.
uint64_t read_all(const std::byte* data, size_t bytes) {
  uint64_t sum[8] = {};
  for (size_t i = 0; i + 64 <= bytes; i += 64) {
    uint64_t words[8];
    std::memcpy(words, data + i, 64);
    for (int j = 0; j < 8; ++j) sum[j] += words[j];
  }
  uint64_t total = 0;
  for (uint64_t s : sum) total += s;
  return total;
}

}  // namespace

Result<double> measure_read_bandwidth(int threads) {
  const size_t bytes = std::min(size_t{256} << 20, available_memory_bytes() / 8);
  KVASIR_TRY(Buffer buffer, Buffer::allocate(bytes, Owner::activations, true));
  KVASIR_TRY(const auto pool, ThreadPool::create(threads));
  buffer.touch();
  constexpr size_t kPiece = size_t{4} << 20;
  const int pieces = static_cast<int>(bytes / kPiece);
  std::vector<uint64_t> sums(static_cast<size_t>(std::max(pieces, 1)));
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double start = now_seconds();
    pool->run(pieces, [&](int piece, int) {
      sums[static_cast<size_t>(piece)] += read_all(buffer.data() + static_cast<size_t>(piece) * kPiece, kPiece);
    });
    best = std::max(best, static_cast<double>(pieces) * static_cast<double>(kPiece) / (now_seconds() - start));
  }
  volatile uint64_t keep = sums[0];  // the sums must be computed
  (void)keep;
  return best;
}

Result<double> measure_fma_rate(int threads) {
  KVASIR_TRY(const auto compute, Compute::create(threads));
  constexpr int64_t kRounds = 200000;
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double start = now_seconds();
    double flops = 0;
    std::vector<double> done(static_cast<size_t>(threads));
    compute->pool().run(threads, [&](int chunk, int) {
      done[static_cast<size_t>(chunk)] = compute->kernels().fma_flops(kRounds);
    });
    for (double d : done) flops += d;
    best = std::max(best, flops / (now_seconds() - start));
  }
  return best;
}

}  // namespace kvasir
