// Writing and reading of the snapshot format. It is little-endian, as is every CPU that Kvasir runs on.
#include "cache/share/snapshot.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include <fmt/format.h>
#include <xxhash.h>

#include <kvasir/version.h>

#include "cache/kv_type.h"

namespace kvasir {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr char kSnapshotMagic[8] = {'K', 'V', 'A', 'S', 'I', 'R', 'K', 'V'};
constexpr uint32_t kFormatVersion = 1;
constexpr uint32_t kLongRope = 1u << 31;  // bit of the field `sinks`: CacheShape::long_rope
constexpr size_t kTypeName = 16, kSum = 8, kFinalSum = 16;

// The header's part of fixed size, before the lists.
struct Fixed {
  char magic[8];
  uint32_t format_version, numerics_version;
  uint64_t fingerprint_high, fingerprint_low;
  char k[kTypeName], v[kTypeName];  // padded with zeros
  uint32_t layers, kv_heads, head_dim, sinks;
  uint32_t positions, tokens;
};
static_assert(sizeof(Fixed) == 88);

// One per layer.
struct Window {
  uint32_t window, oldest;
};

uint64_t sum_of(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t sum_at(const std::byte* bytes) {
  uint64_t sum;
  std::memcpy(&sum, bytes, sizeof sum);
  return sum;
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

tl::unexpected<Error> broken(const std::filesystem::path& path, const std::string& what) {
  return fail(Error::damaged, what, path.string(), "a snapshot that was not changed since it was written");
}

/// The rows of one block that are in the file, by layer.
class BlockRows {
 public:
  BlockRows(const SnapshotHeader& h, int block) : h_(h), first_(block * kTilePositions) {}
  int first() const { return first_; }
  uint64_t live(int layer) const {
    const uint64_t held = live_below(first_, h_.positions);
    const uint64_t old = live_below(first_, h_.oldest[static_cast<size_t>(layer)]);
    return held & (~old | live_below(first_, h_.shape.sinks));
  }
  size_t bytes() const {
    size_t rows = 0;
    for (int layer = 0; layer < h_.shape.layers; ++layer) rows += static_cast<size_t>(std::popcount(live(layer)));
    return rows * (h_.shape.k_row_bytes() + h_.shape.v_row_bytes());
  }

 private:
  const SnapshotHeader& h_;
  int first_;
};

int blocks_of(const SnapshotHeader& h) { return (h.positions + kTilePositions - 1) / kTilePositions; }

// The checksum of the file: over the checksums of its parts, in order.
class TotalSum {
 public:
  void add(uint64_t sum) { sums_.push_back(sum); }
  XXH128_hash_t value() const { return XXH3_128bits(sums_.data(), sums_.size() * sizeof(uint64_t)); }

 private:
  std::vector<uint64_t> sums_;
};

Result<uint64_t> parse_hex(std::string_view digits) {
  uint64_t number = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  if (digits.size() == 16 && end.ec == std::errc() && end.ptr == digits.data() + digits.size()) return number;
  return fail(Error::bad_argument, "not a fingerprint of 32 hex digits", std::string(digits));
}

Result<std::vector<std::byte>> header_bytes(const SnapshotHeader& h) {
  const std::string_view fingerprint = h.fingerprint;
  if (fingerprint.size() != 32) return fail(Error::bad_argument, "not a fingerprint of 32 hex digits", h.fingerprint);
  Fixed fixed{};
  std::copy(std::begin(kSnapshotMagic), std::end(kSnapshotMagic), fixed.magic);
  fixed.format_version = kFormatVersion;
  fixed.numerics_version = h.numerics_version;
  KVASIR_TRY(fixed.fingerprint_high, parse_hex(fingerprint.substr(0, 16)));
  KVASIR_TRY(fixed.fingerprint_low, parse_hex(fingerprint.substr(16)));
  h.shape.k->name.copy(fixed.k, kTypeName);
  h.shape.v->name.copy(fixed.v, kTypeName);
  fixed.layers = static_cast<uint32_t>(h.shape.layers);
  fixed.kv_heads = static_cast<uint32_t>(h.shape.kv_heads);
  fixed.head_dim = static_cast<uint32_t>(h.shape.head_dim);
  fixed.sinks = static_cast<uint32_t>(h.shape.sinks) | (h.shape.long_rope ? kLongRope : 0);
  fixed.positions = static_cast<uint32_t>(h.positions);
  fixed.tokens = static_cast<uint32_t>(h.tokens.size());
  std::vector<std::byte> bytes;
  const auto add = [&bytes](std::span<const std::byte> more) { bytes.insert(bytes.end(), more.begin(), more.end()); };
  add(bytes_of(fixed));
  for (int layer = 0; layer < h.shape.layers; ++layer)
    add(bytes_of(Window{static_cast<uint32_t>(h.shape.window(layer)),
                        static_cast<uint32_t>(h.oldest[static_cast<size_t>(layer)])}));
  add(std::as_bytes(std::span(h.tokens)));
  return bytes;
}

// Collects the rows of one block in the order of the file. tiles: by layer.
void gather(const BlockRows& rows, const std::vector<std::vector<Tile>>& tiles, const CacheShape& shape,
            std::vector<std::byte>* out) {
  const size_t k_row = shape.k_row_bytes(), v_row = shape.v_row_bytes();
  out->clear();
  for (int layer = 0; layer < shape.layers; ++layer) {
    const std::byte *k[kTilePositions] = {}, *v[kTilePositions] = {};
    for (const Tile& tile : tiles[static_cast<size_t>(layer)])  // a ring may report two tiles for one block
      for (uint64_t live = tile.first == rows.first() ? tile.live : 0; live != 0; live &= live - 1) {
        const auto i = static_cast<size_t>(std::countr_zero(live));
        k[i] = tile.k + i * tile.k_stride;
        v[i] = tile.v + i * tile.v_stride;
      }
    const auto add = [&](const std::byte* const* from, size_t bytes) {
      for (uint64_t live = rows.live(layer); live != 0; live &= live - 1)
        out->insert(out->end(), from[std::countr_zero(live)], from[std::countr_zero(live)] + bytes);
    };
    add(k, k_row);
    add(v, v_row);
  }
}

// The inverse of gather(): stores the rows of one block in the cache.
void scatter(const BlockRows& rows, const std::byte* from, Layout* cache) {
  const CacheShape& shape = cache->shape();
  const size_t k_row = shape.k_row_bytes(), v_row = shape.v_row_bytes();
  for (int layer = 0; layer < shape.layers; ++layer) {
    const uint64_t live = rows.live(layer);
    const std::byte* v = from + static_cast<size_t>(std::popcount(live)) * k_row;
    for (uint64_t bits = live; bits != 0; bits &= bits - 1, from += k_row, v += v_row) {
      const Layout::Row row = cache->row(layer, rows.first() + std::countr_zero(bits));
      std::memcpy(row.k, from, k_row);
      std::memcpy(row.v, v, v_row);
    }
    from = v;
  }
}

// Whether a cache can have these numbers; no later arithmetic on them overflows.
bool is_sane(const Fixed& f) {
  constexpr uint32_t kMost = 1 << 16, kMostPositions = 1 << 28;
  return f.layers >= 1 && f.layers <= kMost && f.kv_heads >= 1 && f.kv_heads <= kMost && f.head_dim >= 1 &&
         f.head_dim <= kMost && (f.sinks & ~kLongRope) <= kTilePositions && f.tokens <= kMostPositions &&
         f.positions <= f.tokens;
}

std::string name_of(const char* name) { return {name, std::find(name, name + kTypeName, '\0')}; }

}  // namespace

// ---- writing ----------------------------------------------------------------------------------------------------

Result<void> save_snapshot(const std::filesystem::path& path, const Layout& cache, std::span<const int> tokens,
                           const std::string& fingerprint) {
  const int layers = cache.shape().layers;
  SnapshotHeader header{
      kNumericsVersion, fingerprint, cache.shape(), {}, cache.coverage(), {tokens.begin(), tokens.end()}};
  for (int layer = 0; layer < layers; ++layer) header.oldest.push_back(std::min(cache.oldest(layer), header.positions));
  KVASIR_TRY(const std::vector<std::byte> first, header_bytes(header));
  KVASIR_TRY(AtomicFile file, AtomicFile::create(path));
  TotalSum total;
  const auto write_part = [&](const std::vector<std::byte>& bytes, uint64_t seed) -> Result<void> {
    const uint64_t sum = sum_of(bytes, seed);
    total.add(sum);
    KVASIR_CHECK(file.write(bytes));
    return file.write(bytes_of(sum));
  };
  KVASIR_CHECK(write_part(first, 0));
  std::vector<std::vector<Tile>> tiles(static_cast<size_t>(layers));
  for (int layer = 0; layer < layers; ++layer) cache.tiles(layer, header.positions, &tiles[static_cast<size_t>(layer)]);
  std::vector<std::byte> block;
  for (int j = 0; j < blocks_of(header); ++j) {
    gather(BlockRows(header, j), tiles, header.shape, &block);
    KVASIR_CHECK(write_part(block, static_cast<uint64_t>(j) + 1));
  }
  const XXH128_hash_t all = total.value();
  const uint64_t both[2] = {all.low64, all.high64};
  KVASIR_CHECK(file.write(std::as_bytes(std::span(both))));
  return file.commit();
}

// ---- reading ----------------------------------------------------------------------------------------------------

bool is_snapshot(const std::filesystem::path& path) {
  char magic[sizeof kSnapshotMagic];
  const auto file = InputFile::open(path);
  return file && file->read_at(0, std::as_writable_bytes(std::span(magic))) &&
         std::equal(std::begin(kSnapshotMagic), std::end(kSnapshotMagic), magic);
}

Result<Snapshot> Snapshot::open(const std::filesystem::path& path) {
  KVASIR_TRY(InputFile file, InputFile::open(path));
  Snapshot snapshot(std::move(file));
  KVASIR_CHECK(snapshot.read_header());
  return snapshot;
}

// The header's length follows from its first bytes, which are trusted only after the checksum of the whole header
// matches.
Result<void> Snapshot::read_header() {
  const auto& path = file_.path();
  Fixed fixed;
  if (file_.size() < sizeof fixed) return broken(path, "not a snapshot: it is too short");
  KVASIR_CHECK(file_.read_at(0, std::as_writable_bytes(std::span(&fixed, 1))));
  if (!std::equal(std::begin(kSnapshotMagic), std::end(kSnapshotMagic), fixed.magic))
    return broken(path, "not a snapshot: it begins with other bytes");
  if (fixed.format_version != kFormatVersion)
    return fail(Error::unsupported,
                fmt::format("a snapshot of format {}, this build reads {}", fixed.format_version, kFormatVersion),
                path.string(), "the version of Kvasir that wrote it");
  if (!is_sane(fixed)) return broken(path, "the snapshot's header has impossible numbers");
  const size_t bytes = sizeof fixed + fixed.layers * sizeof(Window) + fixed.tokens * sizeof(int32_t);
  header_bytes_ = bytes + kSum;
  if (file_.size() < header_bytes_ + kFinalSum) return broken(path, "the snapshot was cut off in its header");
  std::vector<std::byte> header(header_bytes_);
  KVASIR_CHECK(file_.read_at(0, header));
  const auto content = std::span(header).first(bytes);
  if (sum_at(header.data() + bytes) != sum_of(content, 0) || std::memcmp(&fixed, header.data(), sizeof fixed) != 0)
    return broken(path, "the snapshot's header is not what was written");
  KVASIR_CHECK(parse_header(content));
  uint64_t expected = header_bytes_ + kFinalSum;
  for (int j = 0; j < blocks_of(header_); ++j) expected += BlockRows(header_, j).bytes() + kSum;
  if (file_.size() == expected) return {};
  return broken(path, fmt::format("the snapshot has {} bytes, its header says {}", file_.size(), expected));
}

Result<void> Snapshot::parse_header(std::span<const std::byte> bytes) {
  Fixed f;
  std::memcpy(&f, bytes.data(), sizeof f);
  const auto stored_type = [this](const char* name) {
    return find_kv_type(name_of(name), file_.path().string()).map_error([](Error error) {
      error.kind = Error::unsupported;  // written by another build
      return error;
    });
  };
  KVASIR_TRY(const KvType* k, stored_type(f.k));
  KVASIR_TRY(const KvType* v, stored_type(f.v));
  const auto positions = static_cast<int>(f.positions), layers = static_cast<int>(f.layers);
  CacheShape shape{layers, static_cast<int>(f.kv_heads), static_cast<int>(f.head_dim), positions, k, v};
  shape.sinks = static_cast<int>(f.sinks & ~kLongRope);
  shape.long_rope = (f.sinks & kLongRope) != 0;
  std::vector<int> oldest;
  const std::byte* at = bytes.data() + sizeof f;
  for (int layer = 0; layer < layers; ++layer, at += sizeof(Window)) {
    Window w;
    std::memcpy(&w, at, sizeof w);
    shape.windows.push_back(static_cast<int>(w.window));
    oldest.push_back(static_cast<int>(w.oldest));
  }
  for (int layer = 0; layer < layers; ++layer)
    if (const int from = oldest[static_cast<size_t>(layer)];
        shape.window(layer) < 0 || from < 0 || from > positions || !shape.goes_on_from(layer, positions, from))
      return broken(file_.path(), fmt::format("the snapshot's layer {} lacks what its window sees", layer));
  if (std::all_of(shape.windows.begin(), shape.windows.end(), [](int w) { return w == 0; })) shape.windows.clear();
  std::vector<int> tokens(f.tokens);
  if (f.tokens > 0) std::memcpy(tokens.data(), at, f.tokens * sizeof(int32_t));
  header_ = {f.numerics_version, fmt::format("{:016x}{:016x}", f.fingerprint_high, f.fingerprint_low),
             std::move(shape),   std::move(oldest),
             positions,          std::move(tokens)};
  return {};
}

// Verifies each block's checksum and calls f(rows, bytes) for it; at the end verifies the file's checksum.
template <class F>
Result<void> Snapshot::each_block(F&& f) const {
  TotalSum total;
  uint64_t at = header_bytes_;
  std::byte sum[kSum], final_sum[kFinalSum];
  KVASIR_CHECK(file_.read_at(at - kSum, sum));
  total.add(sum_at(sum));
  std::vector<std::byte> bytes;
  for (int j = 0; j < blocks_of(header_); ++j) {
    const BlockRows rows(header_, j);
    bytes.resize(rows.bytes() + kSum);
    KVASIR_CHECK(file_.read_at(at, bytes));
    at += bytes.size();
    const auto content = std::span(bytes).first(bytes.size() - kSum);
    const uint64_t written = sum_at(content.data() + content.size());
    if (written != sum_of(content, static_cast<uint64_t>(j) + 1))
      return broken(file_.path(),
                    fmt::format("positions {} to {} of the snapshot are not what was written", rows.first(),
                                std::min(rows.first() + kTilePositions, header_.positions) - 1));
    total.add(written);
    f(rows, content.data());
  }
  KVASIR_CHECK(file_.read_at(at, final_sum));
  const XXH128_hash_t all = total.value();
  if (sum_at(final_sum) == all.low64 && sum_at(final_sum + kSum) == all.high64) return {};
  return broken(file_.path(), "the snapshot's blocks do not belong together");
}

Result<void> Snapshot::check() const {
  return each_block([](const BlockRows&, const std::byte*) {});
}

Result<void> Snapshot::load(Layout* cache) const {
  return cache->restore(header_.positions, header_.oldest, [this](Layout& to) {
    return each_block([&to](const BlockRows& rows, const std::byte* from) { scatter(rows, from, &to); });
  });
}

}  // namespace kvasir
