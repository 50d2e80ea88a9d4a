// Writes the planned tensors in file order, some rows at a time, which the threads share.
#include "lab/quantize.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <kvasir/model.h>

#include "base/float_env.h"
#include "base/quote.h"
#include "base/system.h"
#include "base/thread_pool.h"
#include "lab/quantize_importance.h"
#include "lab/quantize_outline.h"

namespace kvasir {
namespace fs = std::filesystem;

namespace {

constexpr int64_t kPieceElems = 1 << 20;  // elements encoded between two writes
constexpr int64_t kChunkElems = 1 << 14;  // elements that a thread encodes at a time

/// Sums over elements x and their stored values y.
struct Errors {
  double squares = 0, lost = 0;  // of x^2, and of (x - y)^2

  void add(const float* x, const float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const double e = double{x[i]} - y[i];
      squares += double{x[i]} * x[i], lost += e * e;
    }
  }
  void add(const Errors& other) { squares += other.squares, lost += other.lost; }
};

class Encoder {
 public:
  Encoder(const QuantizeOptions& options, ThreadPool& pool, const ImportanceMatrix& importance)
      : options_(options), pool_(pool), importance_(importance) {}

  Result<QuantizeReport> run(const GgufOutline& outline) {
    report_.notes = outline.notes;
    std::vector<TensorDecl> decls;
    for (const TensorOutline& t : outline.tensors) {
      decls.push_back(t.decl);
      all_ += bytes_of(t);
    }
    KVASIR_CHECK(writer_.create(options_.out, outline.entries, std::move(decls)));
    for (const TensorOutline& t : outline.tensors) {
      KVASIR_CHECK(tensor(t));
      count(t);
    }
    KVASIR_CHECK(writer_.finish());
    report_.file_bytes = writer_.file_bytes();
    std::stable_sort(report_.types.begin(), report_.types.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    return std::move(report_);
  }

 private:
  static uint64_t bytes_of(const TensorOutline& t) {
    return static_cast<uint64_t>(t.rows()) * t.decl.codec->row_bytes(t.cols());
  }

  void count(const TensorOutline& t) {
    const auto found = std::find_if(report_.types.begin(), report_.types.end(),
                                    [&](const auto& type) { return type.name == t.decl.codec->name; });
    QuantizeReport::Type& type = found != report_.types.end() ? *found : report_.types.emplace_back();
    type.name = t.decl.codec->name;
    ++type.tensors;
    type.bytes += bytes_of(t);
    if (t.decl.name != "rope_freqs.weight") report_.parameters += t.rows() * t.cols();
  }

  Result<void> tensor(const TensorOutline& t) {
    const int64_t piece = std::max<int64_t>(1, kPieceElems / t.cols());
    int64_t saturated = 0;
    errors_ = {};
    KVASIR_CHECK(find_importance(t));
    for (int64_t first = 0; first < t.rows(); first += piece) {
      const int64_t rows = std::min(piece, t.rows() - first);
      KVASIR_TRY(const int64_t lost, encode(t, first, rows));
      saturated += lost;
      KVASIR_CHECK(writer_.write(encoded_));
      done_ += encoded_.size();
      if (options_.progress) options_.progress(done_, all_);
    }
    if (saturated > 0)
      report_.notes.push_back(
          fmt::format("{}: numbers outside the range of {}: {}", t.decl.name, t.decl.codec->name, saturated));
    report_.tensors.push_back(
        {t.decl.name, t.decl.codec->name, errors_.squares > 0 ? std::sqrt(errors_.lost / errors_.squares) : 0.0});
    return {};
  }

  // Sets means_ to the importance of the tensor's columns, or to nothing.
  Result<void> find_importance(const TensorOutline& t) {
    means_.clear();
    const auto found = importance_.find(t.decl.name);
    if (found == importance_.end() || t.decl.codec->encode_by == nullptr) return {};
    const auto matrices = static_cast<int64_t>(found->second.counts.size());
    if (found->second.cols != t.cols() || t.rows() % matrices != 0)
      return fail(Error::bad_argument,
                  fmt::format("{} has other columns than the model's tensor", in_quotes(t.decl.name)),
                  options_.importance, "the importance of this model");
    means_ = found->second.means();
    rows_of_matrix_ = t.rows() / matrices;
    return {};
  }

  // Encodes rows [first, first + rows) into encoded_. Returns the number of saturated values.
  Result<int64_t> encode(const TensorOutline& t, int64_t first, int64_t rows) {
    const size_t row_bytes = t.decl.codec->row_bytes(t.cols());
    const int64_t chunk = std::max<int64_t>(1, kChunkElems / t.cols());
    encoded_.resize(static_cast<size_t>(rows) * row_bytes);
    std::atomic<int64_t> saturated{0};
    std::atomic<bool> finite{true};
    scratch_.resize(static_cast<size_t>(pool_.threads()));
    std::vector<Errors> errors(static_cast<size_t>((rows + chunk - 1) / chunk));
    pool_.run(static_cast<int>(errors.size()), [&](int c, int worker) {
      std::vector<float>& values = scratch_[static_cast<size_t>(worker)];
      values.resize(static_cast<size_t>(2 * t.cols()));
      for (int64_t r = c * chunk; r < std::min(rows, (c + 1) * chunk); ++r) {
        std::byte* const to = encoded_.data() + static_cast<size_t>(r) * row_bytes;
        t.row(first + r, values.data());
        if (!std::all_of(values.begin(), values.begin() + t.cols(), [](float x) { return std::isfinite(x); }))
          finite = false;
        saturated += encode_row(*t.decl.codec, first + r, values.data(), to, t.cols());
        t.decl.codec->decode(to, values.data() + t.cols(), t.cols());
        errors[static_cast<size_t>(c)].add(values.data(), values.data() + t.cols(), t.cols());
      }
    });
    for (const Errors& part : errors) errors_.add(part);
    if (!finite && t.decl.codec->block_elems > 1)
      return fail(Error::damaged, fmt::format("tensor {} holds a value that is not finite", in_quotes(t.decl.name)),
                  options_.model, "weights without NaN, or QuantizeOptions::type = bf16");
    return saturated.load();
  }

  int64_t encode_row(const Codec& codec, int64_t row, const float* x, std::byte* to, int64_t cols) const {
    if (means_.empty()) return codec.encode(x, to, cols);
    return codec.encode_by(x, means_.data() + row / rows_of_matrix_ * cols, to, cols);
  }

  const QuantizeOptions& options_;
  ThreadPool& pool_;
  const ImportanceMatrix& importance_;
  std::vector<float> means_;  // of the current tensor, [matrices][cols]; empty: unknown
  int64_t rows_of_matrix_ = 1;
  Errors errors_;  // of the current tensor
  GgufWriter writer_;
  QuantizeReport report_;
  std::vector<std::byte> encoded_;
  std::vector<std::vector<float>> scratch_;
  uint64_t done_ = 0, all_ = 0;
};

// Reads the importance of the model's tensors. Notes what has no effect.
Result<ImportanceMatrix> importance_for(const GgufOutline& outline, const std::string& path,
                                        std::vector<std::string>* notes) {
  if (path.empty()) return ImportanceMatrix();
  KVASIR_TRY(ImportanceMatrix all, read_importance(path));
  std::set<std::string_view> without;
  size_t found = 0;
  for (const TensorOutline& t : outline.tensors) {
    if (!all.contains(t.decl.name)) continue;
    ++found;
    if (t.decl.codec->encode_by == nullptr) without.insert(t.decl.codec->name);
  }
  if (found == 0)
    return fail(Error::bad_argument, "names no tensor of this model", path, "the importance of this model");
  if (found < all.size())
    notes->push_back(
        fmt::format("{}: {} of its {} tensors are not in this model", path, all.size() - found, all.size()));
  if (!without.empty())
    notes->push_back(fmt::format("the importance has no effect on tensors of type {}", fmt::join(without, ", ")));
  return all;
}

Result<QuantizeReport> quantize_checked(const QuantizeOptions& options) {
  const FloatEnv env;
  KVASIR_TRY(const std::string model, find_model(options.model));
  KVASIR_CHECK(check_gguf_output(options.out, model, options.force));
  KVASIR_TRY(GgufOutline outline, outline_gguf(model, options));
  KVASIR_TRY(const auto pool, ThreadPool::create(options.threads == 0 ? default_threads() : options.threads));
  KVASIR_TRY(const ImportanceMatrix importance, importance_for(outline, options.importance, &outline.notes));
  return Encoder(options, *pool, importance).run(outline);
}

}  // namespace

Result<QuantizeReport> quantize(const QuantizeOptions& options) {
  try {
    return quantize_checked(options);
  } catch (const std::exception& e) {  // thrown by another library, for example when memory runs out
    return fail(Error::no_room, e.what(), options.model);
  }
}

}  // namespace kvasir
