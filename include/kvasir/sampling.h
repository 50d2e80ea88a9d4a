// Choosing a token from a row of logits: parameters, the chain of samplers, constraints, log probabilities. Feeding the
// model and stopping are in generate.h.
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

/// How to choose a token from logits. The samplers run in the order of `samplers`; each one sees what those before it
/// left, and probabilities are those of the candidates left, at temperature 1 until the temperature has had its turn.
struct SamplingParams {
  double temperature = 0.8;     ///< 0 takes the largest logit (the lowest id among equals); no filter runs then
  int top_k = 40;               ///< 0: off
  double top_p = 0.95;          ///< 1: off
  double min_p = 0.05;          ///< 0: off
  double repeat_penalty = 1.0;  ///< 1: off; logits of recent tokens are divided (or multiplied, below 0) by it
  int repeat_last_n = 64;       ///< how many recent tokens it looks at; -1: all
  uint64_t seed = 0;
  /// Added to the raw logits of these ids; -100 or less bans the token.
  std::map<int, float> logit_bias = {};
  double presence_penalty = 0;   ///< subtracted from the logit of every token that was generated, not of the prompt's
  double frequency_penalty = 0;  ///< the same, times how often it was generated
  double typical_p = 1.0;        ///< 1: off; keeps the tokens whose information is nearest the entropy, up to this sum
  double xtc_probability = 0;    ///< 0: off; how often XTC runs
  double xtc_threshold = 0.1;    ///< XTC removes all tokens of at least this probability but the least likely of them
  double dry_multiplier = 0;     ///< 0: off; DRY subtracts multiplier * base^(length - allowed_length), where a token
                                 ///< would make a repeated sequence longer. There are no sequence breakers.
  double dry_base = 1.75;
  int dry_allowed_length = 2;   ///< repeated sequences shorter than this cost nothing
  int dry_penalty_last_n = -1;  ///< how many recent tokens DRY looks at; -1: all
  /// Names from samplers(), in the order in which they run; a sampler that is not named does not. Empty: all of them,
  /// in the order of samplers(). Logit bias and constraint run first where they are not named.
  std::vector<std::string> samplers = {};
  /// Parameters of samplers that have no field here, by name.
  std::map<std::string, double> more = {};
};

/// Decides from outside which tokens may come next: a grammar, a list of choices. One object follows one sequence.
class KVASIR_API Constraint {
 public:
  virtual ~Constraint();
  /// Sets bit `id` (of word id / 64) for every token that may come next; all bits are zero at the call. The mask has a
  /// bit for every row of the vocabulary.
  virtual void allow(std::span<uint64_t> mask) = 0;
  /// The sequence goes on with this token.
  virtual void accept(int id) = 0;
  /// True where the text that the constraint describes is complete, so that the sequence may end.
  virtual bool done() const;
  /// An independent copy, in the same state.
  virtual std::unique_ptr<Constraint> clone() const = 0;
};

/// Where in which sequence a token is chosen.
struct SampleContext {
  std::span<const int> recent = {};  ///< all tokens of the sequence so far, the prompt's first
  size_t prompt_tokens = 0;          ///< how many of them are the prompt's: presence and frequency count the others
  int position = 0;                  ///< that of the new token
  int choice = 0;                    ///< tells parallel samples of one prompt apart
  Constraint* constraint = nullptr;  ///< asked for its mask; accept() is left to the caller
};

/// The token that these logits and parameters choose: the same on every machine. Errors: no logits or one that is not
/// finite, a bias for an id outside the row, an unknown sampler, nothing that may come next.
KVASIR_API Result<int> sample(std::span<const float> logits, const SamplingParams& params,
                              const SampleContext& context = {});

/// Checks ranges and names. Errors: the parameter, its value and what is allowed.
KVASIR_API Result<void> check_sampling(const SamplingParams& params);

/// The natural logarithm of a token's probability, and the likeliest tokens with theirs.
struct TokenLogprob {
  int id = 0;
  double logprob = 0;
  std::vector<std::pair<int, double>> top = {};  ///< the likeliest first, the lowest id first among equals
};

/// Log probabilities by the softmax of the raw row, before any sampler. Requires: `id` is inside the row, all logits
/// are finite. `top_n` is cut to the row's length.
KVASIR_API TokenLogprob logprobs_of(std::span<const float> logits, int id, size_t top_n);

/// A number that a sampler reads.
struct SamplerParam {
  /// Its field of SamplingParams; monostate: a key of SamplingParams::more.
  using Field = std::variant<std::monostate, int SamplingParams::*, double SamplingParams::*>;
  std::string_view name;  ///< as SamplingParams spells it
  std::string_view summary;
  bool whole;                      ///< only whole numbers are allowed
  double preset, least, greatest;  ///< the value where nothing is given, and the range, both inclusive
  Field field = {};
  std::string_view needs = {};  ///< the parameter of the same sampler without which this one changes nothing
};

/// The parameter's value in `params`.
KVASIR_API double value_of(const SamplingParams& params, const SamplerParam& param);
/// Requires: value is in the parameter's range.
KVASIR_API void set_value(SamplingParams& params, const SamplerParam& param, double value);

struct SamplerInfo {
  std::string_view name;
  std::string_view summary;
  std::span<const SamplerParam> params;
};

/// All samplers, in the order in which they run where SamplingParams::samplers is empty.
KVASIR_API std::span<const SamplerInfo> samplers();

}  // namespace kvasir
