// A mutex and a map: there are tens of ranges, and they change only when memory is mapped, which is slower.
#include "base/owned_ranges.h"

#include <map>

#include "base/mutex.h"

namespace kvasir {
namespace {

struct Table {
  Mutex mutex;
  std::map<const std::byte*, OwnedRange> ranges KVASIR_GUARDED_BY(mutex);
};

// Never destroyed: a static object may hold memory until after this file's statics are destroyed.
Table& table() {
  static Table& table = *new Table;
  return table;
}

}  // namespace

void own_range(const void* begin, size_t bytes, Owner owner) {
  const auto* first = static_cast<const std::byte*>(begin);
  Table& t = table();
  const MutexLock lock(t.mutex);
  t.ranges.insert_or_assign(first, OwnedRange{first, first + bytes, owner});
}

void disown_range(const void* begin) noexcept {
  Table& t = table();
  const MutexLock lock(t.mutex);
  t.ranges.erase(static_cast<const std::byte*>(begin));
}

std::vector<OwnedRange> owned_ranges() {
  Table& t = table();
  const MutexLock lock(t.mutex);
  std::vector<OwnedRange> out;
  for (const auto& [begin, range] : t.ranges) out.push_back(range);
  return out;
}

}  // namespace kvasir
