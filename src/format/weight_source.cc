// The resident and the mapped source. Both resolve every pointer at open, so acquire only returns them.
#include "format/weight_source.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/buffer.h"
#include "base/quote.h"
#include "format/scattered_rows.h"
#include "format/streamed_weights.h"

namespace kvasir {
namespace {

using Pointers = std::vector<std::vector<const std::byte*>>;
using Place = std::tuple<int, uint64_t, uint64_t>;  // file, offset, bytes: equal if two mentions are one tensor

constexpr size_t kTensorAlign = 64;
constexpr size_t kReadChunk = size_t{8} << 20;

Place place_of(const TensorInfo& tensor) { return {tensor.file, tensor.offset, tensor.bytes}; }

constexpr size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

/// Calls f once with each distinct tensor of `use`: groups, experts, tables.
template <class F>
void for_each_tensor(const WeightUse& use, F f) {
  std::map<Place, bool> seen;
  const auto once = [&](const TensorInfo* tensor) {
    if (tensor != nullptr && seen.emplace(place_of(*tensor), true).second) f(*tensor);
  };
  for (const auto& group : use.groups)
    for (const TensorPart& part : group) once(part.tensor);
  for (const auto& group : use.experts)
    for (const auto& expert : group)
      for (const TensorPart& part : expert) once(part.tensor);
  for (const TensorInfo* table : use.tables) once(table);
}

class FixedSource : public WeightSource {
 public:
  FixedSource(std::shared_ptr<const TensorDir> dir, size_t total) : dir_(std::move(dir)), total_(total) {}

  Result<std::span<const std::byte* const>> acquire(int group, int, ThreadPool&) override {
    if (group < 0 || group >= groups())
      return fail(Error::internal, fmt::format("weight group {} is out of range, there are {}", group, groups()));
    return std::span<const std::byte* const>(pointers_[static_cast<size_t>(group)]);
  }
  void release(int) override {}
  size_t total_bytes() const override { return total_; }
  int groups() const override { return static_cast<int>(pointers_.size()); }

 protected:
  /// Asks `resolve` for the address of each part, groups in order.
  template <class Resolve>
  void resolve_all(const WeightUse& use, Resolve resolve) {
    for (const auto& group : use.groups) {
      auto& out = pointers_.emplace_back();
      for (const TensorPart& part : group)
        out.push_back(part.tensor == nullptr ? nullptr : resolve(*part.tensor, part.begin));
    }
  }
  const TensorDir& dir() const { return *dir_; }

 private:
  std::shared_ptr<const TensorDir> dir_;
  Pointers pointers_;
  size_t total_;
};

class MappedSource final : public FixedSource {
 public:
  MappedSource(std::shared_ptr<const TensorDir> tensors, const WeightUse& use, size_t total)
      : FixedSource(std::move(tensors), total) {
    resolve_all(use, [this](const TensorInfo& tensor, uint64_t begin) { return address(tensor, begin); });
  }
  Result<void> check() const override {
    if (scattered_ == nullptr) return {};
    return fail(Error::unsupported,
                fmt::format("tensor {} must be assembled from parts that its file stores apart, which mapped weights "
                            "cannot do",
                            in_quotes(scattered_->name_in_file())),
                dir().files[static_cast<size_t>(scattered_->file)]->path().string(),
                "ModelOptions::weights = resident or streamed");
  }
  // A page past the file's end would kill the process, so a truncated file is detected before a pass touches it.
  Result<std::span<const std::byte* const>> acquire(int group, int next, ThreadPool& pool) override {
    KVASIR_CHECK(check());
    if (group == 0)
      for (const auto& file : dir().files) KVASIR_CHECK(file->check_size());
    return FixedSource::acquire(group, next, pool);
  }
  Result<void> copy(const TensorInfo& table, uint64_t begin, std::span<std::byte> out) const override {
    return read_tensor(dir(), table, begin, out);
  }
  size_t resident_bytes() const override { return 0; }
  WeightsMode mode() const override { return WeightsMode::mapped; }

 private:
  const std::byte* address(const TensorInfo& tensor, uint64_t begin) {
    if (!tensor.scattered) return dir().data(tensor).data() + begin;
    if (scattered_ == nullptr) scattered_ = &tensor;
    return nullptr;
  }

  const TensorInfo* scattered_ = nullptr;  // the first scattered tensor of the groups
};

class ResidentSource final : public FixedSource {
 public:
  using FixedSource::FixedSource;

