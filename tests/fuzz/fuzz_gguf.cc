// Any bytes as a GGUF file, through every reader: header, model, tokenizer, and the binding of weights.
#include <algorithm>

#include "arch/gguf.h"
#include "arch/network.h"
#include "engine/gguf_tokenizer.h"
#include "tests/fuzz/check_tokenizer.h"

namespace {

using kvasir::fuzz::require;

void check_metadata(const kvasir::GgufMetadata& metadata) {
  for (const auto& [key, value] : metadata.entries) {
    require(metadata.find(key) != nullptr);
    const auto integer = value.as_int();
    const auto number = value.as_number();
    require(!integer || number);
    require(int{number.has_value()} + int{value.as_bool().has_value()} + int{value.as_string().has_value()} +
                int{value.type == kvasir::GgufType::array} ==
            1);
    if (const auto numbers = value.as_numbers()) require(numbers->size() == value.count);
    require(value.strings.empty() || value.strings.size() == value.count);
  }
}

void check_tensors(const kvasir::TensorDir& dir, size_t size) {
  for (const auto& tensor : dir.tensors) {
    require(tensor.offset <= size && tensor.bytes <= size - tensor.offset && !tensor.shape.empty());
    int64_t elements = 1;
    for (int64_t dim : tensor.shape) require(dim > 0 && !__builtin_mul_overflow(elements, dim, &elements));
    if (tensor.codec != nullptr) require(tensor.codec->row_bytes(elements) == tensor.bytes);
  }
}

// Does what Model::open does, without running the model.
void bind(kvasir::GgufModel model) {
  const auto family = kvasir::find_family(model.config);
  if (!family) return;
  const auto config = (*family)->parse_config(model.config);
  if (!config || config->layers > 64) return;
  const auto network = kvasir::Network::load(**family, *config, std::make_shared<kvasir::TensorDir>(model.tensors),
                                             kvasir::WeightsMode::mapped, "fuzz");
  if (network) require((*network)->fingerprint().has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static kvasir::fuzz::MemFile memory;
  const std::string path = memory.write(data, size);
  auto file = kvasir::open_gguf(path);
  if (!file) {
    require(!file.error().what.empty() && file.error().what.size() < 4096);
    return 0;
  }
  check_metadata(file->metadata);
  check_tensors(file->tensors, size);
  kvasir::fuzz::check_tokenizer(kvasir::open_gguf_tokenizer(path));
  auto model = kvasir::read_gguf_model(std::move(*file), path);
  if (model) bind(std::move(*model));
  return 0;
}
