// Constraint: removes the tokens that the caller's Constraint does not allow.
#include "engine/sampling/sampler.h"

namespace kvasir {
namespace {

Result<void> apply(Candidates& candidates, const SamplingParams&, const SampleContext& context) {
  if (context.constraint == nullptr) return {};
  std::vector<uint64_t> mask((candidates.vocabulary() + 63) / 64);
  context.constraint->allow(mask);
  candidates.allow(mask);
  if (candidates.left() > 0) return {};
  return fail(Error::bad_argument, "no token that may be chosen is allowed by the constraint",
              "SampleContext::constraint", "an end of the sequence where Constraint::done() is true");
}

}  // namespace

extern const Sampler sampler_constraint{
    .info = {.name = "constraint", .summary = "removes what a grammar or another constraint forbids", .params = {}},
    .place = 10,
    .edits = true,
    .always = true,
    .apply = apply};

}  // namespace kvasir
