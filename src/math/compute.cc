// Divides products among the threads.
#include "math/compute.h"

#include <algorithm>
#include <cstdint>

#include "base/float_env.h"
#include "math/targets.h"

namespace kvasir {
namespace {

// A chunk of a product of few tokens has two thirds of the weight bytes left per thread, but at least this many bytes:
// memory is read faster in long runs (docs/performance.md). The last chunks are short, so no thread waits long for
// another.
constexpr size_t kLeastChunkBytes = size_t{128} << 10;
constexpr int64_t kChunkRows = 16;  // a chunk of a product of few tokens has a multiple of this
// Passes of at most this many rows use such chunks too, so that kernels can prefetch the rows that follow. Their chunks
// are shorter, since each byte is more work.
constexpr int kSomeTokens = 64;
static_assert(kArrangedRows >= kFewIntegerTokens);

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
  args.x = x.row(job.first);
  args.x_stride = x.stride;
  args.y = job.y.data;
  args.y_stride = job.y.stride;
  args.tokens = job.y.n;
  args.bias = job.bias;
  return args;
}

size_t stored_row_bytes(const MatmulJob& job) { return job.w.codec->row_bytes(job.w.cols); }

bool has_integers(const MatmulJob& job) { return job.w.codec->act == Act::q8; }

// Whether the job takes the path for few tokens; x_rows is the number of rows in the pass.
bool is_few(int x_rows, const MatmulJob& job) {
  if (!has_integers(job)) return job.y.n <= kFewTokens;
  return job.y.n <= kFewIntegerTokens && x_rows <= kArrangedRows;
}

// Whether every row of a small pass meets every weight of this matrix.
bool is_some(int x_rows, const MatmulJob& job) { return !job.w.conv1d && job.y.n == x_rows && x_rows <= kSomeTokens; }

/// A range of output rows of one job.
struct Piece {
  const MatmulJob* job;
  int64_t begin, end;
};
/// The work of one parallel section: chunk i is pieces[ends[i - 1]] to pieces[ends[i] - 1].
struct Chunks {
  std::vector<Piece> pieces;
  std::vector<int> ends;

