// Each mapping of /proc/self/smaps has one owner: that of the range that contains it, else the file behind it, else
// none. Single pages need not be looked at, since Buffer keeps its mappings separate from their neighbours.
#include "base/rss.h"

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

namespace kvasir {
namespace {

// The value in bytes of a line "KEY:   123 kB" in a file of /proc; 0 if absent.
size_t read_kib(const char* path, const std::string& key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (size_t kib = 0; line.starts_with(key) && std::sscanf(line.c_str() + key.size(), ": %zu", &kib) == 1)
      return kib * 1024;
  return 0;
}

const OwnedRange* range_of(std::span<const OwnedRange> ranges, const std::byte* address) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), address,
                                      [](const std::byte* a, const OwnedRange& range) { return a < range.begin; });
  if (after == ranges.begin() || !std::prev(after)->contains(address)) return nullptr;
  return &*std::prev(after);
}

// The counter for the mapping that `header` describes: "55d0-55e0 r-xp 00000000 08:01 123   /usr/bin/x". Null if the
// line is not a header.
size_t* counter_of(const std::string& header, std::span<const OwnedRange> ranges, RssByOwner* out) {
  size_t begin = 0, end = 0;
  char path = 0;
  if (std::sscanf(header.c_str(), "%zx-%zx %*s %*s %*s %*s %c", &begin, &end, &path) < 2) return nullptr;
  if (const OwnedRange* range = range_of(ranges, reinterpret_cast<const std::byte*>(begin))) {
    if (range->owner == Owner::weights) return &out->weights;
    return range->owner == Owner::kv ? &out->kv : &out->activations;
  }
  return path == '/' ? &out->code : &out->other;
}

}  // namespace

RssByOwner split_rss(std::istream& smaps, std::span<const OwnedRange> ranges, size_t tokenizer_heap) {
  RssByOwner out;
  size_t* counter = nullptr;
  size_t kib = 0;
  for (std::string line; std::getline(smaps, line);) {
    const bool field = !line.empty() && line[0] >= 'A' && line[0] <= 'Z';  // addresses are in lower case
    if (!field)
      counter = counter_of(line, ranges, &out);
    else if (counter != nullptr && std::sscanf(line.c_str(), "Rss: %zu", &kib) == 1)
      *counter += kib * 1024;
  }
  out.tokenizer = std::min(tokenizer_heap, out.other);
  out.other -= out.tokenizer;
  return out;
}

std::optional<RssByOwner> rss_by_owner(size_t tokenizer_heap) {
  const auto ranges = owned_ranges();
  std::ifstream smaps("/proc/self/smaps");
  RssByOwner out = split_rss(smaps, ranges, tokenizer_heap);
  out.kernel = read_kib("/proc/self/status", "VmRSS");  // last, since reading smaps makes a few pages resident
  if (out.kernel == 0 || out.total() == 0) return std::nullopt;
  return out;
}

size_t heap_bytes() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

}  // namespace kvasir
