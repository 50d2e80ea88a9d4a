// Random valid UTF-8 for tests of tokenizers: words, spaces, marks, emoji, controls, and any other character. Test code
// only.
#pragma once

#include <random>
#include <string>
#include <string_view>

#include "token/utf8.h"

namespace kvasir::token_test {

inline char32_t random_code(std::mt19937& random) {
  while (true) {
    const unsigned planes[] = {0x80, 0x300, 0x10000, 0x110000};
    const auto code = static_cast<char32_t>(random() % planes[random() % 4]);
    if (code < 0xD800 || code > 0xDFFF) return code;
  }
}

/// Returns a text of at most `most` random fragments.
inline std::string random_text(std::mt19937& random, unsigned most) {
  constexpr std::string_view kBits[] = {" ",
                                        "  ",
                                        "    ",
                                        "\n",
                                        "\r\n",
                                        "\t",
                                        "a",
                                        "the",
                                        "ing",
                                        " and",
                                        "The",
                                        "12",
                                        "3.5",
                                        "'s",
                                        "!",
                                        "\u00E9",
                                        "e\u0301",
                                        "\u0301\u0323",
                                        "\u65E5\u672C",
                                        "\u4E2D\u6587\u3002",
                                        "\uD55C\uAD6D",
                                        "\u1100\u1161\u11A8",
                                        "\u0645\u0631",
                                        "\U0001F600",
                                        "\U0001F468\u200D\U0001F469",
                                        "\U0001F1EF\U0001F1F5",
                                        "\x01",
                                        "\x7F",
                                        "\u00A0",
                                        "\u2003",
                                        "\uFEFF",
                                        "\uFB01",
                                        "<s>",
                                        "</s>",
                                        "<unk>",
                                        "<0x0A>",
                                        "<|endoftext|>",
                                        "[INST]",
                                        "[/INST]"};
  std::string text;
  for (auto left = random() % (most + 1); left > 0; --left) {
    if (random() % 4 == 0) {
      utf8_append(text, random_code(random));
    } else {
      text += kBits[random() % std::size(kBits)];
    }
  }
  if (random() % 8 == 0) text.push_back('\0');
  return text;
}

}  // namespace kvasir::token_test
