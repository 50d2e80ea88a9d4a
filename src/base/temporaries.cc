// The list is a fixed array of atomics, so that a signal handler can read it at any moment.
#include "base/temporaries.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace kvasir {
namespace fs = std::filesystem;

namespace {

// A name that finds no free slot is not removed by a signal. No command uses more than a few.
constexpr size_t kSlots = 32;

struct Slot {
  enum State : int { free, taken, live };
  std::atomic<int> state{free};
  char path[PATH_MAX] = {};
};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler reads it");

std::array<Slot, kSlots>& slots() {
  static std::array<Slot, kSlots> all;
  return all;
}

// The process number in the ending of a temporary's name, "1234" or "1234.5"; 0 if it has another form.
pid_t process_in(std::string_view rest) {
  int pid = 0, again = 0;
  const char* const end = rest.data() + rest.size();
  auto [at, error] = std::from_chars(rest.data(), end, pid);
  if (error != std::errc() || pid <= 0) return 0;
  if (at == end) return pid;
  if (*at++ != '.') return 0;
  const auto number = std::from_chars(at, end, again);
  return number.ec == std::errc() && number.ptr == end ? pid : 0;
}

bool is_alive(pid_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

// Checks the lock too: the number may belong to a process of another container, which this one cannot see.
bool is_abandoned(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat info;
  const bool ours = ::fstat(fd, &info) == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) &&
                    info.st_uid == ::geteuid() && ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  ::close(fd);
  return ours;
}

}  // namespace

TemporaryName::TemporaryName(const fs::path& path) {
  if (path.native().size() >= PATH_MAX) return;
  for (size_t i = 0; i < kSlots && slot_ < 0; ++i) {
    Slot& slot = slots()[i];
    int expected = Slot::free;
    if (!slot.state.compare_exchange_strong(expected, Slot::taken)) continue;
    std::memcpy(slot.path, path.c_str(), path.native().size() + 1);
    slot.state = Slot::live;
    slot_ = static_cast<int>(i);
  }
}

TemporaryName& TemporaryName::operator=(TemporaryName&& other) noexcept {
  if (this == &other) return *this;
  forget();
  slot_ = std::exchange(other.slot_, -1);
  return *this;
}

void TemporaryName::forget() noexcept {
  if (slot_ >= 0) slots()[static_cast<size_t>(std::exchange(slot_, -1))].state = Slot::free;
}

void remove_temporaries() noexcept {
  for (const bool folders : {false, true})
    for (Slot& slot : slots())
      if (slot.state == Slot::live) folders ? ::rmdir(slot.path) : ::unlink(slot.path);
}

fs::path temporary_name(const fs::path& path, int again) {
  fs::path name = path;
  name += fmt::format(".tmp.{}", ::getpid());
  if (again > 0) name += fmt::format(".{}", again);
  return name;
}

std::vector<fs::path> leftovers_of(const fs::path& path) {
  const std::string begin = path.filename().string() + ".tmp.";
  std::vector<fs::path> found;
  std::error_code ec;
  for (fs::directory_iterator it(path.has_parent_path() ? path.parent_path() : fs::path("."), ec), end;
       !ec && it != end; it.increment(ec)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(begin)) continue;
    const pid_t pid = process_in(std::string_view(name).substr(begin.size()));
    if (pid != 0 && !is_alive(pid) && is_abandoned(it->path())) found.push_back(it->path());
  }
  return found;
}

// If the file system has no locks, only the process number protects the file.
void lock_temporary(int fd) noexcept { static_cast<void>(::flock(fd, LOCK_EX | LOCK_NB)); }

}  // namespace kvasir
