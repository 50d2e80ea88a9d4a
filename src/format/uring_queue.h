// Reads that the kernel does while we go on (io_uring). One thread uses it; not every system allows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

struct io_uring;

namespace kvasir {

class UringQueue {
 public:
  static constexpr unsigned kDepth = 16;

  /// Nothing where the kernel or a sandbox refuses.
  static std::optional<UringQueue> open();

  struct Done {
    uint64_t tag;
    int result;  ///< bytes read, or -errno
  };
  bool full() const { return in_flight_ == kDepth; }
  bool idle() const { return in_flight_ == 0; }
  /// Requires: not full. `out` must stay until the read is done. False when the kernel takes no more.
  bool read(int fd, uint64_t offset, std::byte* out, size_t bytes, uint64_t tag);
  /// Waits for one read. Requires: not idle.
  Done wait();

 private:
  struct Close {
    void operator()(io_uring* ring) const;
  };
  explicit UringQueue(std::unique_ptr<io_uring, Close> ring) : ring_(std::move(ring)) {}

  std::unique_ptr<io_uring, Close> ring_;
  unsigned in_flight_ = 0;
};

}  // namespace kvasir
