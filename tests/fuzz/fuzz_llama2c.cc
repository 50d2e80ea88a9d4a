// Any bytes as llama2.c's files. The first byte selects a model (0) or a tokenizer with that number of tokens.
#include "format/llama2c.h"
#include "tests/fuzz/check_tokenizer.h"

namespace {

using kvasir::fuzz::require;

void check_model(const std::string& path, size_t size) {
  const auto model = kvasir::open_llama2c(path);
  if (!model) {
    require(!model.error().what.empty() && model.error().what.size() < 4096);
    return;
  }
  for (const auto& tensor : model->tensors.tensors)
    require(tensor.offset <= size && tensor.bytes <= size - tensor.offset);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static kvasir::fuzz::MemFile file;
  if (size == 0) return 0;
  const std::string path = file.write(data + 1, size - 1);
  if (data[0] == 0)
    check_model(path, size - 1);
  else
    kvasir::fuzz::check_tokenizer(kvasir::Tokenizer::from_llama2c(path, data[0]));
  return 0;
}
