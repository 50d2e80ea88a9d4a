// Finds the tokens that end a chat turn by their texts alone.
#pragma once

#include <vector>

#include "token/model.h"

namespace kvasir {

/// Returns their ids, ascending. Considers only added and special tokens, never ordinary pieces of the vocabulary.
std::vector<int> end_of_turn_ids(const TokenModel& model);

}  // namespace kvasir
