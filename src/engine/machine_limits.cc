// Measured limits of this machine: reads from memory and disk, FMA and int8 rates. Speeds are compared with these.
#include <algorithm>
#include <vector>

#include <kvasir/plan.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/system.h"
#include "format/background_reader.h"
#include "math/compute.h"

namespace kvasir {

namespace {

Result<double> measure_read_bandwidth(int threads) {
  KVASIR_TRY(const auto compute, Compute::create(threads));
  constexpr size_t kPiece = size_t{4} << 20;
  const int pieces = static_cast<int>(std::min(size_t{64}, available_memory_bytes() / 8 / kPiece + 1));
  KVASIR_TRY(Buffer buffer, Buffer::allocate(static_cast<size_t>(pieces) * kPiece, Owner::activations, true));
  buffer.touch();
  std::vector<float> sums(static_cast<size_t>(pieces));
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double start = now_seconds();
    compute->pool().run(pieces, [&](int piece, int) {
      const std::byte* from = buffer.data() + static_cast<size_t>(piece) * kPiece;
      sums[static_cast<size_t>(piece)] = compute->kernels().read_all(reinterpret_cast<const float*>(from),
                                                                     static_cast<int64_t>(kPiece / sizeof(float)));
    });
    best = std::max(best, static_cast<double>(buffer.bytes()) / (now_seconds() - start));
  }
  return best;
}

Result<double> measure_disk_bandwidth(const std::string& file) {
  KVASIR_TRY(const auto mapped, MappedFile::open(file));
  if (mapped->direct_fd() < 0)
    return fail(Error::unsupported, "this file system cannot read past the page cache", file);
  constexpr size_t kPiece = size_t{32} << 20;
  constexpr double kSeconds = 0.3;
  KVASIR_TRY(Buffer buffer, Buffer::allocate(kPiece, Owner::activations));
  BackgroundReader::Options options;
  options.fill_page_cache = false;
  options.cached_too = true;
  KVASIR_TRY(const auto reader, BackgroundReader::create(mapped->bytes().size(), options));
  KVASIR_TRY(const auto pool, ThreadPool::create(1));
  const double start = now_seconds();
  size_t done = 0;
  for (size_t at = 0; at < mapped->bytes().size() && now_seconds() - start < kSeconds; at += kPiece) {
    const size_t bytes = std::min(kPiece, mapped->bytes().size() - at);
    reader->start({{mapped.get(), at, bytes, buffer.data()}});
    if (auto read = reader->wait(*pool); !read) return tl::unexpected(std::move(read).error().error);
    done += bytes;
  }
  return static_cast<double>(done) / (now_seconds() - start);
}

using Rate = double (*)(int64_t rounds);

Result<double> measure_rate(int threads, Rate (*rate_of)(const Kernels&)) {
  KVASIR_TRY(const auto compute, Compute::create(threads));
  const Rate rate = rate_of(compute->kernels());
  constexpr int64_t kRounds = 2000000;  // about 10 ms
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double start = now_seconds();
    double operations = 0;
    std::vector<double> done(static_cast<size_t>(threads));
    compute->pool().run(threads, [&](int chunk, int) { done[static_cast<size_t>(chunk)] = rate(kRounds); });
    for (double d : done) operations += d;
    best = std::max(best, operations / (now_seconds() - start));
  }
  return best;
}

}  // namespace

Result<Rates> measure_rates(int threads, const std::string& file) {
  if (threads == 0) threads = default_threads();
  Rates rates;
  KVASIR_TRY(rates.memory, measure_read_bandwidth(threads));
  KVASIR_TRY(rates.flops, measure_rate(threads, [](const Kernels& k) { return k.fma_flops; }));
  KVASIR_TRY(rates.int8_ops, measure_rate(threads, [](const Kernels& k) { return k.integer.int8_ops; }));
  if (file.empty()) return rates;
  if (const auto disk = measure_disk_bandwidth(file)) rates.disk = *disk;
  return rates;
}

}  // namespace kvasir
