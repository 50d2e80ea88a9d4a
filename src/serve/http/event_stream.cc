// The parser of events. Lines end with LF, CR or both; comments and all fields except `data` are ignored.
#include "serve/http/event_stream.h"

#include <utility>

namespace kvasir::serve {
namespace {

constexpr size_t kMostBytes = 16 << 20;

}  // namespace

Result<void> EventReader::read(std::string_view bytes, const OnData& on_data) {
  while (!bytes.empty()) {
    if (std::exchange(after_return_, false) && bytes[0] == '\n') bytes.remove_prefix(1);
    const size_t end = bytes.find_first_of("\r\n");
    line_ += bytes.substr(0, end);
    if (line_.size() + data_.size() > kMostBytes)
      return fail(Error::damaged, "an event of over " + std::to_string(kMostBytes) + " bytes", "the stream");
    if (end == bytes.npos) return {};
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(on_data);
  }
  return {};
}

void EventReader::end_line(const OnData& on_data) {
  const std::string line = std::exchange(line_, {});
  if (line.empty()) {
    const std::string data = std::exchange(data_, {});
    if (std::exchange(has_data_, false)) on_data(data);
    return;
  }
  const size_t colon = line.find(':');
  if (line.substr(0, colon) != "data") return;
  std::string_view value = colon == line.npos ? std::string_view() : std::string_view(line).substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (std::exchange(has_data_, true)) data_ += '\n';
  data_ += value;
}

}  // namespace kvasir::serve
