// Anonymous mappings with one counter per owner.
#include "base/buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

namespace kvasir {
namespace {

constexpr size_t kSmallestPage = 4096, kHugePage = size_t{2} << 20;

std::array<std::atomic<size_t>, static_cast<size_t>(Owner::count_)> live;

std::atomic<size_t>& counter(Owner owner) { return live[static_cast<size_t>(owner)]; }

size_t page_bytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

tl::unexpected<Error> no_memory(size_t bytes, int error) {
  return fail(fmt::format("cannot map {} bytes: {}", bytes, std::strerror(error)), "memory",
              "a shorter context, a narrower KV type or mapped weights");
}

}  // namespace

Result<Buffer> Buffer::allocate(size_t bytes, Owner owner, bool huge) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  const size_t guard = page_bytes(), align = huge ? kHugePage : guard;
  if (bytes > SIZE_MAX / 2) return no_memory(bytes, ENOMEM);  // below, nothing overflows
  const size_t usable = (bytes + align - 1) / align * align + (huge ? kHugePage : 0), mapped = usable + 2 * guard;
  void* base = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return no_memory(bytes, errno);
  std::byte* const first = static_cast<std::byte*>(base) + guard;
  if (mprotect(first, usable, PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    munmap(base, mapped);
    return no_memory(bytes, error);
  }
  if (huge) madvise(first, usable, MADV_HUGEPAGE);
  buffer.base_ = base;
  buffer.mapped_ = mapped;
  buffer.data_ = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(first) + align - 1) / align * align);
  buffer.bytes_ = bytes;
  buffer.owner_ = owner;
  counter(owner) += bytes;
  own_range(base, mapped, owner);
  return buffer;
}

Buffer::~Buffer() {
  if (base_ == nullptr) return;
  disown_range(base_);
  munmap(base_, mapped_);
  counter(owner_) -= bytes_;
}

void Buffer::touch() {
  for (size_t i = 0; i < bytes_; i += kSmallestPage) reinterpret_cast<volatile std::byte*>(data_)[i] = std::byte{0};
}

size_t whole_pages(size_t bytes) { return (bytes + page_bytes() - 1) / page_bytes() * page_bytes(); }

Result<Reservation> Reservation::make(size_t bytes, Owner owner) {
  Reservation r;
  if (bytes == 0) return r;
  if (bytes > SIZE_MAX / 2) return no_memory(bytes, ENOMEM);
  void* base =
      mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return no_memory(bytes, errno);
  r.data_ = static_cast<std::byte*>(base);
  r.reserved_ = whole_pages(bytes);
  r.owner_ = owner;
  madvise(base, r.reserved_, MADV_NOHUGEPAGE);
  own_range(base, r.reserved_, owner);
  return r;
}

Reservation::~Reservation() {
  if (data_ == nullptr) return;
  disown_range(data_);
  munmap(data_, reserved_);
  counter(owner_) -= taken_;
}

void Reservation::take(size_t bytes) {
  counter(owner_) += bytes - taken_;
  taken_ = bytes;
}

size_t live_bytes(Owner owner) { return counter(owner); }

}  // namespace kvasir
