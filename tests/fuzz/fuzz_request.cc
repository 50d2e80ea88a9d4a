// Any bytes as a request's body, for every kind of call and every API: an error, or a call whose values are in range
// and whose messages render to a text.
#include <cstdint>
#include <string>
#include <string_view>

#include "serve/api/errors.h"
#include "serve/api/fields.h"
#include "serve/api/prompts.h"
#include "serve/api/translate.h"

namespace {

using namespace kvasir::serve;

void require(bool holds) {
  if (!holds) __builtin_trap();
}

void look_at_error(const kvasir::Error& error) {
  const ApiError answer = api_error(error);
  require(answer.status == 400 && !answer.code.empty() && answer.message.size() < 8192);
  require(parse_json(to_text(error_json(answer))).has_value());
}

void look_at(Kind kind, const Json& body, bool strict) {
  const auto call = read_call(kind, body, {}, strict);
  if (!call) return look_at_error(call.error());
  const auto& options = call->request.options;
  require(call->request.choices >= 1 && call->request.choices <= 16);
  require(options.max_tokens == -1 || options.max_tokens >= 1);
  require(options.stop.size() <= 16 && options.logprobs <= 20 && call->request.timeout_s >= 0);
  require(kvasir::check_sampling(options.sampling).has_value() || !options.sampling.samplers.empty());
  if (kind != kChat) return require(!call->prompts.empty());
  std::vector<std::string> stops;
  const auto text = render_plain(call->messages, call->add_turn, call->goes_on, &stops);
  if (!text) return look_at_error(text.error());
  for (const auto& tool : call->tools) require(tool["function"]["name"].is_string());
  require(!call->messages.empty() && stops.size() == 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto body = parse_json({reinterpret_cast<const char*>(data), size});
  if (!body) {
    look_at_error(body.error());
    return 0;
  }
  for (const Kind kind : {kChat, kText, kEmbeddings})
    for (const bool strict : {false, true}) look_at(kind, *body, strict);
  for (const auto& chat : {translate_messages(*body, false), translate_responses(*body)}) {
    if (chat)
      look_at(kChat, chat->body, false);
    else
      look_at_error(chat.error());
  }
  return 0;
}
