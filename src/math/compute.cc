// Splitting products over threads.
#include "math/compute.h"

#include <algorithm>
#include <cstdint>

#include "base/float_env.h"
#include "math/targets.h"

namespace kvasir {
namespace {

// A fork of a few-token product has so many chunks a thread, of so many weight bytes at least and at most. More would
// share more evenly, but memory is read faster in long runs (docs/performance.md).
constexpr size_t kChunksPerThread = 2, kLeastChunkBytes = size_t{8} << 10, kMostChunkBytes = size_t{1} << 20;

MatmulArgs make_args(const Rows& x, const MatmulJob& job) {
  MatmulArgs args;
  args.w = job.w.data;
  args.row_bytes = job.w.row_bytes();
  args.form = job.w.codec->form;
  args.conv1d = job.w.conv1d;
  args.decode = job.w.codec->decode;
  args.dot = job.w.codec->dot;
  args.block_elems = job.w.codec->block_elems;
  args.block_bytes = job.w.codec->block_bytes;
  args.rows = job.w.rows;
  args.cols = job.w.cols;
  args.x = x.data;
  args.x_stride = x.stride;
  args.y = job.y.data;
  args.y_stride = job.y.stride;
  args.tokens = x.n;
  args.bias = job.bias;
  return args;
}

size_t stored_row_bytes(const MatmulJob& job) { return job.w.codec->row_bytes(job.w.cols); }

// Weight bytes in a chunk of a few-token product: as many chunks for each thread.
size_t chunk_bytes(std::span<const MatmulJob> jobs, int threads) {
  size_t bytes = 0;
  for (const MatmulJob& job : jobs) bytes += static_cast<size_t>(job.w.rows) * stored_row_bytes(job);
  const size_t share = bytes / static_cast<size_t>(threads),
               chunks = std::max(kChunksPerThread, (share + kMostChunkBytes - 1) / kMostChunkBytes);
  return std::max(share / chunks + 1, kLeastChunkBytes);
}

bool has_integers(const MatmulJob& job) { return job.w.codec->act == Act::q8; }

// Output rows per chunk: a panel for many tokens, about `bytes` of weights for few.
int64_t rows_per_chunk(int tokens, const MatmulJob& job, size_t bytes) {
  if (tokens > (has_integers(job) ? kFewIntegerTokens : kFewTokens)) return kPanelRows;
  const auto rows = static_cast<int64_t>(bytes / std::max<size_t>(1, stored_row_bytes(job)));
  return std::max<int64_t>(16, (rows + 15) / 16 * 16);
}

// Puts the outputs of one row in order, group by group.
void unpair(float* y, int64_t n, int pair_dim) {
  float group[kMaxPairDim];
  const int half = pair_dim / 2;
  for (int64_t begin = 0; begin < n; begin += pair_dim) {
    std::copy_n(y + begin, pair_dim, group);
    for (int i = 0; i < half; ++i) {
      y[begin + i] = group[2 * i];
      y[begin + half + i] = group[2 * i + 1];
    }
  }
}

struct Share {
  const MatmulJob* job;
  int64_t rows_per_chunk;
  int first_chunk, end_chunk;
};

}  // namespace

Result<std::unique_ptr<Compute>> Compute::create(int threads) {
  KVASIR_TRY(const CpuTarget target, choose_cpu_target());
  std::unique_ptr<Compute> compute(new Compute);
  compute->kernels_ = &kernels_for(target);
  KVASIR_TRY(compute->pool_, ThreadPool::create(threads));
  compute->scratch_.resize(static_cast<size_t>(threads));
  return compute;
}

Result<void> Compute::reserve_scratch(int64_t floats) {
  if (floats <= scratch_floats_) return {};
  std::vector<Buffer> grown(scratch_.size());
  for (Buffer& buffer : grown) {
    KVASIR_TRY(buffer, Buffer::allocate(static_cast<size_t>(floats) * sizeof(float), Owner::activations));
  }
  scratch_ = std::move(grown);
  scratch_floats_ = floats;
  return {};
}

Result<void> Compute::reserve_acts(int64_t n, int64_t cols) {
  const size_t bytes = static_cast<size_t>(n * (cols / kActElems)) * sizeof(ActBlock);
  if (bytes > acts_.bytes()) {
    KVASIR_TRY(acts_, Buffer::allocate(bytes, Owner::activations));
  }
  const auto few = static_cast<size_t>(std::min<int64_t>(n, kFewIntegerTokens) * arranged_bytes(cols)) * kArrangements;
  if (few > arranged_.bytes()) {
    KVASIR_TRY(arranged_, Buffer::allocate(few, Owner::activations));
  }
  return {};
}

const ActBlock* Compute::encode_x(const Rows& x, std::span<const MatmulJob> jobs) {
  if (std::none_of(jobs.begin(), jobs.end(), has_integers)) return nullptr;
  auto* acts = reinterpret_cast<ActBlock*>(acts_.data());
  for_rows(x.n, [&](int t) { kernels_->integer.encode_act(x.row(t), acts + t * (x.cols / kActElems), x.cols); });
  if (x.n > kFewIntegerTokens) return acts;
  const auto wanted = [&](Arrangement arrangement) {
    return std::any_of(jobs.begin(), jobs.end(), [&](const MatmulJob& job) {
      return has_integers(job) && arrangement_of(job.w.codec->form) == arrangement;
    });
  };
  for (int i = 0; i < kArrangements; ++i) {
    const auto arrangement = static_cast<Arrangement>(i);
    if (!wanted(arrangement)) continue;
    for (int t = 0; t < x.n; ++t)
      kernels_->integer.arrange(arrangement, acts + t * (x.cols / kActElems), x.cols / kActElems,
                                arranged(arrangement, x) + t * arranged_bytes(x.cols));
  }
  return acts;
}

std::byte* Compute::arranged(Arrangement arrangement, const Rows& x) {
  return arranged_.data() + static_cast<int64_t>(arrangement) * x.n * arranged_bytes(x.cols);
}

void Compute::matmul(const Rows& x, std::span<const MatmulJob> jobs) {
  if (x.n == 0) return;
  const ActBlock* acts = encode_x(x, jobs);
  const size_t bytes = chunk_bytes(jobs, threads());
  std::vector<Share> shares;
  int chunks = 0;
  for (const MatmulJob& job : jobs) {
    const int64_t per_chunk = rows_per_chunk(x.n, job, bytes);
    const int end = chunks + static_cast<int>((job.w.rows + per_chunk - 1) / per_chunk);
    shares.push_back(Share{&job, per_chunk, chunks, end});
    chunks = end;
  }
  pool_->run(chunks, [&](int chunk, int worker) {
    const Share* share = shares.data();
    while (chunk >= share->end_chunk) ++share;
    MatmulArgs args = make_args(x, *share->job);
    args.act = acts;
    if (acts != nullptr && x.n <= kFewIntegerTokens) args.arranged = arranged(arrangement_of(args.form), x);
    args.row_begin = (chunk - share->first_chunk) * share->rows_per_chunk;
    args.row_end = std::min(args.rows, args.row_begin + share->rows_per_chunk);
    args.panel = scratch(worker);
    (has_integers(*share->job) ? kernels_->integer.matmul : kernels_->matmul)(args);
  });
  for (const MatmulJob& job : jobs)
    if (job.w.pair_dim != 0) for_rows(x.n, [&](int t) { unpair(job.y.row(t), job.w.rows, job.w.pair_dim); });
}

}  // namespace kvasir
