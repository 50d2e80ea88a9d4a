// The state of one request that its handler and its connection share. No sockets here.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "serve/http/http_server.h"

namespace kvasir::serve {

/// The handler's exchange writes the turn; the connection reads it and ends it. After that the exchange does nothing.
struct Turn {
  std::function<void()> notify;      ///< wakes the connection; empty once the turn is over
  std::optional<HttpAnswer> answer;  ///< the answer, or the head of a stream
  std::function<StreamPart()> next;  ///< set for a stream
  std::function<void()> on_gone;
  bool dropped = false;  ///< the handler released the exchange without an answer
  bool gone = false;     ///< the turn ended because the client disconnected

  /// Ends the turn and releases the handler's functions. Later calls do nothing.
  void end(bool client_is_gone);
};

std::shared_ptr<Exchange> make_exchange(std::shared_ptr<Turn> turn, HttpRequest request);

}  // namespace kvasir::serve
