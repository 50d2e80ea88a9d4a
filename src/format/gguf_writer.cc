// The header is made in memory (a tokenizer's strings are most of it); tensors go straight to the file.
#include "format/gguf_writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/quote.h"

namespace kvasir {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kGgufVersion = 3;
constexpr uint64_t kAlignment = 32;    // the format's default, which needs no entry
constexpr size_t kMostDimensions = 4;  // GGML_MAX_DIMS
constexpr size_t kLongestName = 63;    // GGML_MAX_NAME with its zero: ggml's reader refuses longer ones
constexpr size_t kMaxKeyBytes = 65535;

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_string(std::string& bytes, std::string_view text) {
  put<uint64_t>(bytes, text.size());
  bytes += text;
}

constexpr uint64_t aligned(uint64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

Result<uint64_t> bytes_of(const TensorDecl& tensor, const std::string& where) {
  const auto refuse = [&](const std::string& why) {
    return fail(Error::bad_argument, fmt::format("tensor {} {}", in_quotes(tensor.name), why), where);
  };
  if (tensor.name.empty() || tensor.name.size() > kLongestName)
    return refuse(fmt::format("has a name of {} bytes, 1 to {} are possible", tensor.name.size(), kLongestName));
  if (tensor.codec == nullptr || !gguf_tensor_type(tensor.codec->file_name)) return refuse("has no type of GGUF");
  if (tensor.shape.empty() || tensor.shape.size() > kMostDimensions)
    return refuse(fmt::format("has {} dimensions, 1 to {} are possible", tensor.shape.size(), kMostDimensions));
  int64_t rows = 1;
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    if (tensor.shape[i] < 1 || (i + 1 < tensor.shape.size() && __builtin_mul_overflow(rows, tensor.shape[i], &rows)))
      return refuse(fmt::format("has a bad shape [{}]", fmt::join(tensor.shape, ", ")));
  if (tensor.shape.back() % tensor.codec->block_elems != 0)
    return refuse(fmt::format("has rows of {} elements, which are no whole blocks of {} ({})", tensor.shape.back(),
                              tensor.codec->block_elems, tensor.codec->name));
  uint64_t bytes = 0;
  const uint64_t row = tensor.codec->row_bytes(tensor.shape.back());
  if (tensor.shape.back() > INT64_MAX / 8 || __builtin_mul_overflow(static_cast<uint64_t>(rows), row, &bytes))
    return refuse(fmt::format("has a shape [{}] that no file can hold", fmt::join(tensor.shape, ", ")));
  return bytes;
}

Result<void> refuse_twins(std::vector<std::string> names, const char* what, const std::string& where) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return fail(Error::bad_argument, fmt::format("the {} {} is there twice", what, in_quotes(*twice)), where);
}

}  // namespace

// ---- metadata -----------------------------------------------------------------------------------------------------

std::string& GgufEntries::start(std::string_view key, GgufType type) {
  keys_.emplace_back(key);
  put_string(bytes_, key);
  put(bytes_, static_cast<uint32_t>(type));
  return bytes_;
}
void GgufEntries::start_array(std::string_view key, GgufType element, uint64_t count) {
  put(start(key, GgufType::array), static_cast<uint32_t>(element));
  put(bytes_, count);
}

void GgufEntries::u32(std::string_view key, uint32_t value) { put(start(key, GgufType::u32), value); }
void GgufEntries::i32(std::string_view key, int32_t value) { put(start(key, GgufType::i32), value); }
void GgufEntries::u64(std::string_view key, uint64_t value) { put(start(key, GgufType::u64), value); }
void GgufEntries::f32(std::string_view key, float value) { put(start(key, GgufType::f32), value); }
void GgufEntries::boolean(std::string_view key, bool value) {
  put(start(key, GgufType::boolean), static_cast<uint8_t>(value ? 1 : 0));
}
void GgufEntries::string(std::string_view key, std::string_view value) {
  put_string(start(key, GgufType::string), value);
}
void GgufEntries::strings(std::string_view key, std::span<const std::string_view> values) {
  start_array(key, GgufType::string, values.size());
  for (const std::string_view value : values) put_string(bytes_, value);
}
void GgufEntries::i32s(std::string_view key, std::span<const int32_t> values) {
  start_array(key, GgufType::i32, values.size());
  for (const int32_t value : values) put(bytes_, value);
}
void GgufEntries::f32s(std::string_view key, std::span<const float> values) {
  start_array(key, GgufType::f32, values.size());
  for (const float value : values) put(bytes_, value);
}
void GgufEntries::copy(std::string_view key, const GgufValue& value) {
  if (value.type == GgufType::array) {
    start_array(key, value.element, value.count);
  } else {
    start(key, value.type);
    if (value.type == GgufType::string) put<uint64_t>(bytes_, value.bytes.size());
  }
  bytes_.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
}

