// io_uring through liburing.
#include "format/uring_queue.h"

#include <liburing.h>

#include <cerrno>
#include <utility>

namespace kvasir {

void UringQueue::Close::operator()(io_uring* ring) const {
  io_uring_queue_exit(ring);
  delete ring;
}

std::optional<UringQueue> UringQueue::open() {
  auto ring = std::make_unique<io_uring>();
  if (io_uring_queue_init(kDepth, ring.get(), 0) != 0) return std::nullopt;
  return UringQueue(std::unique_ptr<io_uring, Close>(ring.release()));
}

bool UringQueue::read(int fd, uint64_t offset, std::byte* out, size_t bytes, uint64_t tag) {
  io_uring_sqe* entry = io_uring_get_sqe(ring_.get());
  if (entry == nullptr) return false;
  io_uring_prep_read(entry, fd, out, static_cast<unsigned>(bytes), offset);
  io_uring_sqe_set_data64(entry, tag);
  if (io_uring_submit(ring_.get()) != 1) return false;
  ++in_flight_;
  return true;
}

UringQueue::Done UringQueue::wait() {
  io_uring_cqe* entry = nullptr;
  int error = 0;
  do error = io_uring_wait_cqe(ring_.get(), &entry);
  while (error == -EINTR || error == -EAGAIN);
  --in_flight_;
  if (error != 0) return {0, error};
  const Done done{io_uring_cqe_get_data64(entry), entry->res};
  io_uring_cqe_seen(ring_.get(), entry);
  return done;
}

}  // namespace kvasir
