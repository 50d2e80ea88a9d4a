// Memory that its owner can do without, since its contents can be computed or read again: cached prefixes, weights of a
// file.
#pragma once

#include <cstddef>

namespace kvasir {

/// Thread-safe.
class SpareMemory {
 public:
  virtual ~SpareMemory() = default;
  /// Frees at least `bytes` that nobody else uses, or all of them if there are fewer. Returns false if there are none.
  virtual bool give_back(size_t bytes) = 0;
  /// Bytes that give_back() can free.
  virtual size_t spare_bytes() const = 0;
};

}  // namespace kvasir
