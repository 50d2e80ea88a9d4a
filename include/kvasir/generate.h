// Generating text: a generator for one sequence, and functions that run one or many of them to the end. Choosing a
// token is in sampling.h, many requests of many users in scheduler.h.
#pragma once

#include <climits>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/engine.h>
#include <kvasir/sampling.h>
#include <kvasir/version.h>

namespace kvasir {

/// Resident bytes of this process by owner. All except `kernel` and `tokenizer` come from one walk over the process's
/// mappings.
struct RssByOwner {
  size_t weights = 0;      ///< allocated, and pages of mapped model files
  size_t kv = 0;           ///< pages that the caches have written to
  size_t activations = 0;  ///< the engine's scratch memory
  size_t tokenizer = 0;    ///< heap allocated while building it; all other parts count pages
  size_t code = 0;         ///< the program, its libraries, other mapped files
  size_t other = 0;        ///< the rest of the heap, stacks
  size_t kernel = 0;       ///< the kernel's own total (VmRSS), for comparison

  size_t total() const { return weights + kv + activations + tokenizer + code + other; }
};

/// Behaviour when the context is full: stop, or recompute its last half as a new text and continue from there.
enum class OnFull { stop, recompute };

/// Why a generation ended: an end-of-text token (eos), a stop string or a complete constraint (stop), max_tokens or a
/// full context (length), the caller (cancelled).
enum class StopReason { eos, stop, length, cancelled };
/// The name of a reason, as the enum spells it.
KVASIR_API std::string_view stop_reason_name(StopReason reason);

/// The results of one pass for one sequence.
struct Event {
  std::vector<int> ids;                ///< tokens chosen; several if drafted tokens were accepted
  std::string text;                    ///< text that became final, in whole UTF-8 characters; may lag behind the ids
  std::vector<TokenLogprob> logprobs;  ///< [ids] with GenerateOptions::logprobs, else empty
  std::optional<StopReason> stop;      ///< set in the last event
};

/// Called after each pass with the index of the sequence; returning false ends that sequence (StopReason::cancelled).
using OnEvent = std::function<bool(size_t sequence, const Event& event)>;

struct GenerateOptions {
  SamplingParams sampling;
  /// True: the prompt is the whole text instead of a continuation of the session's. Prefixes of it in the session or
  /// under EngineOptions::prefix_ram are reused, and what the session then holds is kept for later texts.
  bool whole_text = false;
  OnFull on_full = OnFull::stop;
  int max_tokens = -1;  ///< generate at most this many; -1: until the end of text or of the context; 0 is refused
  std::vector<std::string> stop;   ///< the text ends before the first of these strings
  bool include_stop = false;       ///< include the stop string in the text
  std::vector<int> stop_ids = {};  ///< tokens that end the text as an end-of-text token does
  int min_tokens = 0;              ///< ban tokens that end the text until this many are generated
  bool ignore_eos = false;         ///< the model's end-of-text tokens do not end the text
  /// Most tokens drafted per step by prompt lookup decoding: if the text ends as an earlier part of it did, the tokens
  /// that followed there. One pass checks all of them, so tokens, logits and receipt equal those without. 0: off.
  int lookup = 0;
  /// Report log probabilities, by the raw row, of each chosen token and of this many most likely ones; -1: none.
  int logprobs = -1;
  /// Restricts the tokens; every generation starts with a clone. Null: every token is allowed.
  std::shared_ptr<const Constraint> constraint;
  bool receipt = false;  ///< compute a Receipt; needs Model::fingerprint(), which reads all weights once
  bool rss = false;      ///< set GenStats::rss at the end, which inspects every page of the process
  OnEvent on_event;      ///< null: no events
};

/// Times and memory of one generation.
struct GenStats {
  double ttft_ms = 0;        ///< from the call to the first token
  double reuse_ms = 0;       ///< part of ttft_ms: finding and adopting a reusable prefix
  double keep_ms = 0;        ///< keeping the prompt for later texts
  double prefill_tok_s = 0;  ///< prompt tokens computed / time of prefill
  double decode_tok_s = 0;   ///< tokens after the first / their time; 0 if there was only one
  CacheStats cache;
  size_t peak_rss_bytes = 0, weights_bytes = 0;
  WeightStats weight_stats;       ///< of the model, so far
  std::optional<RssByOwner> rss;  ///< with GenerateOptions::rss, if the system reports it
  int threads = 0;
  std::string cpu, weights;
};

struct Generation {
  std::string text;
  std::vector<int> tokens;                   ///< generated ids, an end-of-text id included
  int prompt_tokens = 0, cached_tokens = 0;  ///< cached: prompt tokens that were reused
  int differs = -1;  ///< with whole_text: index of the session's first token that differs from the prompt; -1: none
  int guessed = 0, accepted = 0;  ///< tokens drafted, and accepted
  int recomputed = 0;             ///< number of times that a full context was recomputed (OnFull::recompute)
  int waited = 0;                 ///< number of times that it gave up its memory to others and was computed again
  StopReason stop_reason = StopReason::length;
  std::string stop_text;               ///< the element of GenerateOptions::stop that ended it, if one did
  std::vector<TokenLogprob> logprobs;  ///< [tokens] with GenerateOptions::logprobs, else empty
  std::string receipt;                 ///< 32 hex digits with GenerateOptions::receipt, else empty
  GenStats stats;
};

/// One sequence while it is generated: a state machine that may outlive its session. It owns the text, the sampler's
/// state, the stops and the receipt, so a sequence can be suspended and continued in another session with the same
/// bits. Used by one thread at a time. The loop:
///
///     while (!generator.done()) {
///       const Feed feed = generator.next(session);
///       engine.pass({&feed, 1}, &out);            // with the feeds of other sequences
///       event = generator.take(out[0].logits);
///     }
class KVASIR_API Generator {
 public:
  /// `text`: all tokens before the first generated one, including those that a session already holds. `choice`: index
  /// among parallel continuations of one text. `resume`: tokens that an earlier generator chose after `text`; counts,
  /// penalties, stops, constraint and receipt are as if this one had chosen them, and its events begin after them.
  /// Errors: bad_argument, an empty text, an unknown id, an option out of range, tokens to resume that continue past
  /// their own end or that the constraint forbids; with a receipt, those of Model::fingerprint().
  static Result<Generator> create(std::shared_ptr<const Model> model, std::vector<int> text,
                                  GenerateOptions options = {}, int choice = 0, std::span<const int> resume = {});
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;
  ~Generator();

