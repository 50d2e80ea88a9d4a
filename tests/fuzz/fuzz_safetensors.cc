// Any bytes as a safetensors file: an error, or tensors that lie in the file, once each, in name order.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "format/safetensors.h"

namespace {

void require(bool holds) {
  if (!holds) __builtin_trap();
}

void check(std::span<const std::byte> file) {
  const auto tensors = kvasir::parse_safetensors_header(file, "fuzz");
  if (!tensors) {
    require(!tensors.error().what.empty() && tensors.error().what.size() < 4096);
    return;
  }
  uint64_t covered = 0, first = file.size();
  const std::string* before = nullptr;
  for (const auto& tensor : *tensors) {
    require(tensor.offset >= 8 && tensor.offset <= file.size() && tensor.bytes <= file.size() - tensor.offset);
    require(before == nullptr || *before < tensor.name);
    int64_t elements = 1;
    for (auto dim = tensor.shape.rbegin(); dim != tensor.shape.rend(); ++dim)
      require(*dim >= 0 && !__builtin_mul_overflow(elements, *dim, &elements));
    if (tensor.codec != nullptr) require(tensor.codec->row_bytes(elements) == tensor.bytes);
    covered += tensor.bytes;
    first = std::min(first, tensor.offset);
    before = &tensor.name;
  }
  require(covered == file.size() - first || covered == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  check(bytes);
  // The same bytes as header and data after a correct length, so that mutations reach the JSON.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const uint64_t length = text.rfind('}') == text.npos ? size : text.rfind('}') + 1;
  std::vector<std::byte> file(sizeof length + size);
  std::memcpy(file.data(), &length, sizeof length);
  if (size != 0) std::memcpy(file.data() + sizeof length, data, size);
  check(file);
  return 0;
}
