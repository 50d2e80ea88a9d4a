// The catalogue of this build: cache layouts, types of K and V, types of weights, model families, and how weights are
// held. Names are the values that options take. What a layout or a type does inside is not here; samplers are in
// sampling.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>
#include <kvasir/version.h>

namespace kvasir {

/// Where the weights are while a model runs. Tensors that have to be put together, since their file keeps parts of them
/// apart, cannot be mapped: `automatic` streams such a model instead, and no engine takes it mapped.
enum class WeightsMode {
  automatic,  ///< under a budget resident or streamed; else resident where half of the free memory is enough, or mapped
  resident,   ///< read once into memory of the process
  mapped,     ///< pages of the file, which the system may drop and read again
  streamed,   ///< read again in every pass, with two layers in memory
};

/// Every mode, in the order of the enum.
KVASIR_API std::span<const WeightsMode> weights_modes();
/// "auto", "resident", "mapped" or "streamed".
KVASIR_API std::string_view weights_mode_name(WeightsMode mode);
/// The mode of a name. Errors: an unknown name (bad_argument), with the list of known ones.
KVASIR_API Result<WeightsMode> parse_weights_mode(std::string_view name);

namespace catalog {

/// A cache layout: a value of SessionOptions::layout.
struct LayoutEntry {
  std::string name;
  std::string summary;      ///< what it does, in a line
  std::string trade;        ///< what it costs and what for, in a line
  bool recomputes = false;  ///< holds nothing between steps: each step computes all of its text again
  bool pooled = false;      ///< takes blocks from a pool as positions come; forks share them
  bool drops_old = false;   ///< drops positions that no window sees; a sequence in it may slide without end
};

/// A type that K and V may be stored in: a value of SessionOptions::kv_type_k and kv_type_v.
struct KvTypeEntry {
  std::string name;
  std::string summary;
  double bits = 0;       ///< a value, scales included
  bool rotated = false;  ///< heads are stored multiplied by a Hadamard matrix (arXiv:2404.00456)
};

/// A type that weights may be stored in.
struct WeightTypeEntry {
  std::string name;
  std::string summary;
  double bits = 0;       ///< a value, scales included
  bool integer = false;  ///< products are sums of integers: activations are rounded to 8 bits for them
};

struct FamilyEntry {
  std::string name;
  std::string summary;
  std::vector<std::string> model_types;  ///< values of config.json's "model_type"
};

KVASIR_API std::span<const LayoutEntry> layouts();
/// From wide to narrow.
KVASIR_API std::span<const KvTypeEntry> kv_types();
KVASIR_API std::span<const WeightTypeEntry> weight_types();
KVASIR_API std::span<const FamilyEntry> families();

/// An entry by its name. Errors: an unknown name (bad_argument), with the list of known ones.
KVASIR_API Result<LayoutEntry> find_layout(std::string_view name);
/// The same; safetensors' spelling ("F16") of a type is known too.
KVASIR_API Result<KvTypeEntry> find_kv_type(std::string_view name);
/// The same; the spellings of safetensors and of config.json ("float16") are known too.
KVASIR_API Result<WeightTypeEntry> find_weight_type(std::string_view name);

}  // namespace catalog
}  // namespace kvasir
