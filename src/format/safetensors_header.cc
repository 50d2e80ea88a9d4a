// Parses the header of a safetensors file: reads its JSON as events (a header may be 100 MB, a tree would be ten times
// that), then checks every number against the file.
#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/quote.h"
#include "format/safetensors.h"
#include "format/strict_json.h"

namespace kvasir {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's own limit
constexpr size_t kMostAxes = 32;
constexpr std::string_view kMetadata = "__metadata__";

struct RawTensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
  std::vector<uint64_t> range;  // begin and end in the data section
  bool has_dtype = false, has_shape = false, has_range = false;
};

/// Accepts { "__metadata__": {string: string}, name: {"dtype": s, "shape": [n...], "data_offsets": [n, n]}, ... }.
class SafetensorsReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_float(double, const std::string& text) override { return unexpected(text.substr(0, 40)); }
  bool binary(nlohmann::json::binary_t&) override { return unexpected("binary"); }

  bool number_integer(int64_t value) override {
    if (value >= 0) return number_unsigned(static_cast<uint64_t>(value));
    return unexpected(fmt::format("{}", value));
  }

  bool number_unsigned(uint64_t value) override {
    if (state_ == State::kRange && tensor_.range.size() < 2) {
      tensor_.range.push_back(value);
      return true;
    }
    const bool fits = value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (state_ != State::kShape || !fits || tensor_.shape.size() == kMostAxes)
      return unexpected(fmt::format("{}", value));
    tensor_.shape.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(std::string& value) override {
    if (state_ == State::kStrings) return true;
    if (state_ != State::kTensor || field_ != "dtype") return unexpected("a string");
    tensor_.dtype = std::move(value);
    return true;
  }

  bool start_object(size_t) override {
    if (state_ == State::kStart) return enter(State::kRoot);
    if (state_ != State::kRoot) return unexpected("an object");
    return enter(tensor_.name == kMetadata ? State::kStrings : State::kTensor);
  }

  bool end_object() override {
    if (state_ == State::kRoot) return enter(State::kDone);
    if (state_ == State::kTensor) {
      if (!tensor_.has_dtype || !tensor_.has_shape || tensor_.range.size() != 2)
        return refuse(fmt::format("tensor {} lacks a dtype, a shape or two data_offsets", in_quotes(tensor_.name)));
      tensors.push_back(std::move(tensor_));
    }
    return enter(State::kRoot);
  }

  bool start_array(size_t) override {
    if (state_ != State::kTensor || field_ == "dtype") return unexpected("a list");
    return enter(field_ == "shape" ? State::kShape : State::kRange);
  }

  bool end_array() override { return enter(State::kTensor); }

  bool key(std::string& name) override {
    if (state_ == State::kRoot) return start_entry(std::move(name));
    field_ = std::move(name);
    if (state_ == State::kStrings) return metadata_keys_.insert(field_).second || twice();
    bool* seen = field_ == "dtype"          ? &tensor_.has_dtype
                 : field_ == "shape"        ? &tensor_.has_shape
                 : field_ == "data_offsets" ? &tensor_.has_range
                                            : nullptr;
    if (seen == nullptr)
      return refuse(fmt::format("tensor {} has an unknown key {}", in_quotes(tensor_.name), in_quotes(field_)));
    return !std::exchange(*seen, true) || twice();
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    return refuse(fmt::format("the header is not valid JSON at byte {}", position));
  }

  std::vector<RawTensor> tensors;
  std::string error;

 private:
  enum class State { kStart, kRoot, kStrings, kTensor, kShape, kRange, kDone };

  bool enter(State state) {
    state_ = state;
    return true;
  }

  bool start_entry(std::string name) {
    tensor_ = RawTensor{};
    tensor_.name = std::move(name);
    field_.clear();
    if (tensor_.name == kMetadata && std::exchange(has_metadata_, true)) return twice();
    return true;
  }

  bool refuse(std::string why) {
    error = std::move(why);
    return false;
  }

  bool twice() {
    return refuse(fmt::format("key {} of {} is there twice", in_quotes(field_), in_quotes(tensor_.name)));
  }

  bool unexpected(const std::string& what) {
    return refuse(
        fmt::format("unexpected {} in the header, at {} {}", what, in_quotes(tensor_.name), field_.substr(0, 20)));
  }

  State state_ = State::kStart;
  RawTensor tensor_;
  std::string field_;
  std::set<std::string> metadata_keys_;
  bool has_metadata_ = false;
};

/// Returns the bytes of a tensor. Zero dimensions count as one in the overflow check, so a caller may multiply in any
/// order.
Result<uint64_t> checked_bytes(const RawTensor& raw, const std::string& where) {
  const auto bits = safetensors_dtype_bits(raw.dtype);
  if (!bits)
    return fail(Error::unsupported,
                fmt::format("tensor {} has an unknown dtype {}", in_quotes(raw.name), in_quotes(raw.dtype)), where);
  int64_t product = *bits;
  bool empty = false;
  for (const int64_t dim : raw.shape) {
    empty |= dim == 0;
    if (dim != 0 && __builtin_mul_overflow(product, dim, &product))
      return fail(Error::damaged,
                  fmt::format("tensor {} of shape [{}] is too large", in_quotes(raw.name), fmt::join(raw.shape, ", ")),
                  where);
  }
  if (empty) return 0;
  if (product % 8 != 0)
    return fail(Error::damaged, fmt::format("tensor {} of {} bits is not whole bytes", in_quotes(raw.name), product),
                where);
  return static_cast<uint64_t>(product) / 8;
}

