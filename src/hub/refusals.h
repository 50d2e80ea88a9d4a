// Explains a hub's refusals and decides which failures are worth a retry. Pure functions: no requests are made here.
#pragma once

#include "hub/http.h"

namespace kvasir::hub {

/// Describes an answer that is not 2xx. `body`: the first bytes of its body. `seconds`: from Retry-After, 0 if absent.
/// `has_token`: a token is set. `sent_token`: it was sent to this hub.
Failure refusal(const Answer& answer, const std::string& body, long seconds, bool has_token, bool sent_token);

/// Whether a transfer that ended with this code may succeed when retried.
bool may_pass(CURLcode code);

}  // namespace kvasir::hub
