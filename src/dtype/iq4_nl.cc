// iq4_nl: 32 indices of 4 bits into a table of 16 integers, denser near 0, and one f16 scale. Source: ggml-org/ggml,
// block_iq4_nl and kvalues_iq4nl.
#include "dtype/table16.h"

namespace kvasir {

const Codec& codec_iq4_nl();

namespace {

constexpr int kBytes = 18;
constexpr int8_t kTable[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

IntegerBlock read(const std::byte* block, int) {
  IntegerBlock out{.w = {}, .scale = half_at(block)};
  table16::unpack(block + 2, kTable, out.w);
  return out;
}

// The value furthest from 0 becomes the table's first entry.
int64_t encode(const float* src, std::byte* dst, int64_t n) {
  int64_t saturated = 0;
  for (int64_t i = 0; i < n; i += kActElems, dst += kBytes) {
    saturated += put_half(range_of(src + i, kActElems).extreme() / kTable[0], dst);
    table16::pack(src + i, half_at(dst), kTable, dst + 2);
  }
  return saturated;
}

using RowOps = IntegerRowOps<kActElems, kBytes, false, read>;

}  // namespace

const Codec& codec_iq4_nl() {
  static constexpr Codec codec{.name = "iq4_nl",
                               .file_name = "IQ4_NL",
                               .summary = "blocks of 32 values of 4 bits from a table, with a scale",
                               .block_elems = kActElems,
                               .block_bytes = kBytes,
                               .act = Act::q8,
                               .form = RowForm::iq4_nl,
                               .encode = encode,
                               .decode = RowOps::decode,
                               .dot = RowOps::dot};
  return codec;
}

}  // namespace kvasir
