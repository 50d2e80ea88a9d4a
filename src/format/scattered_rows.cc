// Copies rows and blocks; a range may begin or end inside one.
#include "format/scattered_rows.h"

#include <algorithm>
#include <cstring>

namespace kvasir {
namespace {

constexpr size_t kMxCodes = 16, kMxBlock = 1 + kMxCodes;  // MXFP4 block: a scale, then 32 codes of 4 bits

// Spreads 8 codes of 4 bits, the first one lowest, to the low halves of 8 bytes.
uint64_t spread(uint32_t codes) {
  uint64_t x = codes;
  x = (x | x << 16) & 0x0000ffff0000ffff;
  x = (x | x << 8) & 0x00ff00ff00ff00ff;
  return (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
}

// Byte j of `codes` holds elements 2j and 2j + 1; byte j of a block holds j and j + 16.
void join_block(const std::byte* codes, std::byte scale, std::byte* block) {
  uint32_t eights[4];
  std::memcpy(eights, codes, kMxCodes);
  const uint64_t joined[2] = {spread(eights[0]) | spread(eights[2]) << 4, spread(eights[1]) | spread(eights[3]) << 4};
  *block = scale;
  std::memcpy(block + 1, joined, kMxCodes);
}

// Fills `out` with bytes of a row of blocks, from `begin` on.
void join_row(const std::byte* codes, const std::byte* scales, uint64_t begin, std::span<std::byte> out) {
  for (size_t done = 0; done < out.size();) {
    const size_t block = (begin + done) / kMxBlock, skip = (begin + done) % kMxBlock;
    const size_t n = std::min(kMxBlock - skip, out.size() - done);
    std::byte whole[kMxBlock];
    join_block(codes + block * kMxCodes, scales[block], whole);
    std::memcpy(out.data() + done, whole + skip, n);
    done += n;
  }
}

}  // namespace

std::array<FilePiece, 2> pieces_of(const TensorInfo& tensor, uint64_t begin, uint64_t bytes) {
  if (!tensor.scattered) return {FilePiece{tensor.file, tensor.offset + begin, bytes}, {}};
  const ScatteredRows& rows = *tensor.scattered;
  if (bytes == 0) return {FilePiece{tensor.file, tensor.offset, 0}, {}};
  const bool planes = rows.scales_file >= 0;
  const uint64_t first = begin / rows.bytes, last = (begin + bytes - 1) / rows.bytes;
  const uint64_t blocks = rows.bytes / kMxBlock, stored = planes ? blocks * kMxCodes : rows.bytes;
  FilePiece scales;
  if (planes)
    scales = {rows.scales_file, rows.scales + first * rows.scales_step, (last - first) * rows.scales_step + blocks};
  return {FilePiece{tensor.file, tensor.offset + first * rows.step, (last - first) * rows.step + stored}, scales};
}

void assemble(const TensorInfo& tensor, uint64_t begin, const std::byte* rows, const std::byte* scales,
              std::span<std::byte> out) {
  const ScatteredRows& r = *tensor.scattered;
  const uint64_t first = begin / r.bytes;
  for (uint64_t done = 0; done < out.size();) {
    const uint64_t row = (begin + done) / r.bytes - first, skip = (begin + done) % r.bytes;
    const uint64_t n = std::min(r.bytes - skip, out.size() - done);
    if (r.scales_file >= 0)
      join_row(rows + row * r.step, scales + row * r.scales_step, skip, out.subspan(done, n));
    else
      std::memcpy(out.data() + done, rows + row * r.step + skip, n);
    done += n;
  }
}

}  // namespace kvasir