  void close() { ends.push_back(static_cast<int>(pieces.size())); }
  std::span<const Piece> operator[](int i) const {
    const auto from = static_cast<size_t>(i == 0 ? 0 : ends[static_cast<size_t>(i) - 1]);
    return std::span(pieces).subspan(from, static_cast<size_t>(ends[static_cast<size_t>(i)]) - from);
  }
};

void add_panels(const MatmulJob& job, Chunks* chunks) {
  for (int64_t row = 0; row < job.w.rows; row += kPanelRows) {
    chunks->pieces.push_back({&job, row, std::min(job.w.rows, row + kPanelRows)});
    chunks->close();
  }
}

// Adds chunks from long to short; one chunk may span several jobs.
void add_long(std::span<const MatmulJob* const> jobs, int threads, size_t least, Chunks* chunks) {
  if (jobs.empty()) return;
  size_t left = 0;
  for (const MatmulJob* job : jobs) left += static_cast<size_t>(job->w.rows) * stored_row_bytes(*job);
  const auto share = [&] { return std::max(left * 2 / (3 * static_cast<size_t>(threads)), least); };
  size_t wanted = share();
  for (const MatmulJob* job : jobs) {
    const size_t row_bytes = std::max<size_t>(1, stored_row_bytes(*job));
    for (int64_t row = 0; row < job->w.rows;) {
      const auto rows = static_cast<int64_t>(wanted / row_bytes) / kChunkRows * kChunkRows + kChunkRows;
      const Piece piece{job, row, std::min(job->w.rows, row + rows)};
      const size_t bytes = static_cast<size_t>(piece.end - row) * row_bytes;
      chunks->pieces.push_back(piece);
      row = piece.end;
      left -= bytes;
      if (bytes < wanted) {
        wanted -= bytes;
      } else {
        chunks->close();
        wanted = share();
      }
    }
  }
  if (chunks->ends.empty() || chunks->ends.back() != static_cast<int>(chunks->pieces.size())) chunks->close();
}

Chunks divide(std::span<const MatmulJob> jobs, int x_rows, int threads) {
  Chunks chunks;
  std::vector<const MatmulJob*> few, some;
  for (const MatmulJob& job : jobs) {
    if (is_few(x_rows, job))
      few.push_back(&job);
    else if (is_some(x_rows, job))
      some.push_back(&job);
    else
      add_panels(job, &chunks);
  }
  add_long(some, threads, kLeastChunkBytes * kFewTokens / static_cast<size_t>(x_rows), &chunks);
  add_long(few, threads, kLeastChunkBytes, &chunks);
  return chunks;
}

// Reorders the outputs of one row, group by group: RowOrder::stored() of each, without its divisions.
void put_in_order(float* y, int64_t n, const RowOrder& order) {
  std::vector<float> group(static_cast<size_t>(order.group));
  for (int64_t begin = 0; begin < n; begin += order.group) {
    std::copy_n(y + begin, order.group, group.begin());
    float* to = y + begin;
    for (int part = 0; part < order.parts; ++part)
      for (int64_t i = 0; i < order.group / (order.parts * order.unit); ++i)
        to = std::copy_n(group.begin() + (i * order.parts + part) * order.unit, order.unit, to);
  }
}

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

Result<void> Compute::reserve_acts(int64_t n, int64_t cols, int few_rows) {
  const size_t bytes = static_cast<size_t>(n * (cols / kActElems)) * sizeof(ActBlock);
  if (bytes > acts_.bytes()) {
    KVASIR_TRY(acts_, Buffer::allocate(bytes, Owner::activations));
  }
  const auto few = static_cast<size_t>(std::min<int64_t>(n, few_rows) * arranged_bytes(cols)) * kArrangements;
  if (few > arranged_.bytes()) {
    KVASIR_TRY(arranged_, Buffer::allocate(few, Owner::activations));
  }
  return {};
}

const ActBlock* Compute::encode_x(const Rows& x, std::span<const MatmulJob> jobs) {
  if (std::none_of(jobs.begin(), jobs.end(), has_integers)) return nullptr;
  auto* acts = reinterpret_cast<ActBlock*>(acts_.data());
  for_rows(x.n, [&](int t) { kernels_->integer.encode_act(x.row(t), acts + t * (x.cols / kActElems), x.cols); });
  const auto wanted = [&](Arrangement arrangement) {
    return std::any_of(jobs.begin(), jobs.end(), [&](const MatmulJob& job) {
      return has_integers(job) && is_few(x.n, job) && arrangement_of(job.w.codec->form) == arrangement;
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
  if (watch_)
    for (const MatmulJob& job : jobs) watch_(x, job);
  const ActBlock* acts = encode_x(x, jobs);
  const Chunks chunks = divide(jobs, x.n, threads());
  pool_->run(static_cast<int>(chunks.ends.size()), [&](int chunk, int worker) {
    for (const Piece& piece : chunks[chunk]) {
      MatmulArgs args = make_args(x, *piece.job);
      if (has_integers(*piece.job)) {
        args.act = acts + piece.job->first * (x.cols / kActElems);
        if (is_few(x.n, *piece.job))
          args.arranged = arranged(arrangement_of(args.form), x) + piece.job->first * arranged_bytes(x.cols);
      }
      args.row_begin = piece.begin;
      args.row_end = piece.end;
      args.panel = scratch(worker);
      (has_integers(*piece.job) ? kernels_->integer.matmul : kernels_->matmul)(args);
    }
  });
  for (const MatmulJob& job : jobs)
    if (job.w.order.group != 0) for_rows(job.y.n, [&](int t) { put_in_order(job.y.row(t), job.w.rows, job.w.order); });
}

}  // namespace kvasir
