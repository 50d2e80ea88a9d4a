// Any bytes as a SentencePiece .model: an error, or a tokenizer that passes check_tokenizer().
#include "tests/fuzz/check_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static kvasir::fuzz::MemFile file;
  kvasir::fuzz::check_tokenizer(kvasir::Tokenizer::from_sentencepiece(file.write(data, size)));
  return 0;
}
