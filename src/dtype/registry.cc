// The list of storage types, generated from the files in this folder.
#include "dtype/codec.h"

namespace kvasir {

#define KVASIR_ENTRY(name) const Codec& codec_##name();
#include "generated/codecs.inc"
#undef KVASIR_ENTRY

std::span<const Codec* const> codecs() {
#define KVASIR_ENTRY(name) &codec_##name(),
  static const Codec* const list[] = {
#include "generated/codecs.inc"
  };
#undef KVASIR_ENTRY
  return list;
}

const Codec* find_codec(std::string_view name) {
  for (const Codec* codec : codecs())
    if (name == codec->name || name == codec->file_name) return codec;
  return nullptr;
}

}  // namespace kvasir
