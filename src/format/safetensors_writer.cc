// Writes a safetensors file as a stream: the header from the declarations, then the caller's bytes, counted.
#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/quote.h"
#include "format/safetensors.h"
#include "format/strict_json.h"

namespace kvasir {
namespace {

Result<uint64_t> declared_bytes(const TensorDecl& tensor, const std::string& where) {
  if (tensor.codec == nullptr)
    return fail(Error::bad_argument, fmt::format("tensor {} has no type", in_quotes(tensor.name)), where);
  const auto bits = safetensors_dtype_bits(tensor.codec->file_name);
  if (!bits || tensor.codec->block_elems != 1 || tensor.codec->block_bytes * 8 != *bits)
    return fail(Error::bad_argument,
                fmt::format("safetensors cannot hold {} of type {}", in_quotes(tensor.name), tensor.codec->name), where,
                "f32, f16 or bf16");
  int64_t bytes = tensor.codec->block_bytes;
  for (const int64_t dim : tensor.shape)
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes))
      return fail(Error::bad_argument,
                  fmt::format("tensor {} has a bad shape [{}]", in_quotes(tensor.name), fmt::join(tensor.shape, ", ")),
                  where);
  return static_cast<uint64_t>(bytes);
}

/// Returns the length and the JSON, padded with spaces so that the data starts at a multiple of 8.
std::string header_of(const std::vector<TensorDecl>& tensors, const std::vector<uint64_t>& ends) {
  std::string json = R"({"__metadata__":{"format":"pt"})";
  uint64_t begin = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    json += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        nlohmann::json(tensors[i].name).dump(), tensors[i].codec->file_name,
                        fmt::join(tensors[i].shape, ","), begin, ends[i]);
    begin = ends[i];
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(json.size() >> (8 * i) & 0xff);
  return length + json;
}

Result<void> check_names(const std::vector<TensorDecl>& tensors, const std::string& where) {
  std::vector<std::string_view> names;
  for (const TensorDecl& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    return fail(Error::bad_argument, fmt::format("tensor {} is declared twice", in_quotes(*twice)), where);
  if (std::binary_search(names.begin(), names.end(), "__metadata__"))
    return fail(Error::bad_argument, "a tensor cannot be named \"__metadata__\"", where);
  return {};
}

}  // namespace

Result<void> SafetensorsWriter::create(const std::filesystem::path& path, std::vector<TensorDecl> tensors) {
  *this = SafetensorsWriter{};
  path_ = path.string();
  KVASIR_CHECK(check_names(tensors, path_));
  for (const TensorDecl& tensor : tensors) {
    KVASIR_TRY(const uint64_t bytes, declared_bytes(tensor, path_));
    if (__builtin_add_overflow(total_, bytes, &total_))
      return fail(Error::bad_argument, "the tensors are too large together", path_);
    ends_.push_back(total_);
  }
  std::string header;
  try {
    header = header_of(tensors, ends_);
  } catch (const std::exception&) {  // the JSON library refuses names that are not UTF-8
    return fail(Error::bad_argument, "a tensor's name is not UTF-8", path_);
  }
  KVASIR_TRY(AtomicFile file, AtomicFile::create(path));
  KVASIR_CHECK(file.write(std::as_bytes(std::span(header))));
  tensors_ = std::move(tensors);
  file_.emplace(std::move(file));
  return {};
}

Result<void> SafetensorsWriter::write(std::span<const std::byte> bytes) {
  if (!file_) return fail(Error::bad_argument, "no output is open", path_);
  if (bytes.size() > total_ - written_)
    return fail(Error::bad_argument,
                fmt::format("{} bytes more than the {} declared", bytes.size() - (total_ - written_), total_), path_);
  KVASIR_CHECK(file_->write(bytes));
  written_ += bytes.size();
  return {};
}

Result<void> SafetensorsWriter::sync() {
  if (!file_) return fail(Error::bad_argument, "no output is open", path_);
  return file_->sync();
}

Result<void> SafetensorsWriter::finish(const std::filesystem::path& as) {
  if (!file_) return fail(Error::bad_argument, "no output is open", path_);
  if (written_ != total_) {
    const auto at = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), written_) - ends_.begin());
    return fail(
        Error::bad_argument,
        fmt::format("{} of {} bytes written, the next is in tensor {}", written_, total_, in_quotes(tensors_[at].name)),
        path_);
  }
  auto done = file_->commit(as);
  file_.reset();
  return done;
}

}  // namespace kvasir