Result<TensorInfo> checked_tensor(RawTensor raw, uint64_t data_start, uint64_t data_bytes, const std::string& where) {
  KVASIR_TRY(const uint64_t bytes, checked_bytes(raw, where));
  const uint64_t begin = raw.range[0], end = raw.range[1];
  if (begin > end || end > data_bytes)
    return fail(Error::damaged,
                fmt::format("tensor {} lies at {}..{} of {} data bytes", in_quotes(raw.name), begin, end, data_bytes),
                where, "the file may be cut; download it again");
  if (end - begin != bytes)
    return fail(Error::damaged,
                fmt::format("tensor {} of {} [{}] needs {} bytes but has {}", in_quotes(raw.name), raw.dtype,
                            fmt::join(raw.shape, ", "), bytes, end - begin),
                where);
  const Codec* codec = find_codec(raw.dtype);
  if (codec != nullptr && codec->block_elems * *safetensors_dtype_bits(raw.dtype) != codec->block_bytes * 8)
    codec = nullptr;  // a codec that only shares the name
  return TensorInfo{
      std::move(raw.name), codec, std::move(raw.dtype), std::move(raw.shape), data_start + begin, bytes, 0};
}

/// Checks that the tensors, one after the other, cover the whole data section.
Result<void> check_cover(std::vector<TensorInfo>& tensors, uint64_t data_start, uint64_t file_bytes,
                         const std::string& where) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  uint64_t end = data_start;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.offset != end)
      return fail(Error::damaged,
                  fmt::format("tensor {} starts at data byte {}, {} bytes {} the end of the one before it",
                              in_quotes(tensor.name), tensor.offset - data_start,
                              tensor.offset > end ? tensor.offset - end : end - tensor.offset,
                              tensor.offset > end ? "after" : "before"),
                  where);
    end += tensor.bytes;
  }
  if (end != file_bytes)
    return fail(Error::damaged, fmt::format("{} bytes after the last tensor", file_bytes - end), where,
                "the file is damaged; download it again");
  return {};
}

/// Returns the JSON text between the 8-byte length and the data.
Result<std::string_view> header_text(std::span<const std::byte> file, const std::string& where) {
  uint64_t length = 0;
  if (file.size() < sizeof length)
    return fail(Error::damaged, fmt::format("{} bytes are too few for a header", file.size()), where);
  for (size_t i = 0; i < sizeof length; ++i) length |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const bool pointer = text.starts_with("version https://git-lfs");
  const std::string hint = pointer ? "this is a Git LFS pointer; run git lfs pull" : "download the file again";
  if (length > kMaxHeaderBytes)
    return fail(Error::damaged, fmt::format("header of {} bytes, at most {} allowed", length, kMaxHeaderBytes), where,
                hint);
  if (length > file.size() - sizeof length)
    return fail(Error::damaged, fmt::format("header of {} bytes in a file of {}", length, file.size()), where, hint);
  const std::string_view header = text.substr(sizeof length, static_cast<size_t>(length));
  if (!header.starts_with('{'))
    return fail(Error::damaged, "the header does not start with {", where, "name a .safetensors file");
  return header;
}

Result<std::vector<TensorInfo>> parse_header(std::span<const std::byte> file, const std::string& where) {
  KVASIR_TRY(const std::string_view text, header_text(file, where));
  SafetensorsReader reader;
  if (!feed_strict_json(text, reader)) return fail(Error::damaged, reader.error, where);
  const uint64_t data_start = sizeof(uint64_t) + text.size();
  std::vector<TensorInfo> tensors;
  tensors.reserve(reader.tensors.size());
  for (RawTensor& raw : reader.tensors) {
    KVASIR_TRY(TensorInfo tensor, checked_tensor(std::move(raw), data_start, file.size() - data_start, where));
    tensors.push_back(std::move(tensor));
  }
  KVASIR_CHECK(check_cover(tensors, data_start, file.size(), where));
  KVASIR_CHECK(sort_tensors(tensors, where));
  return tensors;
}

}  // namespace

std::optional<int> safetensors_dtype_bits(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, int>, 22> kBits{{
      {"BOOL", 8},    {"U8", 8},      {"I8", 8},          {"F8_E5M2", 8},     {"F8_E4M3", 8}, {"F8_E8M0", 8},
      {"I16", 16},    {"U16", 16},    {"F16", 16},        {"BF16", 16},       {"I32", 32},    {"U32", 32},
      {"F32", 32},    {"F64", 64},    {"I64", 64},        {"U64", 64},        {"C64", 64},    {"F4", 4},
      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
  }};
  for (const auto& [name, bits] : kBits)
    if (name == dtype) return bits;
  return std::nullopt;
}

Result<std::vector<TensorInfo>> parse_safetensors_header(std::span<const std::byte> file_bytes,
                                                         std::string_view where) {
  try {
    return parse_header(file_bytes, std::string(where));
  } catch (const std::exception& e) {  // out of memory
    return fail(Error::no_room, fmt::format("cannot read the header: {}", e.what()), std::string(where));
  }
}

}  // namespace kvasir
