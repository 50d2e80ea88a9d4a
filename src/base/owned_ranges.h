// Which address range belongs to which owner: one table for the process, filled by whatever maps memory. base/rss.h
// counts which of their pages are resident.
#pragma once

#include <cstddef>
#include <vector>

namespace kvasir {

/// The owner of a mapping. Every memory counter that Kvasir prints is a sum over these.
enum class Owner { weights, kv, activations, count_ };

struct OwnedRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  Owner owner = Owner::activations;

  bool contains(const std::byte* address) const { return begin <= address && address < end; }
};

/// Thread-safe. A range is one or more whole mappings (never merged by the kernel with a neighbour) and overlaps no
/// other. Disown it before unmapping it.
void own_range(const void* begin, size_t bytes, Owner owner);
/// Forgets the range that begins at `begin`, if there is one.
void disown_range(const void* begin) noexcept;
/// All ranges, sorted by address.
std::vector<OwnedRange> owned_ranges();

}  // namespace kvasir
