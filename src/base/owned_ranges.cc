// A mutex and a map: there are tens of ranges, and they change when memory is mapped, which is slower than both.
#include "base/owned_ranges.h"

#include <map>
#include <mutex>

namespace kvasir {
namespace {

struct Table {
  std::mutex mutex;
  std::map<const std::byte*, OwnedRange> ranges;
};

// Never destroyed: a static object may hold memory until after this file's own statics are gone.
Table& table() {
  static Table& table = *new Table;
  return table;
}

}  // namespace

void own_range(const void* begin, size_t bytes, Owner owner) {
  const auto* first = static_cast<const std::byte*>(begin);
  const std::lock_guard lock(table().mutex);
  table().ranges.insert_or_assign(first, OwnedRange{first, first + bytes, owner});
}

void disown_range(const void* begin) noexcept {
  const std::lock_guard lock(table().mutex);
  table().ranges.erase(static_cast<const std::byte*>(begin));
}

std::vector<OwnedRange> owned_ranges() {
  const std::lock_guard lock(table().mutex);
  std::vector<OwnedRange> out;
  for (const auto& [begin, range] : table().ranges) out.push_back(range);
  return out;
}

}  // namespace kvasir
