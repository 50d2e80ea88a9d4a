// Renders chat templates for a comparison test: reads one JSON object per line and writes one per line, in order.
//   in   {"template": TEXT, "context": OBJECT, "now": SECONDS, "repeat": N}; without N, 1
//   out  {"output": TEXT, "data": [[BEGIN, END], ...], "median_ms": of N renderings}, or {"error": KIND, "message":
//   TEXT}; KIND is raised (by the
//        template), syntax, unsupported, limit or failed (as Python would).
#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

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

double median_ms(const kvasir::jinja::Template& parsed, const Json& line) {
  std::vector<double> ms(line.value("repeat", size_t{1}));
  for (double& one : ms) {
    const auto start = std::chrono::steady_clock::now();
    (void)parsed.render(line.at("context"), line.value("now", 0.0));
    one = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  std::sort(ms.begin(), ms.end());
  return ms[ms.size() / 2];
}

Json rendered(const Json& line) {
  const auto parsed = kvasir::jinja::Template::parse(line.at("template").get_ref<const std::string&>());
  if (!parsed) return error_of(parsed.error());
  const auto text = parsed->render(line.at("context"), line.value("now", 0.0));
  if (!text) return error_of(text.error());
  Json data = Json::array();
  for (const auto& span : text->data) data.push_back({span.begin, span.end});
  Json out = {{"output", text->text}, {"data", data}};
  if (line.contains("repeat")) out["median_ms"] = median_ms(*parsed, line);
  return out;
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);)
    std::cout << rendered(Json::parse(line)).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
}
