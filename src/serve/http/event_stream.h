// Parses server-sent events for a client, from bytes in pieces of any size to the data of each event. No sockets here.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <kvasir/result.h>

namespace kvasir::serve {

class EventReader {
 public:
  using OnData = std::function<void(std::string_view data)>;

  /// Calls `on_data` for each event with data that ends in these bytes. Errors: an event of over 16 MiB (damaged).
  Result<void> read(std::string_view bytes, const OnData& on_data);

 private:
  void end_line(const OnData& on_data);

  std::string line_, data_;
  bool has_data_ = false;
  bool after_return_ = false;  ///< the last byte was a CR, so a LF that follows is part of the line break
};

}  // namespace kvasir::serve
