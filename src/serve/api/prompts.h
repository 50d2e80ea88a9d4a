// From a call's messages and prompts to token ids. The ids are a function of the call alone.
#pragma once

#include <string>
#include <vector>

#include <kvasir/model.h>

#include "serve/api/call.h"

namespace kvasir::serve {

/// The text of messages as turns of plain text, as `kvasir chat` has them: "User: ...", "Assistant: ...". `stops`:
/// texts that end an answer in this format. Errors: a message that is none, a role or a part that the format has no
/// place for, with its index.
Result<std::string> render_plain(const Json& messages, bool add_turn, bool goes_on, std::vector<std::string>* stops);

/// The ids of every prompt of the call, whose stops are completed. Errors: those of render_plain() and of the
/// tokenizer, a prompt without tokens.
Result<std::vector<std::vector<int>>> prompt_ids(Call* call, const Model& model);

}  // namespace kvasir::serve
