// The resident and the mapped source. Both resolve every pointer at open, so acquire only hands them out.
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
#include "format/streamed_weights.h"

namespace kvasir {
namespace {

using Pointers = std::vector<std::vector<const std::byte*>>;
using Place = std::tuple<int, uint64_t, uint64_t>;  // file, offset, bytes: what makes two mentions the same tensor

constexpr size_t kTensorAlign = 64;
constexpr size_t kReadChunk = size_t{8} << 20;

Place place_of(const TensorInfo& tensor) { return {tensor.file, tensor.offset, tensor.bytes}; }

constexpr size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

/// Calls f once with each distinct tensor of `use`, groups first.
template <class F>
void for_each_tensor(const WeightUse& use, F f) {
  std::map<Place, bool> seen;
  const auto once = [&](const TensorInfo* tensor) {
    if (tensor != nullptr && seen.emplace(place_of(*tensor), true).second) f(*tensor);
  };
  for (const auto& group : use.groups)
    for (const TensorPart& part : group) once(part.tensor);
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
  /// Asks `resolve` for each tensor's address, groups in order.
  template <class Resolve>
  void resolve_all(const WeightUse& use, Resolve resolve) {
    for (const auto& group : use.groups) {
      auto& out = pointers_.emplace_back();
      for (const TensorPart& part : group)
        out.push_back(part.tensor == nullptr ? nullptr : resolve(*part.tensor) + part.begin);
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
    resolve_all(use, [this](const TensorInfo& tensor) { return dir().data(tensor).data(); });
  }
  // A page past the file's end would kill the process, so a file that was cut is noticed before a pass touches it.
  Result<std::span<const std::byte* const>> acquire(int group, int next, ThreadPool& pool) override {
    if (group == 0)
      for (const auto& file : dir().files) KVASIR_CHECK(file->check_size());
    return FixedSource::acquire(group, next, pool);
  }
  Result<void> copy(const TensorInfo& table, uint64_t begin, std::span<std::byte> out) const override {
    return read_tensor(dir(), table, begin, out);
  }
  size_t resident_bytes() const override { return 0; }
  WeightsMode mode() const override { return WeightsMode::mapped; }
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
    resolve_all(use, [this](const TensorInfo& tensor) { return address(tensor); });
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
  if (tensor.file < 0 || static_cast<size_t>(tensor.file) >= dir.files.size())
    return fail(Error::internal, fmt::format("tensor {} is in no open file", in_quotes(tensor.name)));
  const MappedFile& file = *dir.files[static_cast<size_t>(tensor.file)];
  const uint64_t size = file.bytes().size();
  if (tensor.offset > size || tensor.bytes > size - tensor.offset)
    return fail(Error::damaged,
                fmt::format("tensor {}: {} bytes at offset {} are past the end of {} bytes", in_quotes(tensor.name),
                            tensor.bytes, tensor.offset, size),
                file.path().string());
  return {};
}

/// Bytes of the distinct tensors, after checking that each lies in its file.
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

}  // namespace

Result<void> read_tensor(const TensorDir& dir, const TensorInfo& tensor, uint64_t begin, std::span<std::byte> out) {
  auto got = dir.files[static_cast<size_t>(tensor.file)]->read_at(tensor.offset + begin, out);
  if (got) return {};
  return fail(got.error().kind, fmt::format("tensor {}: {}", in_quotes(tensor.name), got.error().what),
              got.error().where, got.error().hint);
}

Result<std::unique_ptr<WeightSource>> open_weights(std::shared_ptr<const TensorDir> dir, WeightUse use,
                                                   WeightsMode mode) {
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
        return StreamedWeights::open(std::move(dir), std::move(use), total);
    }
    return fail(Error::bad_argument, "unknown weight mode");
  } catch (const std::bad_alloc&) {
    return fail(Error::no_room, "out of memory for the table of weights");
  }
}

}  // namespace kvasir