// ---- the file -----------------------------------------------------------------------------------------------------

Result<void> GgufWriter::create(const std::filesystem::path& path, const GgufEntries& entries,
                                std::vector<TensorDecl> tensors) {
  *this = GgufWriter{};
  path_ = path.string();
  std::vector<std::string> names;
  for (const TensorDecl& tensor : tensors) {
    KVASIR_TRY(const uint64_t bytes, bytes_of(tensor, path_));
    const uint64_t begin = aligned(total_);
    if (begin < total_ || __builtin_add_overflow(begin, bytes, &total_) || total_ > INT64_MAX)
      return fail(Error::bad_argument, "the tensors are too large together", path_);
    places_.push_back({begin, total_});
    names.push_back(tensor.name);
  }
  KVASIR_CHECK(refuse_twins(std::move(names), "tensor", path_));
  KVASIR_CHECK(refuse_twins(entries.keys_, "key", path_));
  for (const std::string& key : entries.keys_)
    if (key.empty() || key.size() > kMaxKeyBytes)
      return fail(Error::bad_argument, fmt::format("a key of {} bytes, 1 to {} are possible", key.size(), kMaxKeyBytes),
                  path_);

  std::string header = "GGUF";
  put(header, kGgufVersion);
  put<uint64_t>(header, tensors.size());
  put<uint64_t>(header, entries.keys_.size());
  header += entries.bytes_;
  for (size_t i = 0; i < tensors.size(); ++i) {
    put_string(header, tensors[i].name);
    put(header, static_cast<uint32_t>(tensors[i].shape.size()));
    for (auto dim = tensors[i].shape.rbegin(); dim != tensors[i].shape.rend(); ++dim) put(header, *dim);
    put(header, *gguf_tensor_type(tensors[i].codec->file_name));
    put(header, places_[i].begin);
  }
  header.resize(aligned(header.size()), '\0');
  header_bytes_ = header.size();
  KVASIR_TRY(AtomicFile file, AtomicFile::create(path));
  KVASIR_CHECK(file.write(std::as_bytes(std::span(header))));
  tensors_ = std::move(tensors);
  file_.emplace(std::move(file));
  return {};
}

Result<void> GgufWriter::pad_to(uint64_t offset) {
  static constexpr std::array<std::byte, kAlignment> kZeros{};
  KVASIR_CHECK(file_->write(std::span(kZeros).first(offset - written_)));
  written_ = offset;
  return {};
}

Result<void> GgufWriter::write(std::span<const std::byte> bytes) {
  if (!file_) return fail(Error::bad_argument, "no output is open", path_);
  while (!bytes.empty()) {
    while (at_ < places_.size() && written_ == places_[at_].end) ++at_;
    if (at_ == places_.size())
      return fail(Error::bad_argument, fmt::format("{} bytes more than declared", bytes.size()), path_);
    if (written_ < places_[at_].begin) KVASIR_CHECK(pad_to(places_[at_].begin));
    const auto piece = bytes.first(std::min<uint64_t>(bytes.size(), places_[at_].end - written_));
    KVASIR_CHECK(file_->write(piece));
    written_ += piece.size();
    bytes = bytes.subspan(piece.size());
  }
  return {};
}

Result<void> GgufWriter::finish() {
  if (!file_) return fail(Error::bad_argument, "no output is open", path_);
  if (written_ != total_) {
    while (written_ == places_[at_].end) ++at_;
    return fail(Error::bad_argument,
                fmt::format("{} of {} bytes written, the next is in tensor {}", written_, total_,
                            in_quotes(tensors_[at_].name)),
                path_);
  }
  auto done = file_->commit();
  file_.reset();
  return done;
}

}  // namespace kvasir
