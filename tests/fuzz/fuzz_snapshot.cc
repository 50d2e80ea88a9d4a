// Any bytes as a snapshot. If the first byte is odd, the checksums are corrected first: otherwise no input would get
// past them.
#include <algorithm>
#include <cstring>
#include <vector>

#include <xxhash.h>

#include "cache/share/snapshot.h"
#include "tests/fuzz/mem_file.h"

namespace {

using namespace kvasir;
using fuzz::require;

constexpr size_t kFixed = 88;

uint64_t put_sum(std::vector<uint8_t>& file, size_t from, size_t end, uint64_t seed) {
  const uint64_t sum = XXH3_64bits_withSeed(file.data() + from, end - from, seed);
  std::memcpy(file.data() + end, &sum, sizeof sum);
  return sum;
}

void mend_header(std::vector<uint8_t>& file) {
  if (file.size() < kFixed) return;
  std::memcpy(file.data(), "KVASIRKV\1\0\0\0", 12);
  uint32_t layers, tokens;
  std::memcpy(&layers, file.data() + 64, 4);
  std::memcpy(&tokens, file.data() + 84, 4);
  const uint64_t end = kFixed + uint64_t{8} * layers + uint64_t{4} * tokens;
  if (end + 8 <= file.size()) put_sum(file, 0, end, 0);
}

// Only for a file whose layers hold all positions.
void mend_blocks(std::vector<uint8_t>& file, const SnapshotHeader& h) {
  size_t at = kFixed + 8 * static_cast<size_t>(h.shape.layers) + 4 * h.tokens.size();
  std::vector<uint64_t> sums(1);
  std::memcpy(&sums[0], file.data() + at, 8);
  at += 8;
  for (int first = 0; first < h.positions; first += 64) {
    const size_t bytes = static_cast<size_t>(std::min(64, h.positions - first)) * h.shape.position_bytes();
    if (at + bytes + 8 > file.size()) return;
    sums.push_back(put_sum(file, at, at + bytes, static_cast<uint64_t>(first / 64) + 1));
    at += bytes + 8;
  }
  if (at + 16 != file.size()) return;
  const XXH128_hash_t all = XXH3_128bits(sums.data(), sums.size() * 8);
  std::memcpy(file.data() + at, &all.low64, 8);
  std::memcpy(file.data() + at + 8, &all.high64, 8);
}

void load(const Snapshot& snapshot) {
  const SnapshotHeader& h = snapshot.header();
  CacheShape shape = h.shape;
  shape.max_ctx = std::max(1, h.positions);
  if (bytes_of_positions(shape, shape.max_ctx) > size_t{16} << 20) return;
  const bool right = snapshot.check().has_value();
  for (const LayoutInfo* layout : layouts()) {
    const auto cache = layout->make(shape);
    require(cache.has_value());
    const auto loaded = snapshot.load(cache->get());
    require(loaded.has_value() == right);
    require((*cache)->coverage() == (right ? h.positions : 0));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::MemFile memory;
  if (size == 0) return 0;
  std::vector<uint8_t> file(data + 1, data + size);
  if (data[0] % 2 == 1) mend_header(file);
  auto snapshot = Snapshot::open(memory.write(file.data(), file.size()));
  if (snapshot && data[0] % 2 == 1) {
    mend_blocks(file, snapshot->header());
    snapshot = Snapshot::open(memory.write(file.data(), file.size()));
    require(snapshot.has_value());
  }
  if (snapshot)
    load(*snapshot);
  else
    require(!snapshot.error().what.empty() && snapshot.error().what.size() < 4096);
  return 0;
}
