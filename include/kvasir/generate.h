// Text from sessions: a generator for one sequence, and functions that run one or many of them to the end.
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

/// Resident bytes of this process by who holds them. All but `kernel` come from one walk over the process's mappings.
struct RssByOwner {
  size_t weights = 0;      ///< in memory of our own, and pages of mapped model files
  size_t kv = 0;           ///< pages that the caches have written to
  size_t activations = 0;  ///< the engine's scratch memory
  size_t tokenizer = 0;    ///< heap that building it took; the only part that is no count of pages
  size_t code = 0;         ///< the program, its libraries, other mapped files
  size_t other = 0;        ///< the rest of the heap, stacks
  size_t kernel = 0;       ///< the kernel's own counter of all of it (VmRSS), for comparison

  size_t total() const { return weights + kv + activations + tokenizer + code + other; }
};

/// What to do when the context is full: stop, or compute its last half anew as a text of its own and go on from there.
enum class OnFull { stop, recompute };

/// Why a generation ended: an end-of-text token, a stop string or a constraint that is complete, max_tokens or the
/// context, the caller.
enum class StopReason { eos, stop, length, cancelled };
/// As the enum spells it.
KVASIR_API std::string_view stop_reason_name(StopReason reason);

/// The news of one pass.
struct Event {
  std::vector<int> ids;                ///< chosen; several where guesses were right
  std::string text;                    ///< whole UTF-8 characters that became certain; may lag behind the ids
  std::vector<TokenLogprob> logprobs;  ///< [ids] with GenerateOptions::logprobs
  std::optional<StopReason> stop;      ///< of the last event
};

/// Called after each pass with the index of the sequence; false ends that sequence (StopReason::cancelled).
using OnEvent = std::function<bool(size_t sequence, const Event& event)>;

struct GenerateOptions {
  SamplingParams sampling;
  /// The prompt is all of the text, not what follows the session's: what the session holds of it, or the engine's
  /// prefix_ram, is reused, and in the end what the session holds is kept for texts to come.
  bool whole_text = false;
  OnFull on_full = OnFull::stop;
  int max_tokens = -1;             ///< -1: until the end of text or of the context; 0 is refused
  std::vector<std::string> stop;   ///< the text ends before the first of these
  bool keep_stop = false;          ///< the stop string is part of the text
  std::vector<int> stop_ids = {};  ///< tokens that end the text as an end-of-text token does
  int min_tokens = 0;              ///< no token ends the text before so many are generated
  bool ignore_eos = false;
  /// Tokens guessed at in a step, where the end of the text repeats what it had before (prompt lookup decoding): all of
  /// them are checked in one pass, so the tokens, the logits and the receipt are those without. 0: off.
  int lookup = 0;
  /// Log probabilities of each chosen token and of this many of the most probable ones, of the raw row; -1: none.
  int logprobs = -1;
  /// Allows tokens; every generation starts with a clone. Null: every token is allowed.
  std::shared_ptr<const Constraint> constraint;
  bool receipt = false;  ///< needs the engine's fingerprint, which reads all weights once
  bool rss = false;      ///< split the resident set at the end, which looks at every page of the process
  OnEvent on_event;
};

struct GenStats {
  double ttft_ms = 0;        ///< from the call to the first token
  double reuse_ms = 0;       ///< of it, looking for what need not be computed
  double keep_ms = 0;        ///< keeping the prompt for texts to come
  double prefill_tok_s = 0;  ///< prompt tokens over the time of prefill
  double decode_tok_s = 0;   ///< tokens after the first over their time; 0 when there was one
  CacheStats cache;
  size_t peak_rss_bytes = 0, weights_bytes = 0;
  std::optional<RssByOwner> rss;  ///< when asked for, and the system tells
  int threads = 0;
  std::string cpu, weights;
};

struct Generation {
  std::string text;
  std::vector<int> tokens;  ///< generated ids, an end-of-text id included
  int prompt_tokens = 0, cached_tokens = 0;
  int differs = -1;               ///< of a whole text: the session's first token that it does not have, -1 for none
  int guessed = 0, accepted = 0;  ///< tokens, by GenerateOptions::lookup
  int recomputed = 0;             ///< how often the last half of the context was computed anew
  int waited = 0;                 ///< how often it gave its blocks to others of its batch, and was computed anew
  StopReason stop_reason = StopReason::length;
  std::string stop_text;               ///< the one of GenerateOptions::stop that ended it
  std::vector<TokenLogprob> logprobs;  ///< [tokens], when asked for
  std::string receipt;                 ///< 32 hex digits, when asked for
  GenStats stats;
};

