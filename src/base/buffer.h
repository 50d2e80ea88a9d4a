// Memory that is counted: anonymous mappings, each charged to an owner, so that freeing really returns the bytes; and
// address space that is charged as its pages are taken. Not for small objects; those live on the ordinary heap.
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

/// Zero-filled address space of which only what was taken is counted: the system gives a page when it is first written.
/// Move-only. Never on huge pages, which would be given whole where one page is written. Reservations of one owner may
/// lie side by side and be one mapping for the kernel.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept { swap(other); }
  Reservation& operator=(Reservation&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Reservation();

  /// Errors: no address space.
  static Result<Reservation> make(size_t bytes, Owner owner);

  std::byte* data() const { return data_; }
  /// What was taken.
  size_t bytes() const { return taken_; }
  /// The owner has taken so many bytes of it in all, wherever in it they lie.
  void take(size_t bytes);

 private:
  void swap(Reservation& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(reserved_, other.reserved_);
    std::swap(taken_, other.taken_);
    std::swap(owner_, other.owner_);
  }

  std::byte* data_ = nullptr;
  size_t reserved_ = 0, taken_ = 0;
  Owner owner_ = Owner::activations;
};

/// `bytes` rounded up to the system's pages.
size_t whole_pages(size_t bytes);

/// Bytes that live buffers of this owner were asked for, now, and those taken of its reservations.
size_t live_bytes(Owner owner);

}  // namespace kvasir
