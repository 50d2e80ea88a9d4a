// Sampling, stopping, guessing.
#include "engine/stream.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/rss.h"
#include "base/system.h"

namespace kvasir {
namespace {

bool contains(const std::vector<int>& ids, int id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

// Up to `most` tokens that followed the last occurrence of the text's last three tokens, or else of its last two
// (prompt lookup decoding).
std::vector<int> what_followed(std::span<const int> text, size_t most) {
  for (const size_t n : {size_t{3}, size_t{2}}) {
    if (text.size() <= n) continue;
    const auto key = text.last(n), before = text.first(text.size() - 1);
    const auto found = std::find_end(before.begin(), before.end(), key.begin(), key.end());
    if (found == before.end()) continue;
    const auto rest = text.subspan(static_cast<size_t>(found - before.begin()) + n);
    const auto followed = rest.first(std::min(most, rest.size()));
    return {followed.begin(), followed.end()};
  }
  return {};
}

}  // namespace

TextSink::TextSink(const Model& model, std::span<const int> context, const GenerateOptions& options)
    : options_(options), stops_(options.stop) {
  if (model.tokenizer() == nullptr) return;
  decoder_.emplace(model.tokenizer());
  for (int id : context.last(std::min<size_t>(4, context.size()))) (void)decoder_->push(id);
}

void TextSink::finish() {
  if (decoder_) emit(stops_.push(decoder_->finish()));
  emit(stops_.finish());
}

void TextSink::emit(const std::string& piece) {
  if (piece.empty()) return;
  text_ += piece;
  if (options_.on_text && !cancelled_) cancelled_ = !options_.on_text(piece);
}

Result<void> Stream::check(const Model& model, const GenerateOptions& options) {
  KVASIR_CHECK(check_sampling(options.sampling));
  if (options.max_tokens == 0 || options.max_tokens < -1)
    return fail(fmt::format("{} tokens asked for", options.max_tokens), "-n", "1 or more, or -1 for no limit");
  if (options.lookup < 0) return fail(fmt::format("{} tokens to guess", options.lookup), "--lookup", "0 or more");
  for (const std::string& stop : options.stop) {
    if (stop.empty()) return fail("an empty text ends nothing", "--stop", "a text of at least one character");
    if (model.tokenizer() == nullptr)
      return fail("this model came without a tokenizer, so no text ends anything", "--stop", "--tokenizer FILE");
  }
  return {};
}

Result<void> Stream::check(const Model& model, std::span<const int> prompt, size_t held, int ctx) {
  if (prompt.empty()) return fail("the prompt is empty", "-p", "a prompt of at least one token");
  if (const size_t end = held + prompt.size(); end > static_cast<size_t>(ctx))
    return fail(fmt::format("a prompt of {} tokens does not fit the context of {}", end, ctx), "-p",
                "a shorter prompt or a larger --ctx");
  return model.check_ids(prompt, "-p");
}

Stream::Stream(Engine& engine, Session& session, const GenerateOptions& options, int choice)
    : engine_(&engine), session_(&session), options_(&options), choice_(choice), start_(now_seconds()) {}

Result<Stream> Stream::open(Engine& engine, Session& session, std::span<const int> prompt,
                            const GenerateOptions& options) {
  KVASIR_CHECK(check(engine.model(), options));
  KVASIR_CHECK(check(engine.model(), prompt, options.whole_text ? 0 : session.tokens().size(), session.ctx()));
  // Before anything is fed, so that its failure changes nothing and its time is not the first token's.
  if (options.receipt || (options.whole_text && engine.keeps_texts())) KVASIR_CHECK(engine.model().fingerprint());
  Stream stream(engine, session, options, 0);
  stream.prompt_ = prompt;
  stream.g_.prompt_tokens = static_cast<int>(prompt.size());
  stream.g_.cached_tokens = session.pos();
  if (options.whole_text) {
    KVASIR_TRY(const Reuse reused, engine.reuse(session, prompt));
    stream.prompt_ = prompt.subspan(static_cast<size_t>(session.pos()));
    stream.g_.cached_tokens = reused.tokens;
    stream.g_.differs = reused.differs;
    stream.g_.stats.reuse_ms = (now_seconds() - stream.start_) * 1e3;
  }
  return stream;
}

Feed Stream::next() {
  if (g_.tokens.empty()) return {session_, prompt_};
  feed_ = {g_.tokens.back()};
  if (session_->pos() == session_->ctx()) {
    const auto half = session_->tokens().last(static_cast<size_t>(session_->ctx() / 2));
    feed_.insert(feed_.begin(), half.begin(), half.end());
    session_->clear();
    ++g_.recomputed;
    return {session_, feed_};
  }
  if (options_->lookup > 0) guess();
  return {session_, feed_, feed_.size() > 1};
}

// As many as may be taken back, fit the context, and could be wanted.
void Stream::guess() {
  int most = std::min({options_->lookup, session_->can_take_back(), session_->ctx() - session_->pos() - 1});
  if (options_->max_tokens > 0) most = std::min(most, options_->max_tokens - static_cast<int>(g_.tokens.size()) - 1);
  if (most <= 0) return;
  std::vector<int> text(session_->tokens().begin(), session_->tokens().end());
  text.push_back(feed_[0]);
  const std::vector<int> guesses = what_followed(text, static_cast<size_t>(most));
  feed_.insert(feed_.end(), guesses.begin(), guesses.end());
  g_.guessed += static_cast<int>(guesses.size());
}

// The sequence is as after plain decoding: what was fed and is not the text is taken back.
Result<void> Stream::take(std::span<const float> rows) {
  const bool is_prompt = g_.tokens.empty();
  if (is_prompt) KVASIR_CHECK(begin());
  const size_t vocab = static_cast<size_t>(engine_->model().info().vocab), n = rows.size() / vocab;
  const int first = session_->pos() - static_cast<int>(n) + 1;  // position of the token that the first row chooses
  size_t right = 0;                                             // guesses
  for (;; ++right) {
    KVASIR_CHECK(choose(rows.subspan(right * vocab, vocab), first + static_cast<int>(right)));
    if (done() || right + 1 == n || g_.tokens.back() != feed_[right + 1]) break;
  }
  g_.accepted += static_cast<int>(right);
  if (right + 1 < n) KVASIR_CHECK(session_->truncate(first + static_cast<int>(right)));
  if (done() && receipt_) KVASIR_CHECK(engine_->model().fingerprint());  // it still is what the receipt began with
  return is_prompt && options_->whole_text ? keep() : Result<void>();
}

void Stream::wait() {
  session_->release();
  if (!g_.tokens.empty()) ++g_.waited;
}

Stream Stream::forked(Session& session, int choice) const {
  Stream other(*engine_, session, *options_, choice);
  other.g_ = g_;
  other.prompt_ = prompt_;
  other.start_ = start_;
  return other;
}

// The prompt is kept as soon as it is there, for others that wait for it. Not the first token's time.
Result<void> Stream::keep() {
  const double start = now_seconds();
  KVASIR_CHECK(engine_->keep(*session_));
  g_.stats.keep_ms = (now_seconds() - start) * 1e3;
  return {};
}

Result<void> Stream::begin() {
  prefilled_ = now_seconds();
  sink_.emplace(engine_->model(), session_->tokens(), *options_);
  if (options_->receipt) {
    KVASIR_TRY(receipt_, Receipt::start(*engine_, session_->cache_stats(), session_->tokens()));
  }
  return {};
}

Result<void> Stream::choose(std::span<const float> row, int position) {
  const auto text = session_->tokens().first(static_cast<size_t>(position));
  KVASIR_TRY(const int id, sample(row, options_->sampling,
                                  {.recent = text,
                                   .prompt_tokens = static_cast<size_t>(g_.prompt_tokens),
                                   .position = position,
                                   .choice = choice_}));
  if (first_ == 0) first_ = now_seconds();
  g_.tokens.push_back(id);
  if (receipt_) receipt_->add(row, id);
  const bool over = !options_->ignore_eos && contains(engine_->model().info().eos, id);
  if (!over) sink_->push(id);
  if (over)
    g_.stop_reason = "eos";
  else if (sink_->stopped())
    g_.stop_reason = "stop";
  else if (sink_->cancelled())
    g_.stop_reason = "cancelled";
  else if (static_cast<int>(g_.tokens.size()) == options_->max_tokens ||
           (position == session_->ctx() && options_->on_full == OnFull::stop))
    g_.stop_reason = "length";
  return {};
}

Generation Stream::finish() {
  const double end = now_seconds();
  if (options_->whole_text) (void)engine_->keep(*session_);  // all that can fail has been done before
  sink_->finish();
  if (sink_->stopped()) g_.stop_reason = "stop";
  g_.text = sink_->text();
  if (receipt_) g_.receipt = receipt_->hex();
  GenStats& s = g_.stats;
  const ModelInfo& model = engine_->model().info();
  s.ttft_ms = (first_ - start_) * 1e3;
  s.prefill_tok_s = static_cast<double>(prompt_.size()) / (prefilled_ - start_ - s.reuse_ms * 1e-3);
  if (g_.tokens.size() > 1) s.decode_tok_s = static_cast<double>(g_.tokens.size() - 1) / (end - first_);
  s.cache = session_->cache_stats();
  s.weights_bytes = model.weights_bytes;
  s.weights = weights_mode_name(model.weights_mode);
  s.threads = engine_->threads();
  s.cpu = engine_->cpu();
  if (options_->rss) s.rss = rss_by_owner(model.tokenizer_bytes);
  s.peak_rss_bytes = peak_rss_bytes();
  return g_;
}

}  // namespace kvasir
