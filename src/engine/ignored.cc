// The one-line note about contents of a model's files that Kvasir does not use.
#include <kvasir/tokenizer.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace kvasir {
namespace {

// Drops the file that `before` names too: "config.json: b" after "config.json: a" is "b".
std::string_view without_same_file(std::string_view name, std::string_view before) {
  const size_t colon = name.find(": ");
  if (colon == name.npos || before.substr(0, colon + 2) != name.substr(0, colon + 2)) return name;
  return name.substr(colon + 2);
}

}  // namespace

std::string note_of(std::span<const Ignored> ignored) {
  constexpr size_t kNamed = 3;  // names listed for each reason
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const Ignored& one : ignored) {
    if (!one.noted) continue;
    if (reasons.empty() || reasons.back().first != one.why) reasons.emplace_back(one.why, std::vector<std::string>());
    reasons.back().second.push_back(one.name);
  }
  std::string line;
  for (const auto& [why, names] : reasons) {
    line += line.empty() ? "not used: " : "; ";
    for (size_t i = 0; i < std::min(names.size(), kNamed); ++i)
      line += i == 0 ? names[i] : fmt::format(", {}", without_same_file(names[i], names[i - 1]));
    if (names.size() > kNamed) line += fmt::format(" and {} more", names.size() - kNamed);
    line += " (" + why + ")";
  }
  return line;
}

}  // namespace kvasir
