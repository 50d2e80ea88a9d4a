// Replaces names of API parameters by flags.
#include "cli/parameter_names.h"

#include "cli/sampling_names.h"

namespace kvasir::cli {
namespace {

bool in_name(char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

struct Found {
  size_t length = 0;  ///< 0: no parameter
  std::string flag;
};

// "SamplingParams::top_k": the flags of samplers come from their registry.
Found sampling_parameter_at(std::string_view text) {
  constexpr std::string_view kType = "SamplingParams::";
  if (!text.starts_with(kType)) return {};
  size_t end = kType.size();
  while (end < text.size() && in_name(text[end])) ++end;
  return {end, sampling_flag(text.substr(kType.size(), end - kType.size()))};
}

// The longest entry that is a prefix of `text` and ends where a name ends.
Found parameter_at(std::string_view text) {
  Found found = sampling_parameter_at(text);
  if (!found.flag.empty()) return found;
  found = {};
  for (const ParameterName& entry : kParameterNames) {
    const size_t length = entry.parameter.size();
    if (!text.starts_with(entry.parameter) || (length < text.size() && in_name(text[length]))) continue;
    if (length > found.length) found = {length, std::string(entry.flag)};
  }
  return found;
}

}  // namespace

std::string with_flags(std::string_view text) {
  constexpr std::string_view kEquals = " = ";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool begins = at == 0 || !in_name(text[at - 1]);
    const Found found = begins ? parameter_at(text.substr(at)) : Found{};
    if (found.flag.empty()) {
      out += text[at++];
      continue;
    }
    out += found.flag;
    at += found.length;
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
