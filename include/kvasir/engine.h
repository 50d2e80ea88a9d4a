// Running a model: an Engine owns threads and scratch memory, a Session is one sequence with its KV cache. Sampling is
// in sampling.h, generating text in generate.h.
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
  /// Most tokens in one forward pass, over all sequences (at least one of each). Results do not depend on it. A small
  /// ModelOptions::ram lowers it (Engine::pass_tokens).
  int prefill_chunk = 256;
  /// Bytes of KV kept after sessions end, for later texts with the same prefix; 0: keep none. Engines of one model
  /// share what they keep, within the limit of the first. When a budget is exhausted, kept texts are evicted before a
  /// session is refused memory.
  size_t prefix_ram = 0;
};

/// Sinks of a window by default: the number that arXiv:2309.17453 found to be enough.
inline constexpr int kDefaultSinks = 4;

struct SessionOptions {
  std::string layout = "grow";  ///< a name of catalog::layouts() (docs/kv-cache.md)
  int ctx = 0;  ///< context length in positions; 0: the model's limit, or as many as the budget has room for
  /// Limits the session to fewer positions than `ctx`; 0: no lower limit. A model's results may depend on `ctx`
  /// (LongRoPE uses other factors past the original context), never on this.
  int max_positions = 0;
  std::string kv_type_k = "f32", kv_type_v = "f32";  ///< names of catalog::kv_types()
  /// Every token attends only to the last `window` positions, itself included, and to the first `sinks` of the
  /// sequence, rotated as if they stood right before the window (arXiv:2309.17453). This approximates a model with full
  /// attention; the sequence may be longer than the model's limit. 0: the model's own attention.
  int window = 0;
  std::optional<int> sinks = {};  ///< positions kept with a window; absent: kDefaultSinks
  /// Sessions reuse kept texts of the same salt only.
  std::string salt = {};
  /// The cache holds `ctx` positions (sinks and window) and the sequence continues without limit. Requires a layout
  /// with LayoutEntry::drops_old.
  bool slide = false;
};

/// Memory of a session's cache. All bytes are exact.
struct CacheStats {
  std::string layout, kv_type_k, kv_type_v;
  std::string window;          ///< what a token attends to: "none" (all), "512 sinks 4", "64,0" by layer
  size_t token_bytes = 0;      ///< K and V of one position in all layers
  size_t bytes = 0;            ///< allocated now
  size_t predicted_bytes = 0;  ///< as the layout predicts for the positions reached
  size_t peak_bytes = 0;       ///< largest at any moment; old and new memory count together while growing
  int capacity = 0;            ///< positions that fit what is allocated
  int growths = 0;             ///< number of times the cache grew
  size_t copied_rows = 0;      ///< positions copied by growing
  int64_t saturated = 0;       ///< number of values outside the range of the KV type
};

/// The part of a text that a session need not compute.
struct Reuse {
  int tokens = 0;    ///< number of leading tokens reused
  int differs = -1;  ///< index of the session's first token that differs from the text; -1: none does
  /// The ids that follow the reused tokens in the kept text, at most 16. If several kept texts match, the one used
  /// last.
  std::vector<int> kept_ids = {};
};

/// One sequence: its tokens, KV cache and position. Move-only; used by one thread at a time.
class KVASIR_API Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  std::span<const int> tokens() const;
  /// The position of the next token: the number of tokens, computed or not.
  int pos() const;
  /// Number of leading tokens whose K and V the cache holds. The next pass computes the others.
  int computed() const;
  /// Whether the layout stores nothing between passes, so that every pass computes all tokens again.
  bool recomputes() const;
  /// Adds tokens without computing them. Errors: too_long, more than fit the context; bad_argument, an unknown id.
  Result<void> append(std::span<const int> tokens);
  int ctx() const;
  /// Returns an independent session with the same tokens and cache. Layout paged shares blocks until one of the two
  /// writes to them; other layouts copy. Errors: no_room.
  Result<Session> fork() const;
  /// Writes tokens and cache to a file that a session of any layout can load (docs/formats/snapshot.md). Errors: io,
  /// not_found; those of Model::fingerprint().
  Result<void> save(const std::string& path) const;
  /// Replaces tokens and cache by those of a saved file. On error the session is unchanged. Errors: not_found; damaged,
  /// a file that was changed or truncated; bad_argument, another model, KV type, window or version; too_long, more
  /// tokens than ctx; no_room.
  Result<void> load(const std::string& path);
  /// Removes the tokens from position `length` on, as if they had never been fed. Errors: bad_argument, a length out of
  /// range, or one that needs positions which a windowed cache no longer holds.
  Result<void> truncate(int length);
  /// Number of last tokens that truncate() can always remove: all, or one pass's if the layout drops old positions.
  int can_take_back() const;
  /// Removes all tokens, keeps the memory.
  void clear();
  /// Frees the cache's contents and, where the layout allows it, their memory. The tokens stay; the next step computes
  /// them again.
  void release();
  CacheStats cache_stats() const;

  struct Impl;  ///< internal to the library
  explicit Session(std::unique_ptr<Impl> impl);
  Impl& impl() { return *impl_; }
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// Which tokens of a feed to return logits for.
enum class Logits { none, last, all };

/// Tokens for one session in a pass. `tokens` may be empty if the session has tokens that are not computed yet.
struct Feed {
  Session* session = nullptr;
  std::span<const int> tokens;
  Logits logits = Logits::last;
  bool hidden = false;  ///< also return the final-norm state of each of these tokens
};

