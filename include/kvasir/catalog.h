// The catalogue of this build: cache layouts, types of K and V, types of weights, model families, and how weights are
// held. Names are the values that options take. Samplers are in sampling.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>
#include <kvasir/version.h>

namespace kvasir {

/// Where the weights are while a model runs. A model with tensors that its file stores in separate parts cannot be
/// mapped: `automatic` streams it instead, and Engine::create() refuses it mapped.
enum class WeightsMode {
  automatic,  ///< with a budget: resident or streamed; without: resident if half of the free memory suffices, else
              ///< mapped
  resident,   ///< read once into memory of the process
  mapped,     ///< memory-mapped: pages of the file, which the system may drop and read again
  streamed,   ///< read again in every pass, with two layers in memory
};

/// Every mode, in the order of the enum.
KVASIR_API std::span<const WeightsMode> weights_modes();
/// "auto", "resident", "mapped" or "streamed".
KVASIR_API std::string_view weights_mode_name(WeightsMode mode);
/// The mode with this name. Errors: bad_argument, an unknown name, with the list of known ones.
KVASIR_API Result<WeightsMode> parse_weights_mode(std::string_view name);

namespace catalog {

/// A cache layout: a value of SessionOptions::layout.
struct LayoutEntry {
  std::string name;
  std::string summary;      ///< what it does, one line
  std::string trade;        ///< its cost and its benefit, one line
  bool recomputes = false;  ///< stores nothing between steps: each step computes the whole text again
  bool pooled = false;      ///< takes KV blocks from a pool as needed; forks share them
  bool drops_old = false;   ///< drops positions that no window reaches; supports SessionOptions::slide
};

/// A type that K and V may be stored in: a value of SessionOptions::kv_type_k and kv_type_v.
struct KvTypeEntry {
  std::string name;
  std::string summary;
  double bits = 0;       ///< per value, scales included
  bool rotated = false;  ///< each head is multiplied by a Hadamard matrix before it is stored (arXiv:2404.00456)
};

/// A type that weights may be stored in.
struct WeightTypeEntry {
  std::string name;
  std::string summary;
  double bits = 0;       ///< per value, scales included
  bool integer = false;  ///< dot products are integer sums: activations are rounded to 8 bits
};

struct FamilyEntry {
  std::string name;
  std::string summary;
  std::vector<std::string> model_types;  ///< values of config.json's "model_type"
};

KVASIR_API std::span<const LayoutEntry> layouts();
/// All types, from the widest to the narrowest.
KVASIR_API std::span<const KvTypeEntry> kv_types();
KVASIR_API std::span<const WeightTypeEntry> weight_types();
KVASIR_API std::span<const FamilyEntry> families();

/// The entry with this name. Errors: bad_argument, an unknown name, with the list of known ones.
KVASIR_API Result<LayoutEntry> find_layout(std::string_view name);
/// As find_layout(); also accepts the spelling of safetensors ("F16").
KVASIR_API Result<KvTypeEntry> find_kv_type(std::string_view name);
/// As find_layout(); also accepts the spellings of safetensors and of config.json ("float16").
KVASIR_API Result<WeightTypeEntry> find_weight_type(std::string_view name);

}  // namespace catalog
}  // namespace kvasir
