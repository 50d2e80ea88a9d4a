// Random models of real shapes, for tests and measurements that depend on sizes, not on the text.
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
  std::filesystem::path out = {};  ///< the folder to write
  std::string dtype = "bf16";      ///< "f32", "f16", "bf16"
  uint64_t seed = 0;
  bool force = false;  ///< replace a folder that contains only files of an earlier synth
  std::function<void(uint64_t done_bytes, uint64_t all_bytes)> progress = {};  ///< called repeatedly
};

/// Writes a Hugging Face folder: config.json, model.safetensors, and tokenizer.json if the vocabulary has room for the
/// 256 bytes. Token i < 256 is byte i, the others are filler; there are no merges, no special tokens and no end of
/// text. Weights come from a counter-based generator (Philox) keyed by (seed, tensor), the same on every machine. The
/// folder appears complete or not at all. A model of any size needs a few MiB of memory. Errors: an unknown shape or
/// type, a config that no family reads, an output that exists or cannot be written, too little disk space.
Result<void> synthesize(const SynthOptions& options);

/// The names that SynthOptions::shape accepts.
std::vector<std::string_view> synth_shape_names();
/// The names that SynthOptions::dtype accepts.
std::vector<std::string_view> synth_types();

}  // namespace kvasir
