// Injects read faults for tests/e2e/io_faults.py. Loaded by LD_PRELOAD, it intercepts the reads of one file and refuses
// io_uring, so that every read comes through here. Does not know Kvasir.
//   KVASIR_FAULT_FILE   a part of the path behind the descriptor; reads of other files are left alone
//   KVASIR_FAULT        eio | slow | truncate; empty: only count
//   KVASIR_FAULT_AFTER  bytes read from the file before the fault begins
//   KVASIR_FAULT_MS     how long a slow read waits
//   KVASIR_FAULT_COUNT  a file for the number of bytes read, written at exit
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

namespace {

std::atomic<long long> bytes_read{0};
std::atomic<bool> truncated{false};

const char* text_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

struct Settings {
  std::string file = text_of("KVASIR_FAULT_FILE"), kind = text_of("KVASIR_FAULT");
  long long after = std::atoll(text_of("KVASIR_FAULT_AFTER"));
  long ms = std::atol(text_of("KVASIR_FAULT_MS"));
};

// Never destroyed: a thread may still read while the program ends.
const Settings& settings() {
  static const Settings* const all = new Settings;
  return *all;
}

bool is_the_file(int fd, char (&path)[PATH_MAX]) {
  if (settings().file.empty()) return false;
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return false;
  path[length] = '\0';
  return std::strstr(path, settings().file.c_str()) != nullptr;
}

void halve(const char* path) {
  struct stat info;
  if (truncated.exchange(true)) return;
  if (stat(path, &info) != 0 || truncate(path, info.st_size / 2) != 0) std::perror(path);
}

// Calls `read` after the fault that is set, if any. Returns -1 and sets errno like any read.
template <class Read>
ssize_t faulty(int fd, Read read) {
  char path[PATH_MAX];
  if (!is_the_file(fd, path)) return read();
  if (const Settings& s = settings(); bytes_read >= s.after) {
    if (s.kind == "eio") {
      errno = EIO;
      return -1;
    }
    if (s.kind == "truncate") halve(path);
    const timespec wait{s.ms / 1000, s.ms % 1000 * 1000000};
    if (s.kind == "slow") nanosleep(&wait, nullptr);
  }
  const ssize_t got = read();
  if (got > 0) bytes_read += got;
  return got;
}

ssize_t read_at(int fd, void* out, size_t bytes, off_t offset) {
  return faulty(fd, [=] { return syscall(SYS_pread64, fd, out, bytes, offset); });
}

// The system call takes an offset in two halves, of which 64-bit systems use the first.
ssize_t read_vector(int fd, const iovec* parts, int count, off_t offset, int flags) {
  return faulty(fd, [=] { return syscall(SYS_preadv2, fd, parts, count, offset, 0, flags); });
}

__attribute__((destructor)) void write_count() {
  std::FILE* out = std::fopen(text_of("KVASIR_FAULT_COUNT"), "w");
  if (out == nullptr) return;
  std::fprintf(out, "%lld\n", bytes_read.load());
  std::fclose(out);
}

}  // namespace

static_assert(sizeof(off_t) == 8);

extern "C" {
struct io_uring;
struct io_uring_params;
int io_uring_queue_init(unsigned, io_uring*, unsigned);
int io_uring_queue_init_params(unsigned, io_uring*, io_uring_params*);

ssize_t pread(int fd, void* out, size_t bytes, off_t offset) { return read_at(fd, out, bytes, offset); }
ssize_t pread64(int fd, void* out, size_t bytes, off64_t offset) { return read_at(fd, out, bytes, offset); }
ssize_t preadv2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  return read_vector(fd, parts, count, offset, flags);
}
ssize_t preadv64v2(int fd, const iovec* parts, int count, off64_t offset, int flags) {
  return read_vector(fd, parts, count, offset, flags);
}
int io_uring_queue_init(unsigned, io_uring*, unsigned) { return -ENOSYS; }
int io_uring_queue_init_params(unsigned, io_uring*, io_uring_params*) { return -ENOSYS; }
}
