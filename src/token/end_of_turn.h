// The tokens that end a turn of a chat and are known by their texts alone.
#pragma once

#include <vector>

#include "token/model.h"

namespace kvasir {

/// Ascending. Only tokens that are looked for in a text, or special ones, never words of the vocabulary.
std::vector<int> end_of_turn_ids(const TokenModel& model);

}  // namespace kvasir
