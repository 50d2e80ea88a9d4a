// The rules behind the names in `tokenizer.ggml.pre`. pretokenize.h applies them to a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>

#include "token/pretokenize.h"

namespace kvasir {

struct ByteLevelTables;

struct PreTokenization {
  enum Flags : unsigned { kNfc = 1, kIgnoreMerges = 2, kAddBos = 4 };

  std::vector<std::string_view> names;  ///< Kvasir writes the first
  std::vector<CutStage> cuts;
  unsigned flags = 0;  ///< kAddBos counts only if the file has no add_bos_token

  bool has(Flags flag) const { return (flags & flag) != 0; }
};

/// Fails on an unknown name; the error lists the known ones. The pointer stays valid as long as the program runs.
Result<const PreTokenization*> find_pre(const std::string& name);

/// Returns the name of the rule that splits texts as `tables` do; empty if there is none.
std::string_view find_pre_name(const ByteLevelTables& tables);

}  // namespace kvasir
