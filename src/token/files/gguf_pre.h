// What the names in `tokenizer.ggml.pre` stand for. How texts are cut is pretokenize.h's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>

#include "token/pretokenize.h"

namespace kvasir {

struct ByteLevelParts;

struct PreTokenization {
  enum Flags : unsigned { kNfc = 1, kIgnoreMerges = 2, kAddBos = 4 };

  std::vector<std::string_view> names;  ///< the first is written
  std::vector<CutStage> cuts;
  unsigned flags = 0;  ///< kAddBos only counts where the file does not say it

  bool has(Flags flag) const { return (flags & flag) != 0; }
};

/// Fails on a name that is not known, with those that are. The pointer lives as long as the program.
Result<const PreTokenization*> find_pre(const std::string& name);

/// The name under which files cut texts like this; empty when there is none.
std::string_view find_pre_name(const ByteLevelParts& parts);

}  // namespace kvasir
