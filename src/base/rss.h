// The resident set of this process by owner, from /proc/self/smaps, and the heap in use. Reads, changes nothing.
#pragma once

#include <cstddef>
#include <istream>
#include <optional>
#include <span>

#include <kvasir/generate.h>

#include "base/owned_ranges.h"

namespace kvasir {

/// `tokenizer_heap` is what heap_bytes() grew by when the tokenizer was built. The kernel visits every resident page:
/// a millisecond at most, and some 10 ms more for each GB in small pages. Empty where /proc does not tell.
std::optional<RssByOwner> rss_by_owner(size_t tokenizer_heap);

/// The split of one text in the form of /proc/self/smaps, `kernel` left 0. `ranges` by address.
RssByOwner split_rss(std::istream& smaps, std::span<const OwnedRange> ranges, size_t tokenizer_heap);

/// Bytes that malloc has given out in the whole process, now; 0 where the C library does not count them.
size_t heap_bytes();

}  // namespace kvasir
