// <tool_call>{"name": "f", "arguments": {...}}</tool_call>: Hermes, Qwen 2.5 and 3, SmolLM3.
// Source: NousResearch/Hermes-Function-Calling; the templates of those models.
#include "chat/formats/json_call.h"
#include "chat/formats/marker.h"

namespace kvasir {
namespace {

class Hermes : public CallReader {
 public:
  CallStep take(char c, CallSink& sink) override {
    if (ends_) return end_.take(c) ? CallStep::last : CallStep::more;
    const CallStep step = call_.take(c, sink);
    if (step == CallStep::not_a_call && !call_.begun()) return step;
    ends_ = step != CallStep::more;
    // The character that ended the JSON may be the first one of the end mark.
    if (step == CallStep::not_a_call) end_.take(c);
    return CallStep::more;
  }

 private:
  JsonCall call_;
  Marker end_{"</tool_call>"};
  bool ends_ = false;
};

constexpr std::string_view kBegins[] = {"<tool_call>"};

}  // namespace

extern const CallFormat format_hermes;
const CallFormat format_hermes{.name = "hermes",
                               .detects =
                                   [](std::string_view jinja) {
                                     return jinja.find("<tool_call>") != jinja.npos &&
                                            jinja.find("<function=") == jinja.npos;
                                   },
                               .begins = kBegins,
                               .own_line = true,
                               .reader = []() -> std::unique_ptr<CallReader> { return std::make_unique<Hermes>(); }};

}  // namespace kvasir
