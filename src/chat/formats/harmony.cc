// gpt-oss: an answer consists of messages, each with a channel:
// <|channel|>analysis<|message|>...<|end|><|start|>assistant ... channel_reader.cc reads them.
// Source: openai/harmony docs/format.md.
#include "chat/formats/call_format.h"

namespace kvasir {

extern const CallFormat format_harmony;
const CallFormat format_harmony{
    .name = "harmony",
    .detects = [](std::string_view jinja) { return jinja.find("<|channel|>") != jinja.npos; },
    .channels = true};

}  // namespace kvasir
