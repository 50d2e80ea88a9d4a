// Asynchronous reads through io_uring, used by one thread. Not every system allows io_uring.
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

  /// Returns nullopt if the kernel or a sandbox refuses.
  static std::optional<UringQueue> open();

  struct Done {
    uint64_t tag;
    int result;  ///< bytes read, or -errno
  };
  bool full() const { return in_flight_ == kDepth; }
  bool idle() const { return in_flight_ == 0; }
  /// Starts a read; `out` must stay valid until it is done. Returns false if the kernel takes no more. Requires: not
  /// full.
  bool read(int fd, uint64_t offset, std::byte* out, size_t bytes, uint64_t tag);
  /// Waits until one read is done. Requires: not idle.
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
