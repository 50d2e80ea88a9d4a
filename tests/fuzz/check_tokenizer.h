// Checks what must hold for a tokenizer from any file: ids in range, decodable text, no crash. Fuzz targets only.
#pragma once

#include <kvasir/tokenizer.h>

#include <memory>
#include <string>
#include <string_view>

#include "tests/fuzz/mem_file.h"

namespace kvasir::fuzz {

inline void check_tokenizer(const Result<std::shared_ptr<const Tokenizer>>& opened) {
  if (!opened) {
    require(!opened.error().what.empty() && opened.error().what.size() < 4096);
    return;
  }
  const Tokenizer& tokenizer = **opened;
  constexpr std::string_view kTexts[] = {"",
                                         " ",
                                         "Hello  world, 123!",
                                         "ab\xC3\xA9\xF0\x9F\x98\x80 \xE4\xBD\xA0\n\t",
                                         "\xFF\xC3",
                                         "<s></s><|im_start|>aaaaaaaaaa"};
  for (std::string_view text : kTexts) {
    const auto ids = tokenizer.encode(text);
    if (!ids) continue;
    require(ids->size() <= 16 * text.size() + 4096);  // the file may put many tokens first
    for (int id : *ids) require(id >= 0 && id < tokenizer.vocab_size());
    require(tokenizer.decode(*ids).has_value());
  }
  StreamDecoder stream(opened.value());
  for (int id = -1; id < 50; ++id) {
    (void)tokenizer.token_text(id);
    (void)tokenizer.is_special(id);
    (void)stream.push(id);
  }
  (void)stream.finish();
}

}  // namespace kvasir::fuzz
