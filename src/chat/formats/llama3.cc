// Llama 3.1 to 3.3: {"name": "f", "parameters": {...}} as the whole answer or after <|python_tag|>; several calls are
// separated by ';'. Source: meta-llama/llama-models prompt_format.md of 3.1 and 3.2.
#include "chat/formats/json_call.h"

namespace kvasir {
namespace {

class Llama3 : public CallReader {
 public:
  CallStep take(char c, CallSink& sink) override {
    if (between_) {
      if (is_json_space(c) || c == ';') return CallStep::more;
      if (c != '{') return CallStep::after;
      call_ = {};
      between_ = false;
    }
    const CallStep step = call_.take(c, sink);
    between_ = step == CallStep::last || (step == CallStep::not_a_call && call_.begun());
    return between_ ? CallStep::more : step;
  }

 private:
  JsonCall call_;
  bool between_ = false;
};

constexpr std::string_view kBegins[] = {"<|python_tag|>"};

}  // namespace

extern const CallFormat format_llama3;
const CallFormat format_llama3{.name = "llama3",
                               .detects =
                                   [](std::string_view jinja) {
                                     return jinja.find("<|start_header_id|>") != jinja.npos &&
                                            jinja.find("\"parameters\"") != jinja.npos;
                                   },
                               .begins = kBegins,
                               .bare = true,
                               .reader = []() -> std::unique_ptr<CallReader> { return std::make_unique<Llama3>(); }};

}  // namespace kvasir
