// Parameters of the API replaced by flags.
#include "cli/parameter_names.h"

namespace kvasir::cli {
namespace {

bool in_name(char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The longest entry that `text` begins with as a whole name, or null.
const ParameterName* entry_at(std::string_view text) {
  const ParameterName* found = nullptr;
  for (const ParameterName& entry : kParameterNames) {
    const size_t length = entry.parameter.size();
    if (!text.starts_with(entry.parameter) || (length < text.size() && in_name(text[length]))) continue;
    if (found == nullptr || length > found->parameter.size()) found = &entry;
  }
  return found;
}

}  // namespace

std::string with_flags(std::string_view text) {
  constexpr std::string_view kEquals = " = ";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool begins = at == 0 || !in_name(text[at - 1]);
    const ParameterName* entry = begins ? entry_at(text.substr(at)) : nullptr;
    if (entry == nullptr || entry->flag.empty()) {
      out += text[at++];
      continue;
    }
    out += entry->flag;
    at += entry->parameter.size();
    if (!text.substr(at).starts_with(kEquals)) continue;
    out += ' ';
    at += kEquals.size();
  }
  return out;
}

Error with_flags(const Error& error) {
  return {error.kind, with_flags(error.what), with_flags(error.where), with_flags(error.hint)};
}

}  // namespace kvasir::cli
