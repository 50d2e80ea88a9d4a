// PCRE2 with UTF, Unicode properties and JIT where the machine allows it.
#include "token/regex.h"

#include <algorithm>
#include <new>
#include <string>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include "token/utf8.h"

namespace kvasir {
namespace {

constexpr std::size_t kMaxPatternBytes = 64 * 1024;
// Limit on match steps: a hostile pattern stops here; an ordinary one needs a few steps per byte of text.
constexpr std::uint64_t kBaseMatchLimit = 10'000'000;
constexpr std::uint64_t kMatchStepsPerByte = 64;

// The meaning of \s: Unicode's White_Space. PCRE2's own \s also matches U+180E; Oniguruma's, for which these patterns
// were written, does not.
constexpr std::string_view kSpaces = "\\x{9}-\\x{D}\\x{85}\\p{Z}";

std::string space_escape(char escaped, bool in_class) {
  if (escaped == 's') return in_class ? std::string(kSpaces) : fmt::format("[{}]", kSpaces);
  if (escaped == 'S') return in_class ? "\\S\\x{180E}" : fmt::format("[^{}]", kSpaces);
  return {'\\', escaped};
}

// Rewrites the pattern so that PCRE2 reads it as Oniguruma does; refuses character classes that the two read
// differently.
Result<std::string> adapt(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view rest = pattern.substr(i);
    if (rest[0] == '\\' && rest.size() > 1) {
      out += space_escape(rest[1], in_class);
      ++i;
      continue;
    }
    const bool nested = in_class && (rest[0] == '[' || rest.starts_with("&&"));
    if (nested || rest.starts_with("[]") || rest.starts_with("[^]")) {
      return fail(Error::unsupported,
                  fmt::format("the pattern {} nests character classes at byte {}", quote(pattern), i));
    }
    in_class = rest[0] == '[' || (in_class && rest[0] != ']');
    out.push_back(rest[0]);
  }
  return out;
}

std::string error_text(int code) {
  PCRE2_UCHAR buffer[256] = {};
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

void Regex::Free::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }
void RegexMatcher::Free::operator()(pcre2_real_match_data_8* data) const { pcre2_match_data_free(data); }
void RegexMatcher::Free::operator()(pcre2_real_match_context_8* context) const { pcre2_match_context_free(context); }
void RegexMatcher::Free::operator()(pcre2_real_jit_stack_8* stack) const { pcre2_jit_stack_free(stack); }

Result<Regex> Regex::compile(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return fail(Error::unsupported,
                fmt::format("the pattern of {} bytes is over {}", pattern.size(), kMaxPatternBytes));
  }
  KVASIR_TRY(const std::string adapted, adapt(pattern));
  constexpr std::uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  int code = 0;
  PCRE2_SIZE at = 0;
  Regex regex;
  regex.code_.reset(pcre2_compile(units(adapted), adapted.size(), kOptions, &code, &at, nullptr));
  if (!regex.code_) {
    return fail(Error::unsupported,
                fmt::format("the pattern {} is wrong at byte {}: {}", quote(pattern), at, error_text(code)));
  }
  // Without JIT (forbidden or absent) the interpreter gives the same matches, slower.
  pcre2_jit_compile(regex.code_.get(), PCRE2_JIT_COMPLETE);
  return regex;
}

RegexMatcher::RegexMatcher(const Regex& regex)
    : regex_(&regex),
      stack_(pcre2_jit_stack_create(32 * 1024, 1024 * 1024, nullptr)),
      context_(pcre2_match_context_create(nullptr)),
      data_(pcre2_match_data_create_from_pattern(regex.code_.get(), nullptr)) {
  if (!context_ || !data_) throw std::bad_alloc();
  if (stack_) pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
}

Result<std::optional<RegexMatch>> RegexMatcher::next(std::string_view text, std::size_t from) {
  const std::uint64_t limit = kBaseMatchLimit + kMatchStepsPerByte * text.size();
  pcre2_set_match_limit(context_.get(), static_cast<std::uint32_t>(std::min<std::uint64_t>(limit, UINT32_MAX)));
  const auto match = [&](std::uint32_t options) {
    return pcre2_match(regex_->code_.get(), units(text), text.size(), from, options, data_.get(), context_.get());
  };
  int code = match(PCRE2_NO_UTF_CHECK);
  // The interpreter keeps its state on the heap, where a long match has room.
  if (code == PCRE2_ERROR_JIT_STACKLIMIT) code = match(PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
  if (code == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (code < 0)
    return fail(Error::unsupported,
                fmt::format("the pre-tokenizer's pattern fails at byte {}: {}", from, error_text(code)));
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data_.get());
  if (range[0] < from || range[1] < range[0]) {
    return fail(Error::unsupported, fmt::format("the pre-tokenizer's pattern matches backwards at byte {}", from));
  }
  return RegexMatch{range[0], range[1]};
}

}  // namespace kvasir
