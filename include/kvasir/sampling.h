// Choosing a token from a row of logits: parameters, the chain of samplers, constraints, log probabilities. Running the
// model is in engine.h, stopping in generate.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <kvasir/result.h>
#include <kvasir/version.h>

namespace kvasir {

/// How to choose a token from logits. The samplers run in the order of `samplers`, each on the candidates that those
/// before it kept. Their probabilities are normalised over these candidates, at temperature 1 until sampler
/// "temperature" has run.
struct SamplingParams {
  double temperature = 0.8;  ///< 0: the largest logit, the lowest id among equals; no filter runs
  int top_k = 40;            ///< 0: off; keeps the k most likely tokens (arXiv:1805.04833)
  double top_p = 0.95;       ///< 1: off; keeps the fewest tokens with this total probability (arXiv:1904.09751)
  double min_p = 0.05;       ///< 0: off; drops tokens below this share of the most likely one (arXiv:2407.01082)
  /// 1: off; divides positive logits of recent tokens by this and multiplies negative ones (arXiv:1909.05858).
  double repeat_penalty = 1.0;
  int repeat_last_n = 64;  ///< number of recent tokens that it covers; -1: all
  uint64_t seed = 0;       ///< random numbers depend only on seed, position and choice
  /// Bias by id, added to the raw logit; -100 or less bans the token.
  std::map<int, float> logit_bias = {};
  double presence_penalty = 0;   ///< subtracted from the logit of each generated token; prompt tokens do not count
  double frequency_penalty = 0;  ///< the same, times the number of its occurrences
  /// 1: off; keeps the tokens whose information is nearest the entropy, up to this total probability
  /// (arXiv:2202.00666).
  double typical_p = 1.0;
  /// 0: off; probability that XTC runs for a token (oobabooga/text-generation-webui pull request 6335).
  double xtc_probability = 0;
  double xtc_threshold = 0.1;  ///< XTC removes all tokens of at least this probability except the least likely one
  /// 0: off; DRY subtracts multiplier * base^(length - allowed_length) from tokens that would lengthen a repeated
  /// sequence (oobabooga/text-generation-webui pull request 5677). There are no sequence breakers.
  double dry_multiplier = 0;
  double dry_base = 1.75;
  int dry_allowed_length = 2;   ///< shorter repeated sequences are not penalised
  int dry_penalty_last_n = -1;  ///< number of recent tokens that DRY covers; -1: all
  /// Names from samplers(), in the order in which they run; others do not run. Empty: all, in the order of samplers().
  /// Logit bias and constraint always run: first, unless named.
  std::vector<std::string> samplers = {};
  /// Values of sampler parameters that have no field here, by name.
  std::map<std::string, double> more = {};
};

/// Decides which tokens may come next: a grammar, a list of choices. One object follows one sequence.
class KVASIR_API Constraint {
 public:
  virtual ~Constraint();
  /// Sets bit id % 64 of word id / 64 for every token that may come next. The mask has a bit for every row of the
  /// vocabulary, all zero on entry.
  virtual void allow(std::span<uint64_t> mask) = 0;
  /// Called when the sequence continues with this token.
  virtual void accept(int id) = 0;
  /// True if the text that the constraint describes is complete: the generation then ends.
  virtual bool done() const;
  /// An independent copy, in the same state.
  virtual std::unique_ptr<Constraint> clone() const = 0;
};

/// The place in a sequence at which a token is chosen.
struct SampleContext {
  std::span<const int> recent = {};  ///< all tokens of the sequence so far, the prompt's first
  size_t prompt_tokens = 0;          ///< number of prompt tokens among them, which presence and frequency ignore
  int position = 0;                  ///< position of the new token
  int choice = 0;                    ///< index among parallel samples of one prompt; each draws differently
  Constraint* constraint = nullptr;  ///< sample() calls allow(); the caller calls accept()
};

/// Chooses a token from logits [vocab]; the result is the same on every machine. Errors: not_finite; bad_argument, no
/// logits, a bias for an id outside the row, an unknown sampler, no token that may come next.
KVASIR_API Result<int> sample(std::span<const float> logits, const SamplingParams& params,
                              const SampleContext& context = {});

/// Checks ranges and names. Errors: bad_argument with the parameter, its value and the allowed range.
KVASIR_API Result<void> check_sampling(const SamplingParams& params);

/// Natural logarithm of a token's probability, and those of the most likely tokens.
struct TokenLogprob {
  int id = 0;
  double logprob = 0;
  std::vector<std::pair<int, double>> top = {};  ///< (id, logprob), most likely first, lowest id first among equals
};

/// Log probabilities by the softmax of the raw row [vocab], before any sampler, of `id` and the `top_n` most likely
/// tokens (at most vocab). Requires: `id` is inside the row, all logits are finite.
KVASIR_API TokenLogprob logprobs_of(std::span<const float> logits, int id, size_t top_n);

/// A numeric parameter of a sampler.
struct SamplerParam {
  /// Its field of SamplingParams; monostate: a key of SamplingParams::more.
  using Field = std::variant<std::monostate, int SamplingParams::*, double SamplingParams::*>;
  std::string_view name;           ///< as SamplingParams spells it
  std::string_view summary;        ///< one line for a user
  bool whole;                      ///< only integers are allowed
  double preset, least, greatest;  ///< default value, and the range, both ends inclusive
  Field field = {};
  std::string_view needs = {};  ///< a parameter of the same sampler; while it is off, this one has no effect
};

/// Returns the parameter's value in `params`.
KVASIR_API double value_of(const SamplingParams& params, const SamplerParam& param);
/// Sets the parameter's value in `params`. Requires: `value` is in the parameter's range.
KVASIR_API void set_value(SamplingParams& params, const SamplerParam& param, double value);

struct SamplerInfo {
  std::string_view name;
  std::string_view summary;
  std::span<const SamplerParam> params;
};

/// All samplers, in the order in which they run if SamplingParams::samplers is empty.
KVASIR_API std::span<const SamplerInfo> samplers();

}  // namespace kvasir