  /// Checks the options alone. Errors: bad_argument.
  static Result<void> check(const Model& model, const GenerateOptions& options);

  /// Number of tokens of the text that a session has not computed; next() returns those first.
  int lacks(const Session& session) const;
  /// Returns the next tokens for a session, at most `most`: first the part of the text that it lacks, then the last
  /// chosen token and drafted ones (`guesses`, or those of GenerateOptions::lookup if there are none). Truncates the
  /// session to the prefix that it shares with the text; clears it if the context is full and on_full is
  /// OnFull::recompute. The feed is valid until the next call; the session must live until take().
  Feed next(Session& session, int most = INT_MAX, std::span<const int> guesses = {});
  /// Takes the logits of the feed that next() returned, [rows][vocab], perhaps no rows, and chooses tokens. After the
  /// last event the session holds the whole text, its last token not computed; if that does not fit the context,
  /// OnFull::recompute leaves the last half there and OnFull::stop all except that token. Errors: not_finite;
  /// bad_argument, a wrong number of rows, or no token that the constraint allows; with a receipt, those of
  /// Model::fingerprint().
  Result<Event> take(std::span<const float> rows);

  bool done() const;
  std::optional<StopReason> stop_reason() const;
  /// Ends the sequence at its last event (StopReason::cancelled).
  void cancel();
  /// The text so far, including generated tokens.
  std::span<const int> tokens() const;
  std::span<const int> generated() const;
  /// Returns a copy that continues from here with the random numbers of `choice`. `session`: a fork of this one's
  /// session (Session::fork), in which take() may follow this generator's next().
  Generator fork(int choice, Session& session) const;
  /// The text, tokens, counts, receipt and times so far, without statistics of the cache and the engine.
  Generation result() const;

 private:
  struct Impl;
  explicit Generator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Appends the prompt to the session and generates. The session then holds the generated tokens too, so that forks and
/// snapshots agree with the text (Generator::take). The prompt may be empty if the session is not. Errors:
/// bad_argument, an empty text, an unknown id, an option out of range; too_long, a text that does not fit the context
/// (refused before the first pass); no_room; not_finite.
KVASIR_API Result<Generation> generate(Engine& engine, Session& session, std::span<const int> prompt,
                                       const GenerateOptions& options);

/// Generates `samples` continuations of one prompt, in the same passes and in forks of the session. Sample i equals one
/// generated alone with choice i; the session itself continues as sample 0. Layout paged holds the prompt once. If
/// memory does not suffice for all, some wait. Errors: those of generate(); no_room, no memory for a fork or for one
/// sample alone.
KVASIR_API Result<std::vector<Generation>> generate_samples(Engine& engine, Session& session,
                                                            std::span<const int> prompt, int samples,
                                                            const GenerateOptions& options);

/// Called once for each prompt, with its index and its result or error.
using OnDone = std::function<void(size_t prompt, Result<Generation>&& done)>;
/// Generates a continuation of each prompt in its own session, up to `batch` (or as many as memory has room for) in the
/// same passes; the next starts when one is done. If the KV blocks of a pooled layout run out, the youngest waits until
/// another is done and is computed again. Each result or error is the same as alone; on_done gets them as they come,
/// first the errors that need no pass. Events carry the index of the prompt. Errors: bad_argument; no_room, no memory
/// for the first session. Then on_done has not been called.
KVASIR_API Result<void> generate_batch(Engine& engine, const SessionOptions& session,
                                       std::span<const std::vector<int>> prompts, int batch,
                                       const GenerateOptions& options, const OnDone& on_done);

/// Proves what a generation computed: a chain of XXH3-128 hashes over model, KV types, window, numerics version,
/// prompt, and every logits row with its token.
class KVASIR_API Receipt {
 public:
  /// Errors: those of Model::fingerprint().
  static Result<Receipt> start(const Model& model, const CacheStats& cache, std::span<const int> prompt);
  /// Adds one generated token: its raw logits row [vocab] (before penalties) and its id.
  void add(std::span<const float> logits, int id);
  /// The receipt so far, 32 hex digits.
  std::string hex() const;

 private:
  void extend(std::span<const std::byte> bytes);
  uint64_t low_ = 0, high_ = 0;
};

}  // namespace kvasir
