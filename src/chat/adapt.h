// Converts a conversation as clients send it into the form that chat templates expect.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace kvasir {

/// Changes the messages of `conversation` in place. Tool call arguments given as a string of JSON become an object. A
/// content list whose parts are all text becomes one string, unless `walks_parts`. Role "developer" becomes "system",
/// unless `knows_developer`.
void adapt_conversation(nlohmann::ordered_json* conversation, bool walks_parts, bool knows_developer);

}  // namespace kvasir
