// Writes the planned tensors in file order, some rows at a time, which the threads share.
#include "lab/quantize.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <kvasir/model.h>

#include "base/float_env.h"
#include "base/quote.h"
#include "base/system.h"
#include "base/thread_pool.h"
#include "lab/quantize_outline.h"

namespace kvasir {
namespace fs = std::filesystem;

namespace {

constexpr int64_t kPieceElems = 1 << 20;  // elements encoded between two writes
constexpr int64_t kChunkElems = 1 << 14;  // elements that a thread encodes at a time

class Encoder {
 public:
  Encoder(const QuantizeOptions& options, ThreadPool& pool) : options_(options), pool_(pool) {}

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
    pool_.run(static_cast<int>((rows + chunk - 1) / chunk), [&](int c, int worker) {
      std::vector<float>& values = scratch_[static_cast<size_t>(worker)];
      values.resize(static_cast<size_t>(t.cols()));
      for (int64_t r = c * chunk; r < std::min(rows, (c + 1) * chunk); ++r) {
        t.row(first + r, values.data());
        if (!std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); })) finite = false;
        saturated +=
            t.decl.codec->encode(values.data(), encoded_.data() + static_cast<size_t>(r) * row_bytes, t.cols());
      }
    });
    if (!finite && t.decl.codec->block_elems > 1)
      return fail(Error::damaged, fmt::format("tensor {} holds a value that is not finite", in_quotes(t.decl.name)),
                  options_.model, "weights without NaN, or QuantizeOptions::type = bf16");
    return saturated.load();
  }

  const QuantizeOptions& options_;
  ThreadPool& pool_;
  GgufWriter writer_;
  QuantizeReport report_;
  std::vector<std::byte> encoded_;
  std::vector<std::vector<float>> scratch_;
  uint64_t done_ = 0, all_ = 0;
};

Result<void> check_output(const fs::path& out, const fs::path& model, bool force) {
  std::error_code ec;
  if (out.extension() != ".gguf")
    return fail(Error::bad_argument, "the output's name does not end in .gguf", out.string(), "NAME.gguf");
  if (!fs::exists(out, ec)) return {};
  if (fs::equivalent(out, model, ec))
    return fail(Error::bad_argument, "is the model itself", out.string(), "another name");
  if (!fs::is_regular_file(out, ec))
    return fail(Error::bad_argument, "exists and is not a file", out.string(), "another name");
  if (!force)
    return fail(Error::bad_argument, "exists", out.string(),
                "another name, or QuantizeOptions::force = true to replace it");
  return {};
}

Result<QuantizeReport> quantize_checked(const QuantizeOptions& options) {
  const FloatEnv env;
  const std::vector<std::string_view> known = quantize_types();
  if (std::find(known.begin(), known.end(), options.type) == known.end())
    return fail(Error::bad_argument, fmt::format("{} is not a type of weights to write", in_quotes(options.type)),
                "QuantizeOptions::type", fmt::format("{}", fmt::join(known, ", ")));
  KVASIR_TRY(const std::string model, find_model(options.model));
  KVASIR_CHECK(check_output(options.out, model, options.force));
  KVASIR_TRY(const GgufOutline outline, outline_gguf(model, options));
  KVASIR_TRY(const auto pool, ThreadPool::create(options.threads == 0 ? default_threads() : options.threads));
  return Encoder(options, *pool).run(outline);
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
