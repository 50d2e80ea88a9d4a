// What a synthetic folder is made of, apart from writing it: the configuration, the tokenizer, the numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <kvasir/result.h>

#include "arch/family.h"

namespace kvasir {

/// The text of config.json for a shape's name or a config file: its own keys, "torch_dtype" set, no ids of beginning
/// and end of text.
Result<std::string> synth_config_json(const std::string& shape, const std::string& torch_dtype);

/// A byte-level BPE tokenizer without merges. Requires: vocab >= 256.
std::string synth_tokenizer_json(int vocab);

/// How a tensor's values lie: center + spread * (a triangular number in -1..1).
struct SynthValues {
  float center = 0, spread = 0;
};
/// Values that keep activations near 1 and logits apart; `embedding` tells tables of rows from matrices.
SynthValues synth_values(const TensorSpec& spec, bool embedding);

/// Elements first.. of a tensor. Requires: `first` a multiple of 4.
void synth_fill(uint64_t seed, uint32_t tensor, uint64_t first, SynthValues values, std::span<float> out);

}  // namespace kvasir
