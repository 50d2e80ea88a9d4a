// A talk as clients send it, brought into the form that templates are written for.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace kvasir {

/// Arguments of tool calls that are JSON in a text become objects; contents of parts that are all text become one text,
/// unless `walks_parts`; "developer" becomes "system", unless `knows_developer`.
void adapt_talk(nlohmann::ordered_json* talk, bool walks_parts, bool knows_developer);

}  // namespace kvasir
