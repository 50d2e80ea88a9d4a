// Renders chat templates for a comparison test: reads one JSON object per line and writes one per line, in order.
//   in   {"template": TEXT, "context": OBJECT, "now": SECONDS}
//   out  {"output": TEXT, "data": [[BEGIN, END], ...]}, or {"error": KIND, "message": TEXT}; KIND is raised (by the
//        template), syntax, unsupported, limit or failed (as Python would).
#include <iostream>
#include <string>

#include "chat/jinja/template.h"

namespace {

using Json = nlohmann::ordered_json;
using kvasir::Error;

const char* kind_of(const Error& error) {
  if (error.where == "raise_exception") return "raised";
  if (error.kind == Error::damaged) return "syntax";
  if (error.kind == Error::unsupported) return "unsupported";
  return error.kind == Error::too_long ? "limit" : "failed";
}

Json error_of(const Error& error) {
  return {{"error", kind_of(error)}, {"message", error.what}, {"where", error.where}};
}

Json rendered(const Json& line) {
  const auto parsed = kvasir::jinja::Template::parse(line.at("template").get_ref<const std::string&>());
  if (!parsed) return error_of(parsed.error());
  const auto text = parsed->render(line.at("context"), line.value("now", 0.0));
  if (!text) return error_of(text.error());
  Json data = Json::array();
  for (const auto& span : text->data) data.push_back({span.begin, span.end});
  return {{"output", text->text}, {"data", data}};
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);)
    std::cout << rendered(Json::parse(line)).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
}
