// Running a model: an Engine has threads and scratch memory, a Session is one sequence with its cache.
// Sampling and text are in generate.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kvasir/kv_cache.h>
#include <kvasir/model.h>
#include <kvasir/result.h>
#include <kvasir/version.h>

namespace kvasir {

struct EngineOptions {
  int threads = 0;  ///< 0: min(CPU affinity, cgroup quota, physical cores)
  /// Tokens in one pass, over all sequences (at least one of each); results do not depend on it. A small budget of
  /// memory makes it smaller.
  int prefill_chunk = 256;
  /// Bytes of KV that is kept of texts when their sessions are gone, for others that begin like them; 0: none. Engines
  /// of one model that keep texts share them, within the bytes of the first. What a session needs is taken from it
  /// before a budget refuses.
  size_t prefix_ram = 0;
};

/// Sinks of a window that come unasked: as many as arXiv:2309.17453 found to be enough.
inline constexpr int kDefaultSinks = 4;

struct SessionOptions {
  std::string layout = "grow";  ///< a name of the list of cache layouts (docs/kv-cache.md)
  int ctx = 0;                  ///< the most positions; 0: the model's own limit, or what the budget has room for
  /// Fewer positions that the session may hold; 0: all of `ctx`. What a model computes may depend on `ctx` (LongRoPE
  /// rotates by other factors past the original context), never on this.
  int max_positions = 0;
  std::string kv_type_k = "f32", kv_type_v = "f32";
  /// Every token sees only the last `window` positions, itself included, and the first `sinks` of the sequence, moved
  /// to right before the window (arXiv:2309.17453): an approximation of a model with full attention, in which a
  /// sequence may be longer than the model's own limit. 0: what the model was made for.
  int window = 0;
  std::optional<int> sinks = {};  ///< of a window; absent: kDefaultSinks
  /// Texts of one salt are not reused in sessions of another.
  std::string salt = {};
  /// `ctx` positions are held (sinks and a window), and the sequence goes on without end. Needs a layout that forgets.
  bool slide = false;
};

/// What a session's cache costs. All bytes are exact.
struct CacheStats {
  std::string layout, kv_type_k, kv_type_v;
  std::string window;          ///< what a token sees: "none" (all), "512 sinks 4", "64,0" by layer
  size_t token_bytes = 0;      ///< K and V of one position in all layers
  size_t bytes = 0;            ///< allocated now
  size_t predicted_bytes = 0;  ///< what the layout said that so many positions take
  size_t peak_bytes = 0;       ///< the most at any moment, old + new while growing
  int capacity = 0;            ///< positions that fit what is allocated
  int growths = 0;
  size_t copied_rows = 0;  ///< positions copied by growing
  int64_t saturated = 0;   ///< values that the KV type could not hold
};

/// What of a text a session did not have to compute.
struct Reuse {
  int tokens = 0;    ///< reused
  int differs = -1;  ///< the first of the session's own tokens that the text does not have; -1: it has them all
  /// The ids that follow the reused tokens in the kept text, at most 16; of several such texts, the one used last.
  std::vector<int> kept_ids = {};
};

/// One sequence: its tokens, its cache, its position. Move-only; used by one thread at a time.
class KVASIR_API Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  std::span<const int> tokens() const;
  /// The position of the next token: all tokens, computed or not.
  int pos() const;
  /// The leading tokens whose K and V the cache holds. The next pass computes the others.
  int computed() const;
  /// Whether the layout keeps nothing, so that every pass computes all tokens again.
  bool recomputes() const;
  /// Adds tokens without computing them. Errors: more than fit the context.
  Result<void> append(std::span<const int> tokens);
  int ctx() const;
  /// Another session that holds the same and goes its own way from here. Layout paged shares its blocks until one of
  /// them writes; others are copied. Errors: no memory, more than the budget has left.
  Result<Session> fork() const;
  /// Writes tokens and cache to a file that a session of any layout loads: docs/formats/snapshot.md. Errors: the file
  /// system's; the fingerprint cannot be computed.
  Result<void> save(const std::string& path) const;
  /// Becomes what was saved. Everything is checked first: on error the session is as it was. Errors: a file that was
  /// changed or cut; another model, KV type, window or version; more tokens than ctx; no memory.
  Result<void> load(const std::string& path);
  /// Forgets tokens from position `length` on; exact. Errors: length out of range, positions that a windowed cache does
  /// not hold any more.
  Result<void> truncate(int length);
  /// How many tokens truncate() takes back at any time: all, or a pass's where the cache forgets.
  int can_take_back() const;
  /// Forgets everything, keeps the memory.
  void clear();
  /// Gives back the memory that it can, not its tokens: the next step computes again what they need.
  void release();
  CacheStats cache_stats() const;

