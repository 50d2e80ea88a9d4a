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

constexpr size_t kSmallestPage = 4096;

std::array<std::atomic<size_t>, static_cast<size_t>(Owner::count_)> live_by_owner;

std::atomic<size_t>& counter(Owner owner) { return live_by_owner[static_cast<size_t>(owner)]; }

size_t page_bytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

tl::unexpected<Error> no_memory(size_t bytes, int error) {
  return fail(Error::no_room, fmt::format("cannot map {} bytes: {}", bytes, std::strerror(error)), "memory",
              "a shorter context, a narrower KV type or mapped weights");
}

}  // namespace

Result<Buffer> Buffer::map(size_t bytes, size_t align, Owner owner, int flags, int advice) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  const size_t guard = page_bytes();
  if (bytes > SIZE_MAX / 2) return no_memory(bytes, ENOMEM);  // so that nothing below overflows
  const size_t usable = (bytes + align - 1) / align * align + (align - guard), mapped = usable + 2 * guard;
  void* base = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (base == MAP_FAILED) return no_memory(bytes, errno);
  std::byte* const first = static_cast<std::byte*>(base) + guard;
  if (mprotect(first, usable, PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    munmap(base, mapped);
    return no_memory(bytes, error);
  }
  madvise(first, usable, advice);
  buffer.base_ = base;
  buffer.mapped_ = mapped;
  buffer.data_ = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(first) + align - 1) / align * align);
  buffer.owner_ = owner;
  own_range(base, mapped, owner);
  return buffer;
}

Result<Buffer> Buffer::allocate(size_t bytes, Owner owner, bool huge) {
  KVASIR_TRY(Buffer buffer, map(bytes, huge ? kHugePage : page_bytes(), owner, 0, huge ? MADV_HUGEPAGE : MADV_NORMAL));
  buffer.charge(bytes);
  return buffer;
}

Result<Buffer> Buffer::reserve(size_t bytes, Owner owner) {
  return map(bytes, page_bytes(), owner, MAP_NORESERVE, MADV_NOHUGEPAGE);
}

void Buffer::charge(size_t bytes) {
  counter(owner_) += bytes - bytes_;
  bytes_ = bytes;
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

size_t live_bytes(Owner owner) { return counter(owner); }

}  // namespace kvasir
