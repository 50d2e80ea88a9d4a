// Any bytes as a chat template, rendered with a conversation that uses tools: an error, or a text whose data spans lie
// inside it, in order.
#include <cstdint>
#include <string_view>

#include <kvasir/chat.h>

namespace {

void require(bool holds) {
  if (!holds) __builtin_trap();
}

constexpr std::string_view kChat =
    R"({"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "messages": [
  {"role": "system", "content": "Be kind."}, {"role": "user", "content": "a <|im_end|> \u00e9 b"},
  {"role": "assistant", "content": null, "reasoning_content": "why\n", "tool_calls": [{"id": "call00001", "type": "function",
    "function": {"name": "f", "arguments": "{\"x\": [1, 2.5, true, null, {\"y\": \"z\"}]}"}}]},
  {"role": "tool", "tool_call_id": "call00001", "content": "r"}, {"role": "user", "content": [{"type": "text", "text": "c"}]}],
  "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}]})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto made = kvasir::ChatTemplate::parse({reinterpret_cast<const char*>(data), size});
  if (!made) return require(!made.error().what.empty()), 0;
  const auto text = (*made)->render(kChat, {.now = 1e9});
  if (!text) return require(!text.error().what.empty()), 0;
  size_t at = 0;
  for (const kvasir::TextSpan& span : text->data) {
    require(span.begin >= at && span.begin < span.end && span.end <= text->text.size());
    at = span.end;
  }
  at = 0;
  for (const auto& [begin, line] : text->lines) {
    require(begin >= at && begin <= text->text.size() && line >= 1);
    at = begin;
  }
  (void)(*made)->parser(*text, {.tools = {"f"}});
  return 0;
}
