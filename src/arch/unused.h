// The parts of a model's files that its family did not read. Each is listed with the reason why it changes no result,
// or is refused by name. The rules are in the tables of unused_config.cc, unused_gguf.cc and unused_tensors.cc; keys of
// tokenizers are handled elsewhere.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>
#include <kvasir/tokenizer.h>

#include "arch/family.h"
#include "format/config_view.h"
#include "format/gguf.h"

namespace kvasir {

/// How to treat a key that was not read.
enum class KeyUse {
  harmless,  ///< changes no result
  noted,     ///< changes no logit, but users may expect it to do something
  off,       ///< harmless while it is false, 0 or empty
  one,       ///< harmless while it is 1, or off
  yes,       ///< harmless while it is true
  refused,   ///< always refused
};

struct KeyRule {
  std::string_view name;  ///< a name that ends in '*' stands for every key with that prefix
  KeyUse use;
  std::string_view why;
};

/// Returns the rule that matches `name`, or null.
const KeyRule* find_rule(std::span<const KeyRule> rules, std::string_view name);

/// Keys of `file`, a config.json, that nothing read. A key that no table has is listed as noted. Errors: a key that
/// changes results, a quantisation other than `known`.
Result<std::vector<Ignored>> unused_config_keys(const ConfigView& file, std::string_view known = {});
/// Keys of a generation_config.json that nothing read. None is refused: they change which tokens are chosen, not the
/// logits.
std::vector<Ignored> unused_generation_keys(const ConfigView& file);

using KeySet = std::set<std::string, std::less<>>;
/// Keys of a GGUF file of architecture `arch` that are not in `read`, without those of its tokenizer. Errors: a key
/// under "ARCH." that changes results or that no table has, a file that is not a model.
Result<std::vector<Ignored>> unused_gguf_keys(const GgufMetadata& metadata, std::string_view arch, const KeySet& read,
                                              const std::string& where);
/// The rule for a key after "ARCH."; null if there is none.
const KeyRule* gguf_rule(std::string_view name);

/// Tensors that the family's table does not name. Errors: a tensor that may change results, a layer past the last one.
Result<std::vector<Ignored>> unused_tensors(const Family& family, const ModelConfig& config, const TensorDir& dir,
                                            const std::string& where);

}  // namespace kvasir