/// One sequence as it is generated: a state machine that outlives its session. It owns the text, the sampler's state,
/// the stops and the receipt, so that a sequence can be suspended, and go on in another session with the same bits.
/// Used by one thread at a time. The loop:
///
///     while (!generator.done()) {
///       const Feed feed = generator.next(session);
///       engine.pass({&feed, 1}, &out);            // with the feeds of other sequences
///       event = generator.take(out[0].logits);
///     }
class KVASIR_API Generator {
 public:
  /// `text` is all that comes before the first generated token, what a session holds of it included. `choice` tells
  /// parallel continuations of one text apart. `resume` are tokens that were generated after the text before: counts,
  /// penalties, stops, constraint and receipt are as if this generator had chosen them, and its events begin after
  /// them. Errors: an empty text, an id that the model does not know, an option out of range; tokens to resume that go
  /// on after their end, or that the constraint forbids; with a receipt, no fingerprint.
  static Result<Generator> create(std::shared_ptr<const Model> model, std::vector<int> text,
                                  GenerateOptions options = {}, int choice = 0, std::span<const int> resume = {});
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;
  ~Generator();

  /// Options out of range, whatever the text is.
  static Result<void> check(const Model& model, const GenerateOptions& options);

  /// How many tokens of the text a session has not computed: next() gives those first.
  int lacks(const Session& session) const;
  /// The next tokens for a session, at most `most`: the part of the text that it lacks, then the token chosen last and
  /// guesses: the given ones, or those of GenerateOptions::lookup where none are given. Tokens of the session that are
  /// not the text's are truncated, and all of them where the context is full and OnFull::recompute asks for it. The
  /// feed lives until the next call; the session, until take().
  Feed next(Session& session, int most = INT_MAX, std::span<const int> guesses = {});
  /// The rows of logits that next() asked for, perhaps none. After the last one the session holds all of the text, its
  /// last token not computed; where that did not fit the context, OnFull::recompute leaves the last half of it there
  /// and OnFull::stop all but that token. Errors: no finite logit, nothing allowed by the constraint, no fingerprint
  /// for the receipt.
  Result<Event> take(std::span<const float> rows);

  bool done() const;
  std::optional<StopReason> stop_reason() const;
  /// Ends it as if the last event had been the end.
  void cancel();
  /// The text so far, generated tokens included.
  std::span<const int> tokens() const;
  std::span<const int> generated() const;
  /// Another generator at the same place, whose choices are `choice`'s from here on. `session` holds what this one's
  /// does (Session::fork), so that take() may follow next() there too.
  Generator fork(int choice, Session& session) const;
  /// The text, tokens, counts, receipt and times so far. Statistics of a cache and an engine are not in it.
  Generation result() const;

 private:
  struct Impl;
  explicit Generator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Continues the session with the prompt's tokens and then generates; the session then holds the generated tokens too,
/// so that a fork, a snapshot and the text agree (Generator::take). The prompt may be empty where the session is not.
/// Errors: an empty text, one that does not fit the context (refused before the forward pass, with both numbers), an
/// option out of range.
KVASIR_API Result<Generation> generate(Engine& engine, Session& session, std::span<const int> prompt,
                                       const GenerateOptions& options);

/// `samples` continuations of one prompt, side by side in forks of the session: the i-th is what sampling with choice i
/// gives, and the session goes on as the first. Layout paged holds the prompt once. Where there is no room for all,
/// some wait. Errors: those of generate(), no memory for a fork or for one sample alone.
KVASIR_API Result<std::vector<Generation>> generate_samples(Engine& engine, Session& session,
                                                            std::span<const int> prompt, int samples,
                                                            const GenerateOptions& options);

using OnDone = std::function<void(size_t prompt, Result<Generation>&& done)>;
/// Each prompt in a session of its own, up to `batch` in the same passes, or as many as the memory has room for; the
/// next begins when one is done. Where the blocks of a layout that takes memory as it grows run out, the youngest waits
/// until another is done, and is computed anew. Each gives what it gives alone, in the order of `on_done`, or the error
/// that it meets alone: those that no pass is needed for are told first. Events carry the index of the prompt. Errors:
/// a bad parameter, no room for the first session; then nothing has been told.
KVASIR_API Result<void> generate_batch(Engine& engine, const SessionOptions& session,
                                       std::span<const std::vector<int>> prompts, int batch,
                                       const GenerateOptions& options, const OnDone& on_done);

/// The proof of what a generation computed: an XXH3-128 chain over the setting, the prompt and every logits row.
class KVASIR_API Receipt {
 public:
  /// Fails when the fingerprint cannot be computed.
  static Result<Receipt> start(const Model& model, const CacheStats& cache, std::span<const int> prompt);
  /// One generated token: its raw logits row (before penalties) and its id.
  void add(std::span<const float> logits, int id);
  std::string hex() const;

 private:
  void extend(std::span<const std::byte> bytes);
  uint64_t low_ = 0, high_ = 0;
};

}  // namespace kvasir
