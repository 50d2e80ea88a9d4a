// The resident and the mapped source. Both resolve every pointer at open, so acquire only hands them out.
#include "format/weight_source.h"

#include <algorithm>
#include <map>
#include <new>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/buffer.h"
#include "format/strict_json.h"

namespace kvasir {
namespace {

using Groups = std::vector<std::vector<const TensorInfo*>>;
using Pointers = std::vector<std::vector<const std::byte*>>;
using Place = std::tuple<int, uint64_t, uint64_t>;  // file, offset, bytes: what makes two mentions the same tensor

constexpr size_t kTensorAlign = 64;
constexpr size_t kReadChunk = size_t{8} << 20;

Place place_of(const TensorInfo& tensor) { return {tensor.file, tensor.offset, tensor.bytes}; }

constexpr size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

class FixedSource : public WeightSource {
 public:
  FixedSource(std::shared_ptr<const TensorDir> dir, size_t total) : dir_(std::move(dir)), total_(total) {}

  Result<std::span<const std::byte* const>> acquire(int group) override {
    if (group < 0 || group >= groups())
      return fail(fmt::format("weight group {} is out of range, there are {}", group, groups()));
    return std::span<const std::byte* const>(pointers_[static_cast<size_t>(group)]);
  }
  void release(int) override {}
  size_t total_bytes() const override { return total_; }
  int groups() const override { return static_cast<int>(pointers_.size()); }

 protected:
  /// Asks `resolve` for each tensor's address, groups in order.
  template <class Resolve>
  void resolve_all(const Groups& groups, Resolve resolve) {
    for (const auto& group : groups) {
      auto& out = pointers_.emplace_back();
      for (const TensorInfo* tensor : group) out.push_back(tensor == nullptr ? nullptr : resolve(*tensor));
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
  MappedSource(std::shared_ptr<const TensorDir> tensors, const Groups& groups, size_t total)
      : FixedSource(std::move(tensors), total) {
    resolve_all(groups, [this](const TensorInfo& tensor) { return dir().data(tensor).data(); });
  }
  size_t resident_bytes() const override { return 0; }
  WeightMode mode() const override { return WeightMode::mapped; }
};

class ResidentSource final : public FixedSource {
 public:
  using FixedSource::FixedSource;

  Result<void> load(const Groups& groups) {
    std::map<Place, size_t> starts;
    std::vector<const TensorInfo*> unique;
    for (const auto& group : groups)
      for (const TensorInfo* tensor : group)
        if (tensor != nullptr && starts.emplace(place_of(*tensor), bytes_).second) {
          unique.push_back(tensor);
          bytes_ += round_up(tensor->bytes, kTensorAlign);
        }
    KVASIR_TRY(memory_, Buffer::allocate(bytes_, Owner::weights, true));
    const auto address = [&](const TensorInfo& tensor) { return memory_.data() + starts.at(place_of(tensor)); };
    for (const TensorInfo* tensor : unique) KVASIR_CHECK(read(*tensor, address(*tensor)));
    resolve_all(groups, address);
    return {};
  }

  size_t resident_bytes() const override { return bytes_; }
  WeightMode mode() const override { return WeightMode::resident; }

 private:
  Result<void> read(const TensorInfo& tensor, std::byte* out) const {
    const MappedFile& file = *dir().files[static_cast<size_t>(tensor.file)];
    for (uint64_t done = 0; done < tensor.bytes;) {
      const size_t chunk = std::min<uint64_t>(kReadChunk, tensor.bytes - done);
      if (auto got = file.read_at(tensor.offset + done, {out + done, chunk}); !got)
        return fail(fmt::format("tensor {}: {}", in_quotes(tensor.name), got.error().what), got.error().where,
                    got.error().hint);
      done += chunk;
    }
    return {};
  }

  Buffer memory_;  // on huge pages
  size_t bytes_ = 0;
};

/// Bytes of the distinct tensors, after checking that each lies in its file.
Result<size_t> checked_total(const TensorDir& dir, const Groups& groups) {
  std::set<Place> seen;
  size_t total = 0;
  for (const auto& group : groups)
    for (const TensorInfo* tensor : group) {
      if (tensor == nullptr) continue;
      if (tensor->file < 0 || static_cast<size_t>(tensor->file) >= dir.files.size())
        return fail(fmt::format("tensor {} is in no open file", in_quotes(tensor->name)));
      const MappedFile& file = *dir.files[static_cast<size_t>(tensor->file)];
      const uint64_t size = file.bytes().size();
      if (tensor->offset > size || tensor->bytes > size - tensor->offset)
        return fail(fmt::format("tensor {}: {} bytes at offset {} are past the end of {} bytes",
                                in_quotes(tensor->name), tensor->bytes, tensor->offset, size),
                    file.path().string());
      if (seen.insert(place_of(*tensor)).second) total += tensor->bytes;
    }
  return total;
}

}  // namespace

Result<std::unique_ptr<WeightSource>> open_weights(std::shared_ptr<const TensorDir> dir, Groups groups,
                                                   WeightMode mode) {
  try {
    KVASIR_TRY(const size_t total, checked_total(*dir, groups));
    switch (mode) {
      case WeightMode::resident: {
        auto source = std::make_unique<ResidentSource>(std::move(dir), total);
        KVASIR_CHECK(source->load(groups));
        return source;
      }
      case WeightMode::mapped:
        return std::make_unique<MappedSource>(std::move(dir), groups, total);
    }
    return fail("unknown weight mode");
  } catch (const std::bad_alloc&) {
    return fail("out of memory for the table of weights");
  }
}

}  // namespace kvasir
