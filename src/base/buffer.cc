// Anonymous mappings with one counter per owner.
#include "base/buffer.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

namespace kvasir {
namespace {

constexpr size_t kPage = 4096, kHugePage = size_t{2} << 20;

std::array<std::atomic<size_t>, static_cast<size_t>(Owner::count_)> live;

std::atomic<size_t>& counter(Owner owner) { return live[static_cast<size_t>(owner)]; }

}  // namespace

Result<Buffer> Buffer::allocate(size_t bytes, Owner owner, bool huge) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  const size_t align = huge ? kHugePage : kPage;
  const size_t mapped = (bytes + kPage - 1) / kPage * kPage + (huge ? kHugePage : 0);
  void* base =
      mapped < bytes ? MAP_FAILED : mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    return fail(fmt::format("cannot map {} bytes: {}", bytes, std::strerror(mapped < bytes ? ENOMEM : errno)), "memory",
                "a shorter context, a narrower KV type or mapped weights");
  const uintptr_t start = (reinterpret_cast<uintptr_t>(base) + align - 1) / align * align;
  if (huge) madvise(base, mapped, MADV_HUGEPAGE);
  buffer.base_ = base;
  buffer.mapped_ = mapped;
  buffer.data_ = reinterpret_cast<std::byte*>(start);
  buffer.bytes_ = bytes;
  buffer.owner_ = owner;
  counter(owner) += bytes;
  return buffer;
}

Buffer::~Buffer() {
  if (base_ == nullptr) return;
  munmap(base_, mapped_);
  counter(owner_) -= bytes_;
}

void Buffer::touch() {
  for (size_t i = 0; i < bytes_; i += kPage) reinterpret_cast<volatile std::byte*>(data_)[i] = std::byte{0};
}

size_t live_bytes(Owner owner) { return counter(owner); }

}  // namespace kvasir
