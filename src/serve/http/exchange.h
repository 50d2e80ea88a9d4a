// One request between its handler and its connection: what both know of it. No sockets here.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "serve/http/http_server.h"

namespace kvasir::serve {

/// The connection reads what the exchange wrote, and ends the turn; from then on the exchange does nothing.
struct Turn {
  std::function<void()> notify;      ///< wakes the connection; empty: the turn is over
  std::optional<HttpAnswer> answer;  ///< of a stream: its head
  std::function<StreamPart()> next;  ///< of a stream
  std::function<void()> on_gone;
  bool dropped = false;  ///< the handler let go of the exchange and gave no answer
  bool gone = false;     ///< the turn ended because the client went

  /// The first call counts. Lets go of all that the handler gave.
  void end(bool client_is_gone);
};

std::shared_ptr<Exchange> make_exchange(std::shared_ptr<Turn> turn, HttpRequest request);

}  // namespace kvasir::serve
