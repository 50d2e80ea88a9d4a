// Unicode normalisation form C. Other normalizers are refused where the file is read.
#pragma once

#include <string>
#include <string_view>

#include <kvasir/result.h>

namespace kvasir {

/// A quick check: true if no character is at or above U+0300, so that `text` is NFC. False decides nothing.
bool is_surely_nfc(std::string_view text);

/// NFC of valid UTF-8, in O(n log n) for every text. Source: Unicode Standard Annex 15.
Result<std::string> to_nfc(std::string_view text);

}  // namespace kvasir
