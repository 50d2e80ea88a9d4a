// The catalogue, built from the registries of the layers below.
#include <kvasir/catalog.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "arch/family.h"
#include "cache/kv_type.h"
#include "cache/layout.h"
#include "dtype/codec.h"

namespace kvasir {
namespace {

std::string joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

}  // namespace

std::span<const WeightsMode> weights_modes() {
  static constexpr WeightsMode kModes[] = {WeightsMode::automatic, WeightsMode::resident, WeightsMode::mapped,
                                           WeightsMode::streamed};
  return kModes;
}

std::string_view weights_mode_name(WeightsMode mode) {
  switch (mode) {
    case WeightsMode::automatic:
      return "auto";
    case WeightsMode::resident:
      return "resident";
    case WeightsMode::mapped:
      return "mapped";
    case WeightsMode::streamed:
      return "streamed";
  }
  return {};
}

Result<WeightsMode> parse_weights_mode(std::string_view name) {
  std::vector<std::string_view> names;
  for (const WeightsMode mode : weights_modes()) {
    if (name == weights_mode_name(mode)) return mode;
    names.push_back(weights_mode_name(mode));
  }
  return fail(Error::bad_argument, fmt::format("\"{}\" is not a weight mode", name), "ModelOptions::weights",
              joined(names));
}

namespace catalog {
namespace {

LayoutEntry entry_of(const LayoutInfo& info) {
  return {.name = std::string(info.name),
          .summary = std::string(info.summary),
          .trade = std::string(info.trade),
          .recomputes = info.recomputes,
          .pooled = info.pooled,
          .drops_old = info.drops_old};
}

double bits_of(const Codec& codec) { return 8.0 * codec.block_bytes / codec.block_elems; }

KvTypeEntry entry_of(const KvType& type) {
  const std::string summary = type.codec->summary;
  return {.name = type.name,
          .summary = type.rotated ? summary + ", heads rotated" : summary,
          .bits = bits_of(*type.codec),
          .rotated = type.rotated};
}

WeightTypeEntry entry_of(const Codec& codec) {
  return {.name = codec.name, .summary = codec.summary, .bits = bits_of(codec), .integer = codec.act == Act::q8};
}

FamilyEntry entry_of(const Family& family) {
  return {.name = std::string(family.name),
          .summary = std::string(family.summary),
          .model_types = {family.aliases.begin(), family.aliases.end()}};
}

template <class Entry, class T>
std::vector<Entry> entries_of(std::span<const T* const> registry) {
  std::vector<Entry> entries;
  for (const T* one : registry) entries.push_back(entry_of(*one));
  return entries;
}

// Maps names of config.json to those of safetensors.
std::string_view file_name_of(std::string_view name) {
  if (name == "float32") return "F32";
  if (name == "float16") return "F16";
  return name == "bfloat16" ? "BF16" : name;
}

}  // namespace

std::span<const LayoutEntry> layouts() {
  static const auto entries = entries_of<LayoutEntry>(kvasir::layouts());
  return entries;
}

std::span<const KvTypeEntry> kv_types() {
  static const auto entries = [] {
    std::vector<KvTypeEntry> list;
    for (const KvType& type : kvasir::kv_types()) list.push_back(entry_of(type));
    return list;
  }();
  return entries;
}

std::span<const WeightTypeEntry> weight_types() {
  static const auto entries = entries_of<WeightTypeEntry>(codecs());
  return entries;
}

std::span<const FamilyEntry> families() {
  static const auto entries = entries_of<FamilyEntry>(kvasir::families());
  return entries;
}

Result<LayoutEntry> find_layout(std::string_view name) {
  KVASIR_TRY(const LayoutInfo* info, kvasir::find_layout(name));
  return entry_of(*info);
}

Result<KvTypeEntry> find_kv_type(std::string_view name) {
  KVASIR_TRY(const KvType* type, kvasir::find_kv_type(name));
  return entry_of(*type);
}

Result<WeightTypeEntry> find_weight_type(std::string_view name) {
  if (const Codec* codec = find_codec(file_name_of(name)); codec != nullptr) return entry_of(*codec);
  std::vector<std::string_view> names;
  for (const WeightTypeEntry& type : weight_types()) names.push_back(type.name);
  return fail(Error::bad_argument, fmt::format("\"{}\" is not a weight type", name), "PlanRequest::dtype",
              joined(names));
}

}  // namespace catalog
}  // namespace kvasir
