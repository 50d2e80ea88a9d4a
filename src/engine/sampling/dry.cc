// DRY ("don't repeat yourself"): lowers the logit of a token that would extend a repeated sequence by multiplier *
// base^(length - allowed_length). length is that of the longest suffix of the text that also occurred earlier, followed
// by this token. By p-e-w, github.com/oobabooga/text-generation-webui pull request 5677; llama.cpp pull request 9702.
// Sequence breakers, texts that no repeated sequence crosses, are not implemented.
#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "engine/sampling/sampler.h"
#include "math/functions_f64.h"

namespace kvasir {
namespace {

constexpr std::array<SamplerParam, 4> kParams{{
    {.name = "dry_multiplier",
     .summary = "strength of DRY, which makes it hard to repeat a sequence; 0: off",
     .whole = false,
     .preset = 0,
     .least = 0,
     .greatest = 100,
     .field = &SamplingParams::dry_multiplier},
    {.name = "dry_base",
     .summary = "DRY's penalty grows by this factor with each repeated token",
     .whole = false,
     .preset = 1.75,
     .least = 1,
     .greatest = 100,
     .field = &SamplingParams::dry_base,
     .needs = "dry_multiplier"},
    {.name = "dry_allowed_length",
     .summary = "shortest repeated sequence that DRY makes less likely to go on",
     .whole = true,
     .preset = 2,
     .least = 1,
     .greatest = 1 << 24,
     .field = &SamplingParams::dry_allowed_length,
     .needs = "dry_multiplier"},
    {.name = "dry_penalty_last_n",
     .summary = "number of recent tokens that DRY looks at; -1: all",
     .whole = true,
     .preset = -1,
     .least = -1,
     .greatest = 1 << 24,
     .field = &SamplingParams::dry_penalty_last_n,
     .needs = "dry_multiplier"},
}};

// For every i > 0: length of the common prefix of text and text[i..]. The Z-algorithm, in linear time.
std::vector<size_t> common_starts(const std::vector<int>& text) {
  std::vector<size_t> z(text.size(), 0);
  size_t begin = 0, end = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    size_t n = i < end ? std::min(end - i, z[i - begin]) : 0;
    while (i + n < text.size() && text[n] == text[i + n]) ++n;
    z[i] = n;
    if (i + n > end) begin = i, end = i + n;
  }
  return z;
}

// For every token that followed an earlier copy of a suffix of the text: the length of the longest such suffix.
std::map<int, size_t> repeated_lengths(std::span<const int> text) {
  const std::vector<int> backwards(text.rbegin(), text.rend());
  const std::vector<size_t> z = common_starts(backwards);
  std::map<int, size_t> longest;
  for (size_t i = 1; i < z.size(); ++i)
    if (z[i] > 0) longest[backwards[i - 1]] = std::max(longest[backwards[i - 1]], z[i]);
  return longest;
}

Result<void> apply(Candidates& candidates, const SamplingParams& p, const SampleContext& context) {
  if (p.dry_multiplier == 0) return {};
  const auto allowed = static_cast<size_t>(p.dry_allowed_length);
  for (const auto& [id, length] : repeated_lengths(last_tokens(context.recent, p.dry_penalty_last_n))) {
    const auto logit = candidates.logit(id);
    if (length < allowed || !logit) continue;
    const double penalty = p.dry_multiplier * pow_f64(p.dry_base, static_cast<double>(length - allowed));
    candidates.set(id, *logit - std::min<double>(penalty, std::numeric_limits<float>::max()));
  }
  return {};
}

}  // namespace

extern const Sampler sampler_dry{
    .info = {.name = "dry", .summary = "makes it hard to repeat a sequence of tokens", .params = kParams},
    .place = 30,
    .edits = true,
    .apply = apply};

}  // namespace kvasir
