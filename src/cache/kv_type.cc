// The list of KV types, built from the registered codecs.
#include "cache/kv_type.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kvasir {

std::span<const KvType> kv_types() {
  static const std::vector<KvType> list = [] {
    std::vector<KvType> types;
    for (const Codec* codec : codecs()) {
      if (codec->encode_kv == nullptr) continue;
      types.push_back({codec->name, codec, false});
      if (codec->kv_rotated) types.push_back({std::string(codec->name) + "h", codec, true});
    }
    constexpr int64_t kElems = 256;  // a multiple of every type's block size
    std::stable_sort(types.begin(), types.end(), [](const KvType& a, const KvType& b) {
      return a.codec->row_bytes(kElems) > b.codec->row_bytes(kElems);
    });
    return types;
  }();
  return list;
}

Result<const KvType*> find_kv_type(std::string_view name, const std::string& where) {
  std::vector<std::string_view> names;
  for (const KvType& type : kv_types()) {
    if (name == type.name || (!type.rotated && name == type.codec->file_name)) return &type;
    names.push_back(type.name);
  }
  return fail(Error::bad_argument, fmt::format("\"{}\" is not a KV type", name), where,
              fmt::format("{}", fmt::join(names, ", ")));
}

const KvType* kv_type_of(const Codec& codec) {
  for (const KvType& type : kv_types())
    if (type.codec == &codec && !type.rotated) return &type;
  return nullptr;
}

}  // namespace kvasir
