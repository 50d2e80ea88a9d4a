// Memory that is counted: anonymous mappings, each charged to an owner, so that freeing really returns the bytes to the
// system. Small objects live on the ordinary heap instead.
#pragma once

#include <cstddef>
#include <utility>

#include <kvasir/result.h>

#include "base/owned_ranges.h"

namespace kvasir {

inline constexpr size_t kHugePage = size_t{2} << 20;  ///< bytes

/// A zero-filled anonymous mapping. Move-only; the destructor unmaps it. The page on either side can be neither read
/// nor written, so the kernel never merges the mapping with a neighbour and counts it by itself.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();

  /// `bytes` may be 0 (an empty buffer). `huge` asks for 2 MiB pages where the system has them, including the last one
  /// even if only part of it is asked for. Errors: no memory.
  static Result<Buffer> allocate(size_t bytes, Owner owner, bool huge = false);
  /// Reserves address space for `bytes`, none of it counted before charge(): the system adds a page when it is first
  /// written. Never uses huge pages, since one written byte would make a whole one resident. Errors: no address space.
  static Result<Buffer> reserve(size_t bytes, Owner owner);

  std::byte* data() const { return data_; }
  /// Bytes asked for; for a reservation, the bytes charged.
  size_t bytes() const { return bytes_; }
  /// Sets the number of bytes of a reservation that are in use, wherever in it they lie.
  void charge(size_t bytes);
  /// Writes every page, so that the whole buffer is resident.
  void touch();

 private:
  // Maps [guard][usable, aligned to `align`][guard] and charges nothing.
  static Result<Buffer> map(size_t bytes, size_t align, Owner owner, int flags, int advice);
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    std::swap(base_, other.base_);
    std::swap(owner_, other.owner_);
  }

  std::byte* data_ = nullptr;  // inside the mapping, aligned to 64 bytes (2 MiB when huge)
  size_t bytes_ = 0;           // charged to owner_
  void* base_ = nullptr;       // first guard page, the start of the mapping
  size_t mapped_ = 0;
  Owner owner_ = Owner::activations;
};

/// `bytes` rounded up to the system's pages.
size_t whole_pages(size_t bytes);

/// Sum of bytes() over this owner's live buffers.
size_t live_bytes(Owner owner);

}  // namespace kvasir
