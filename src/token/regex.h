// Regular expressions over valid UTF-8, with the meaning that they have in the tools that wrote the vocabulary. Wraps
// PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include <kvasir/result.h>

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;
struct pcre2_real_jit_stack_8;

namespace kvasir {

/// Immutable; shared by threads, each with its own RegexMatcher.
class Regex {
 public:
  /// Fails, naming pattern and offset, on an invalid pattern or one that PCRE2 and Oniguruma read differently (nested
  /// classes). Fails on a pattern that is too long.
  static Result<Regex> compile(std::string_view pattern);

 private:
  friend class RegexMatcher;
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  std::unique_ptr<pcre2_real_code_8, Free> code_;
};

/// The half-open range of bytes of a match; it may be empty.
struct RegexMatch {
  std::size_t begin;
  std::size_t end;
};

/// The working memory of one regex in one thread. The regex must outlive it.
class RegexMatcher {
 public:
  explicit RegexMatcher(const Regex& regex);

  /// Returns the first match at or after `from`; nullopt if there is none. Requires: valid UTF-8, and `from` at the
  /// start of a character. Fails, naming the offset, if the pattern exceeds its backtracking limit or matches
  /// backwards.
  Result<std::optional<RegexMatch>> next(std::string_view text, std::size_t from);

 private:
  struct Free {
    void operator()(pcre2_real_match_data_8* data) const;
    void operator()(pcre2_real_match_context_8* context) const;
    void operator()(pcre2_real_jit_stack_8* stack) const;
  };
  const Regex* regex_;
  std::unique_ptr<pcre2_real_jit_stack_8, Free> stack_;
  std::unique_ptr<pcre2_real_match_context_8, Free> context_;
  std::unique_ptr<pcre2_real_match_data_8, Free> data_;
};

}  // namespace kvasir
