// Memory that is counted: anonymous mappings, each charged to an owner, so that freeing really returns the bytes.
// Not for small objects; those live on the ordinary heap.
#pragma once

#include <cstddef>
#include <utility>

#include <kvasir/result.h>

#include "base/owned_ranges.h"

namespace kvasir {

/// A zero-filled anonymous mapping. Move-only; the destructor gives the pages back to the system. A page on either side
/// can be neither read nor written, so that the kernel never joins it with a neighbour and counts it by itself.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();

  /// `bytes` may be 0 (an empty buffer). `huge` asks for 2 MiB pages where the system gives them,
  /// the last one too, even if only part of it is asked for.
  static Result<Buffer> allocate(size_t bytes, Owner owner, bool huge = false);

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  /// Writes every page, so that all of it is resident from now on.
  void touch();

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    std::swap(base_, other.base_);
    std::swap(owner_, other.owner_);
  }

  std::byte* data_ = nullptr;  // inside the mapping, aligned to 64 bytes (2 MiB when huge)
  size_t bytes_ = 0;           // as asked for
  void* base_ = nullptr;       // of the mapping, its first guard page
  size_t mapped_ = 0;
  Owner owner_ = Owner::activations;
};

/// Bytes that live buffers of this owner were asked for, now.
size_t live_bytes(Owner owner);

}  // namespace kvasir
