// The resident set of this process by owner, from /proc/self/smaps, and the heap in use.
#pragma once

#include <cstddef>
#include <istream>
#include <optional>
#include <span>

#include <kvasir/generate.h>

#include "base/owned_ranges.h"

namespace kvasir {

/// The current resident set by owner, in bytes. `tokenizer_heap` is the growth of heap_bytes() while the tokenizer was
/// built. The kernel visits every resident page: at most a millisecond, plus some 10 ms for each GB in small pages.
/// Empty if /proc cannot be read.
std::optional<RssByOwner> rss_by_owner(size_t tokenizer_heap);

/// Splits a text in the form of /proc/self/smaps; `kernel` stays 0. `ranges` must be sorted by address.
RssByOwner split_rss(std::istream& smaps, std::span<const OwnedRange> ranges, size_t tokenizer_heap);

/// Bytes that malloc has allocated in the whole process; 0 if the C library does not count them.
size_t heap_bytes();

}  // namespace kvasir
