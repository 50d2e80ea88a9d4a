// What a hub means when it refuses, in words, and which failures may pass. Pure: nothing is asked for here.
#pragma once

#include "hub/http.h"

namespace kvasir::hub {

/// Of an answer that is not 2xx, with the first bytes of its body. `seconds`: what Retry-After says, 0: nothing.
/// `has_token` and `sent_token` tell whether there is one, and whether this hub was given it.
Failure refusal(const Answer& answer, const std::string& body, long seconds, bool has_token, bool sent_token);

/// Whether a transfer that ended with this code may go better when it is begun again.
bool may_pass(CURLcode code);

}  // namespace kvasir::hub