  Result<void> load(const WeightUse& use) {
    std::vector<const TensorInfo*> unique;
    for_each_tensor(use, [&](const TensorInfo& tensor) {
      starts_.emplace(place_of(tensor), bytes_);
      unique.push_back(&tensor);
      bytes_ += round_up(tensor.bytes, kTensorAlign);
    });
    KVASIR_TRY(memory_, Buffer::allocate(bytes_, Owner::weights, true));
    for (const TensorInfo* tensor : unique)
      for (uint64_t done = 0; done < tensor->bytes; done += kReadChunk) {
        const size_t chunk = std::min<uint64_t>(kReadChunk, tensor->bytes - done);
        KVASIR_CHECK(read_tensor(dir(), *tensor, done, {address(*tensor) + done, chunk}));
      }
    resolve_all(use, [this](const TensorInfo& tensor, uint64_t begin) { return address(tensor) + begin; });
    return {};
  }

  Result<void> copy(const TensorInfo& table, uint64_t begin, std::span<std::byte> out) const override {
    std::memcpy(out.data(), address(table) + begin, out.size());
    return {};
  }
  size_t resident_bytes() const override { return bytes_; }
  WeightsMode mode() const override { return WeightsMode::resident; }

 private:
  std::byte* address(const TensorInfo& tensor) const { return memory_.data() + starts_.at(place_of(tensor)); }

  std::map<Place, size_t> starts_;
  Buffer memory_;  // on huge pages
  size_t bytes_ = 0;
};

Result<void> check_place(const TensorDir& dir, const TensorInfo& tensor) {
  for (const FilePiece& piece : pieces_of(tensor, 0, tensor.bytes)) {
    if (piece.file < 0 || static_cast<size_t>(piece.file) >= dir.files.size())
      return fail(Error::internal, fmt::format("tensor {} is in no open file", in_quotes(tensor.name)));
    const MappedFile& file = *dir.files[static_cast<size_t>(piece.file)];
    const uint64_t size = file.bytes().size();
    if (piece.offset > size || piece.bytes > size - piece.offset)
      return fail(Error::damaged,
                  fmt::format("tensor {}: {} bytes at offset {} are past the end of {} bytes", in_quotes(tensor.name),
                              piece.bytes, piece.offset, size),
                  file.path().string());
  }
  return {};
}

/// Returns the bytes of the distinct tensors, after checking that each lies in its file.
Result<size_t> checked_total(const TensorDir& dir, const WeightUse& use) {
  size_t total = 0;
  Result<void> checked;
  for_each_tensor(use, [&](const TensorInfo& tensor) {
    if (checked) checked = check_place(dir, tensor);
    total += tensor.bytes;
  });
  if (!checked) return tl::unexpected(std::move(checked).error());
  return total;
}

Result<void> read_piece(const TensorDir& dir, const TensorInfo& tensor, const FilePiece& piece,
                        std::span<std::byte> out) {
  auto got = dir.files[static_cast<size_t>(piece.file)]->read_at(piece.offset, out);
  if (got) return {};
  return fail(got.error().kind, fmt::format("tensor {}: {}", in_quotes(tensor.name), got.error().what),
              got.error().where, got.error().hint);
}

// Reads some rows at a time, so that the pieces take little memory.
Result<void> read_scattered(const TensorDir& dir, const TensorInfo& tensor, uint64_t begin, std::span<std::byte> out) {
  constexpr size_t kAtOnce = size_t{256} << 10;
  std::vector<std::byte> parts[2];
  for (size_t done = 0; done < out.size();) {
    const size_t n = std::min(kAtOnce, out.size() - done);
    const auto pieces = pieces_of(tensor, begin + done, n);
    for (size_t i = 0; i < pieces.size(); ++i) {
      parts[i].resize(pieces[i].bytes);
      KVASIR_CHECK(read_piece(dir, tensor, pieces[i], parts[i]));
    }
    assemble(tensor, begin + done, parts[0].data(), parts[1].data(), out.subspan(done, n));
    done += n;
  }
  return {};
}

}  // namespace

Result<void> read_tensor(const TensorDir& dir, const TensorInfo& tensor, uint64_t begin, std::span<std::byte> out) {
  if (tensor.scattered) return read_scattered(dir, tensor, begin, out);
  return read_piece(dir, tensor, pieces_of(tensor, begin, out.size())[0], out);
}

Result<std::unique_ptr<WeightSource>> open_weights(std::shared_ptr<const TensorDir> dir, WeightUse use,
                                                   WeightsMode mode, std::shared_ptr<Budget> budget) {
  try {
    KVASIR_TRY(const size_t total, checked_total(*dir, use));
    switch (mode) {
      case WeightsMode::automatic:
        break;
      case WeightsMode::resident: {
        auto source = std::make_unique<ResidentSource>(std::move(dir), total);
        KVASIR_CHECK(source->load(use));
        return source;
      }
      case WeightsMode::mapped:
        return std::make_unique<MappedSource>(std::move(dir), use, total);
      case WeightsMode::streamed:
        return StreamedWeights::open(std::move(dir), std::move(use), total, std::move(budget));
    }
    return fail(Error::bad_argument, "unknown weight mode");
  } catch (const std::bad_alloc&) {
    return fail(Error::no_room, "out of memory for the table of weights");
  }
}

}  // namespace kvasir
