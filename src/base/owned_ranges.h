// Which address ranges belong to whom: one table for the process, filled by whatever maps memory. What is resident of
// them is base/rss.h's question.
#pragma once

#include <cstddef>
#include <vector>

namespace kvasir {

/// Who holds a mapping. Every counter that Kvasir prints is a sum over these.
enum class Owner { weights, kv, activations, count_ };

struct OwnedRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  Owner owner = Owner::activations;

  bool contains(const std::byte* address) const { return begin <= address && address < end; }
};

/// Any thread. A range is one or more mappings of its own (the kernel has not merged it with a neighbour) and overlaps
/// no other; it is to be disowned before it is unmapped.
void own_range(const void* begin, size_t bytes, Owner owner);
/// Forgets the range that begins here, if there is one.
void disown_range(const void* begin) noexcept;
/// All ranges, by address.
std::vector<OwnedRange> owned_ranges();

}  // namespace kvasir
