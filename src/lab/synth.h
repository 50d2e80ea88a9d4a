// Random models of real shapes, for tests and measurements that need a size and not a meaning.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>

namespace kvasir {

struct SynthOptions {
  std::string shape = {};          ///< a name of synth_shape_names(), or the path of a config.json
  std::filesystem::path out = {};  ///< the folder to make
  std::string dtype = "bf16";      ///< "f32", "f16", "bf16"
  uint64_t seed = 0;
  bool force = false;  ///< replace a folder that holds nothing but an earlier model of this kind
  std::function<void(uint64_t done_bytes, uint64_t all_bytes)> progress = {};  ///< called now and then
};

/// Writes a Hugging Face folder: config.json, model.safetensors, and tokenizer.json where the vocabulary has room for
/// the 256 bytes. Token i < 256 is byte i, the others are filler; there is no merge, no special token and no end of
/// text. Weights are bits of a counter-based generator keyed by (seed, tensor), the same on every machine. The folder
/// appears complete or not at all; a model of any size takes a few MiB of memory.
/// Errors: an unknown shape or type, a config that no family reads, an output that exists or cannot be written, too
/// little disk.
Result<void> synthesize(const SynthOptions& options);

std::vector<std::string_view> synth_shape_names();
/// The names that SynthOptions::dtype takes.
std::vector<std::string_view> synth_types();

}  // namespace kvasir
