// What the resident set of this process consists of. Peaks and budgets are elsewhere.
#pragma once

#include <cstddef>

namespace kvasir {

/// Resident bytes by who holds them. All but `kernel` come from one walk over the process's mappings.
struct RssByOwner {
  size_t weights = 0;      ///< in memory of our own, and pages of mapped model files
  size_t kv = 0;           ///< pages that the caches have written to
  size_t activations = 0;  ///< the engine's scratch memory
  size_t tokenizer = 0;    ///< heap that building it took; the only part that is no count of pages
  size_t code = 0;         ///< the program, its libraries, other mapped files
  size_t other = 0;        ///< the rest of the heap, stacks
  size_t kernel = 0;       ///< the kernel's own counter of all of it (VmRSS), for comparison

  size_t total() const { return weights + kv + activations + tokenizer + code + other; }
};

}  // namespace kvasir
