// The parts of a model's files that its family did not read: each is known not to change results and is listed with the
// reason, or it is refused by name. What is known is in the tables of unused_config.cc, unused_gguf.cc and
// unused_tensors.cc; the keys of tokenizers are elsewhere.
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

/// How a key that was not read may be treated.
enum class KeyUse {
  harmless,  ///< changes no result
  noted,     ///< changes no logit, but users may expect it to do something
  off,       ///< harmless while it is false, 0 or empty
  one,       ///< harmless while it is 1, or off
  yes,       ///< harmless while it is true
  refused,   ///< never
};

struct KeyRule {
  std::string_view name;  ///< one that ends in '*' stands for all keys that begin like it
  KeyUse use;
  std::string_view why;
};

/// Null when no rule has this name.
const KeyRule* find_rule(std::span<const KeyRule> rules, std::string_view name);

/// Keys of `file`, a config.json, after everything was read. A key that no table has is listed and noted. Errors: a key
/// that changes results, a quantisation other than `known`.
Result<std::vector<Ignored>> unused_config_keys(const ConfigView& file, std::string_view known = {});
/// Keys of a generation_config.json. None is refused: they change which tokens are chosen, not the logits.
std::vector<Ignored> unused_generation_keys(const ConfigView& file);

using KeySet = std::set<std::string, std::less<>>;
/// Keys of a GGUF file of architecture `arch` that are not in `read`, without those of its tokenizer. Errors: a key
/// under "ARCH." that changes results or that no table has; a file that is no model.
Result<std::vector<Ignored>> unused_gguf_keys(const GgufMetadata& metadata, std::string_view arch, const KeySet& read,
                                              const std::string& where);
/// The rule of a key under "ARCH." that is not read; null when it is not known.
const KeyRule* gguf_rule(std::string_view name);

/// Tensors that the family's table does not name. Errors: one that may change results; a layer past the last one.
Result<std::vector<Ignored>> unused_tensors(const Family& family, const ModelConfig& config, const TensorDir& dir,
                                            const std::string& where);

}  // namespace kvasir