  struct Impl;  ///< the library's own
  explicit Session(std::unique_ptr<Impl> impl);
  Impl& impl() { return *impl_; }
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// The tokens of a feed whose logits are wanted.
enum class Logits { none, last, all };

/// Tokens for one session of a pass. They may be empty where the session has tokens that are not computed yet.
struct Feed {
  Session* session = nullptr;
  std::span<const int> tokens;
  Logits logits = Logits::last;
  bool hidden = false;  ///< the final-norm state of every one of these tokens too
};

/// The result of one feed. Rows lie in the engine's own memory until its next pass.
struct FeedOutput {
  std::span<const float> logits;  ///< [wanted tokens][vocab]
  std::span<const float> hidden;  ///< [tokens][hidden] after the final norm
  std::optional<Error> error;     ///< Error::not_finite: the session is as it was, other feeds are not concerned
};
using PassOutput = std::vector<FeedOutput>;  ///< [feeds]

enum class Pooling { mean, last };

/// Used by one thread at a time; sessions belong to the engine's model, not to the engine.
class KVASIR_API Engine {
 public:
  static Result<std::unique_ptr<Engine>> create(std::shared_ptr<const Model> model, const EngineOptions& options = {});
  ~Engine();

  const Model& model() const { return *shared_model(); }
  const std::shared_ptr<const Model>& shared_model() const;
  int threads() const;
  /// Calls f(i) for i in [0, n) on the engine's threads. Not during a pass.
  void in_parallel(size_t n, const std::function<void(size_t)>& f);
  /// The CPU path in use: "avx512_vnni".
  std::string cpu() const;

  /// Under a budget (ModelOptions::ram) the session is promised all that its ctx may take, so that what runs goes on.
  /// Errors: unknown layout or type, ctx above the model's limit, no memory, more than the budget has left.
  Result<Session> open_session(const SessionOptions& options = {}) const;

  /// Exactly one forward pass: appends each feed's tokens to its session and computes all that the session has not
  /// computed. On error the sessions are as they were; a logit that is not finite fails its own feed only. Errors: no
  /// tokens, an id out of range, more tokens than fit the context, a session that is fed twice; more tokens to compute
  /// than pass_tokens(), or one of each session if that is more.
  Result<void> pass(std::span<const Feed> feeds, PassOutput* out);
  /// The tokens that one pass takes: EngineOptions::prefill_chunk, or fewer under a budget.
  int pass_tokens() const;
  /// The same in as many passes as the tokens take, each with a part of every feed.
  Result<void> step(std::span<const Feed> feeds, PassOutput* out);
  /// Takes the KV memory that a step with this feed needs, ahead of it. On error nothing has changed. Errors: no room.
  Result<void> make_room(const Feed& feed);
  /// step() with one feed, whose error is returned.
  Result<void> prefill(Session& session, std::span<const int> tokens, FeedOutput* out);
  /// One token for each of B sessions, of any lengths.
  Result<void> decode_step(std::span<Session* const> sessions, std::span<const int> tokens, PassOutput* out);

  /// The textbook's form: B sequences of equal length in one KVCache of batch B, which no budget counts. `tokens` is
  /// [B][n]; out->logits is [B][vocab].
  Result<void> prefill(KVCache& cache, std::span<const int> tokens, FeedOutput* out);
  Result<void> decode_step(KVCache& cache, std::span<const int> tokens, FeedOutput* out);

  /// Makes the session begin with as much of `text` as it holds, or as is kept of earlier texts under
  /// EngineOptions::prefix_ram, whichever is more; the rest of the text is for prefill. Never all of it: its last token
  /// is computed, for its logits. Errors: no tokens, no fingerprint. What was found but could not be had costs nothing
  /// but time.
  Result<Reuse> reuse(Session& session, std::span<const int> text);
  /// How many tokens reuse() would give a new session with these options. Changes and counts nothing. Errors: those of
  /// open_session() but no room; no fingerprint.
  Result<int> reusable(const SessionOptions& options, std::span<const int> text) const;
  /// Keeps what the session holds for texts to come. Does nothing without prefix_ram, or where the session has
  /// forgotten positions. Errors: no fingerprint.
  Result<void> keep(const Session& session);
  /// The same while the session goes on: only its full blocks, so that it need not copy the last one to write to it.
  Result<void> publish(const Session& session);
  PrefixStats prefix_stats() const;
  /// Whether it has prefix_ram.
  bool keeps_texts() const;
  /// Bytes that blocks of KV can still take under the model's budgets, texts that are kept given up; SIZE_MAX where
  /// there is no budget.
  size_t kv_room() const;
  /// Bytes of the blocks of KV that sequences and kept texts hold now.
  size_t kv_used() const;
  /// Bytes that one sequence of `positions` takes: blocks of KV, in a layout that takes them from a pool; all that it
  /// is promised at its opening, in others. Errors: those of open_session() but no room.
  Result<size_t> kv_bytes(const SessionOptions& options, int positions) const;

  /// A text as one vector of `hidden` floats: the mean (or last) of the final-norm states, L2-normalised. Clears the
  /// session before and after. Errors: a session that is mid-conversation, no tokens, more than fit.
  Result<std::vector<float>> embed(Session& session, std::span<const int> tokens, Pooling pooling = Pooling::mean);

  struct Impl;  ///< the library's own
  explicit Engine(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvasir
