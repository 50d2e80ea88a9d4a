// JSON read strictly: no duplicate keys, no trailing bytes, no NaN, bounded depth. Only .cc files of this folder
// include this: it compiles the JSON library.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <kvasir/result.h>

namespace kvasir {

inline constexpr int kMaxJsonDepth = 64;

/// Returns the document as a tree. Errors name the byte and quote at most a few words of the input.
Result<nlohmann::json> parse_strict_json(std::string_view text, const std::string& where);

/// Feeds a SAX handler; returns true if the whole text is one JSON value. Refuses a NUL byte, which the JSON library
/// takes for the end of the text.
bool feed_strict_json(std::string_view text, nlohmann::json_sax<nlohmann::json>& handler);

}  // namespace kvasir
