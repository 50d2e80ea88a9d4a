// NFC over libutf8proc's tables. Its own sorting of combining marks is quadratic, so a prompt of marks could stall a
// server. Here std::stable_sort sorts them; libutf8proc only decomposes and composes.
#include "token/normalize.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <utf8proc.h>

#include "token/utf8.h"

namespace kvasir {
namespace {

constexpr auto kCompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

int combining_class(utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; }

Result<std::vector<utf8proc_int32_t>> decompose(std::string_view text) {
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size() / 2);
  constexpr utf8proc_ssize_t kMostParts = 32;  // the longest canonical decomposition has 4
  utf8proc_int32_t parts[kMostParts];
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    int boundary = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(step.code), parts, kMostParts, kCompose, &boundary);
    if (count < 0 || count > kMostParts) {
      return fail(Error::internal, fmt::format("U+{:04X} cannot be normalised", static_cast<unsigned>(step.code)));
    }
    codes.insert(codes.end(), parts, parts + count);
    text.remove_prefix(step.length);
  }
  return codes;
}

// Sorts each run of combining marks by class; marks of one class keep their order.
void sort_marks(std::vector<utf8proc_int32_t>& codes) {
  const auto is_mark = [](utf8proc_int32_t code) { return combining_class(code) != 0; };
  for (auto run = codes.begin(); run != codes.end();) {
    run = std::find_if(run, codes.end(), is_mark);
    const auto end = std::find_if_not(run, codes.end(), is_mark);
    std::stable_sort(run, end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    run = end;
  }
}

}  // namespace

bool is_surely_nfc(std::string_view text) {
  constexpr unsigned char kLeadOf0300 = 0xCC;
  return std::all_of(text.begin(), text.end(),
                     [](char byte) { return static_cast<unsigned char>(byte) < kLeadOf0300; });
}

Result<std::string> to_nfc(std::string_view text) {
  if (is_surely_nfc(text)) return std::string(text);
  KVASIR_TRY(auto codes, decompose(text));
  sort_marks(codes);
  const auto count = utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), kCompose);
  if (count < 0)
    return fail(Error::bad_argument, fmt::format("the text cannot be normalised: {}", utf8proc_errmsg(count)));
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    utf8_append(out, static_cast<char32_t>(codes[static_cast<std::size_t>(i)]));
  }
  return out;
}

}  // namespace kvasir
