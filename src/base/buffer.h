// Memory that is counted: anonymous mappings, each charged to an owner, so that freeing really returns the bytes. Not
// for small objects; those live on the ordinary heap.
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
  /// Address space for `bytes`, of which nothing is counted before charge(): the system gives a page when it is first
  /// written. Never huge pages, which would be given whole where one page is written. Errors: no address space.
  static Result<Buffer> reserve(size_t bytes, Owner owner);

  std::byte* data() const { return data_; }
  /// As asked for; of a reservation, what is charged.
  size_t bytes() const { return bytes_; }
  /// So many bytes of a reservation are in use in all, wherever in it they lie.
  void charge(size_t bytes);
  /// Writes every page, so that all of it is resident from now on.
  void touch();

 private:
  // [guard][usable, from a multiple of align on][guard], without anything counted.
  static Result<Buffer> map(size_t bytes, size_t align, Owner owner, int flags, int advice);
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    std::swap(base_, other.base_);
    std::swap(owner_, other.owner_);
  }

  std::byte* data_ = nullptr;  // inside the mapping, aligned to 64 bytes (2 MiB when huge)
  size_t bytes_ = 0;           // counted
  void* base_ = nullptr;       // of the mapping, its first guard page
  size_t mapped_ = 0;
  Owner owner_ = Owner::activations;
};

/// `bytes` rounded up to the system's pages.
size_t whole_pages(size_t bytes);

/// The bytes() of this owner's live buffers, now.
size_t live_bytes(Owner owner);

}  // namespace kvasir
