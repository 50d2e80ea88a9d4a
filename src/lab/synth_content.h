// The contents of a synthetic folder: configuration, tokenizer, weights. synth.cc writes them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <kvasir/result.h>

#include "arch/family.h"

namespace kvasir {

/// The text of config.json for a shape's name or a config file: its own keys with "torch_dtype" set, without ids of
/// BOS, end of text and padding, and without "quantization_config".
Result<std::string> synth_config_json(const std::string& shape, const std::string& torch_dtype);

/// A byte-level BPE tokenizer without merges. Requires: vocab >= 256.
std::string synth_tokenizer_json(int vocab);

/// The distribution of a tensor's values: center + spread * (a triangular random number in -1..1).
struct SynthValues {
  float center = 0, spread = 0;
};
/// Values that keep activations near 1 and logits distinct. `embedding`: a table read by row instead of a matrix.
SynthValues synth_values(const TensorSpec& spec, bool embedding);

/// Fills `out` with the elements of a tensor from `first` on. Requires: `first` is a multiple of 4.
void synth_fill(uint64_t seed, uint32_t tensor, uint64_t first, SynthValues values, std::span<float> out);

}  // namespace kvasir
