// The implementation of Tokenizer, for the readers that make one and the writers that take one apart.
#pragma once

#include <memory>
#include <vector>

#include <kvasir/tokenizer.h>

#include "token/model.h"

namespace kvasir {

struct Tokenizer::Impl {
  std::unique_ptr<const TokenModel> model;
  std::vector<Ignored> ignored;
  std::vector<int> end_of_turn;
};

/// If `turn_end_is_named` (the file itself names the token), end_of_turn() stays empty. Requires: `model` is not null.
std::shared_ptr<const Tokenizer> make_tokenizer(std::unique_ptr<const TokenModel> model,
                                                std::vector<Ignored> ignored = {}, bool turn_end_is_named = false);

inline const TokenModel& model_of(const Tokenizer& tokenizer) { return *tokenizer.impl().model; }

}  // namespace kvasir
