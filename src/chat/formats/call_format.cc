// The list of all formats, and the search for a template's format.
#include "chat/formats/call_format.h"

#include <array>

namespace kvasir {

#define KVASIR_ENTRY(name) extern const CallFormat format_##name;
#include "generated/call_formats.inc"
#undef KVASIR_ENTRY

namespace {

constexpr CallFormat kNone{.name = "none", .detects = [](std::string_view) { return false; }};

}  // namespace

std::span<const CallFormat* const> call_formats() {
  static constexpr std::array kAll{
#define KVASIR_ENTRY(name) &format_##name,
#include "generated/call_formats.inc"
#undef KVASIR_ENTRY
      &kNone};
  return kAll;
}

const CallFormat& call_format_of(std::string_view jinja) {
  for (const CallFormat* format : call_formats())
    if (format->detects(jinja)) return *format;
  return kNone;
}

}  // namespace kvasir
