// Server-sent events as a client reads them: bytes, cut anywhere, to the data of each event. No sockets here.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <kvasir/result.h>

namespace kvasir::serve {

class EventReader {
 public:
  using OnData = std::function<void(std::string_view data)>;

  /// Calls `on_data` for each event that ends in these bytes; one without data is none. Errors: an event that is larger
  /// than any (damaged).
  Result<void> read(std::string_view bytes, const OnData& on_data);

 private:
  void end_line(const OnData& on_data);

  std::string line_, data_;
  bool has_data_ = false;
  bool after_return_ = false;  ///< the last byte was a CR: a LF after it belongs to it
};

}  // namespace kvasir::serve