/// The result of one feed. Rows live in the engine's memory and are valid until its next pass.
struct FeedOutput {
  std::span<const float> logits;  ///< [requested tokens][vocab]
  std::span<const float> hidden;  ///< [tokens][hidden] after the final norm
  std::optional<Error> error;     ///< not_finite: the session is unchanged, other feeds are unaffected
};
using PassOutput = std::vector<FeedOutput>;  ///< [feeds]

/// How Engine::embed() makes one vector of the states of all tokens.
enum class Pooling { mean, last };

/// Computes forward passes. Used by one thread at a time. A session belongs to the engine's model: any engine of that
/// model may run it.
class KVASIR_API Engine {
 public:
  /// Errors: bad_argument, an option out of range; unsupported, weights that cannot be mapped (WeightsMode); no_room,
  /// the budget has no room for activations.
  static Result<std::unique_ptr<Engine>> create(std::shared_ptr<const Model> model, const EngineOptions& options = {});
  ~Engine();

  const Model& model() const { return *shared_model(); }
  const std::shared_ptr<const Model>& shared_model() const;
  int threads() const;
  /// Calls f(i) for i in [0, n) on the engine's threads and waits for all. Must not be called during a pass.
  void in_parallel(size_t n, const std::function<void(size_t)>& f);
  /// The CPU path in use: "avx512_vnni".
  std::string cpu() const;

  /// Under a budget (ModelOptions::ram) this reserves all the memory that `ctx` positions may take, except KV blocks of
  /// a pooled layout, so that an open session never runs out. Errors: bad_argument, an unknown layout or type, ctx
  /// above the model's limit; unsupported, a window that the model cannot have; no_room.
  Result<Session> open_session(const SessionOptions& options = {}) const;

  /// Exactly one forward pass: appends each feed's tokens to its session and computes all that the session lacks. On
  /// error the sessions are unchanged; a logit that is not finite fails its own feed only. Errors: bad_argument, no
  /// tokens, an id out of range, a session fed twice; too_long, more tokens than fit the context, or more to compute
  /// than max(pass_tokens(), number of feeds); no_room.
  Result<void> pass(std::span<const Feed> feeds, PassOutput* out);
  /// Most tokens in one pass: EngineOptions::prefill_chunk, or fewer under a budget.
  int pass_tokens() const;
  /// As pass(), in as many passes as the tokens need; each takes a part of every feed.
  Result<void> step(std::span<const Feed> feeds, PassOutput* out);
  /// Allocates the KV memory that a step with this feed needs. On error nothing has changed. Errors: no_room.
  Result<void> make_room(const Feed& feed);
  /// step() with one feed; also returns the feed's own error.
  Result<void> prefill(Session& session, std::span<const int> tokens, FeedOutput* out);
  /// One token for each of B sessions, whose lengths may differ. out: [B], each with logits [vocab].
  Result<void> decode_step(std::span<Session* const> sessions, std::span<const int> tokens, PassOutput* out);

  /// The textbook API: B sequences of equal length in one KVCache of batch B, which no budget counts. `tokens` is
  /// [B][n]; out->logits is [B][vocab].
  Result<void> prefill(KVCache& cache, std::span<const int> tokens, FeedOutput* out);
  Result<void> decode_step(KVCache& cache, std::span<const int> tokens, FeedOutput* out);

  /// Sets the session to the longest prefix of `text` that it holds itself or that is kept of earlier texts
  /// (EngineOptions::prefix_ram). The rest of the text is left to prefill, at least its last token, whose logits are
  /// needed. If a kept prefix cannot be adopted (no memory), the call succeeds and reuses less. Errors: bad_argument,
  /// no tokens; those of Model::fingerprint().
  Result<Reuse> reuse(Session& session, std::span<const int> text);
  /// Number of tokens that reuse() would find for a new session with these options. Changes nothing, not even
  /// prefix_stats(). Errors: those of open_session() except no_room; those of Model::fingerprint().
  Result<int> reusable(const SessionOptions& options, std::span<const int> text) const;
  /// Keeps the session's computed tokens and their KV for later texts. Does nothing without prefix_ram, without memory,
  /// or if the session has dropped positions. Errors: those of Model::fingerprint().
  Result<void> keep(const Session& session);
  /// As keep(), for a session that continues: keeps only full blocks, so that the session can write to its last block
  /// without copying it.
  Result<void> publish(const Session& session);
  PrefixStats prefix_stats() const;
  /// Whether prefix_ram > 0.
  bool keeps_texts() const;
  /// Bytes that KV blocks can still take under the model's budgets if all kept texts are evicted; SIZE_MAX without a
  /// budget.
  size_t kv_room() const;
  /// Bytes of KV blocks that sequences and kept texts hold now.
  size_t kv_used() const;
  /// Bytes that one sequence of `positions` takes: its KV blocks in a pooled layout; in others, all that open_session()
  /// reserves. Errors: those of open_session() except no_room.
  Result<size_t> kv_bytes(const SessionOptions& options, int positions) const;

  /// Embeds a text: the mean (or the last) of its final-norm states, L2-normalised, [hidden]. The session must be empty
  /// and is empty afterwards. Errors: bad_argument, a session that holds tokens, no tokens; too_long; no_room;
  /// not_finite.
  Result<std::vector<float>> embed(Session& session, std::span<const int> tokens, Pooling pooling = Pooling::mean);

  struct Impl;  ///< internal to the library
  explicit Engine(std::unique_ptr<Impl> impl);
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvasir
