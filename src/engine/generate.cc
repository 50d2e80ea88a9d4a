// The loop of generation: sample, stream, stop, step.
#include <kvasir/generate.h>

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/rss.h"
#include "base/system.h"
#include "engine/stop.h"

namespace kvasir {
namespace {

// What a generation collects besides ids: text, streamed as it becomes certain.
class TextSink {
 public:
  /// `context` is what the text continues: its last tokens decide about a first space and a character cut in two.
  TextSink(const Model& model, std::span<const int> context, const GenerateOptions& options)
      : options_(options), stops_(options.stop) {
    if (model.tokenizer() == nullptr) return;
    decoder_.emplace(model.tokenizer());
    for (int id : context.last(std::min<size_t>(4, context.size()))) (void)decoder_->push(id);
  }
  void push(int id) { emit(decoder_ ? stops_.push(decoder_->push(id)) : std::string()); }
  void finish() {
    if (decoder_) emit(stops_.push(decoder_->finish()));
    emit(stops_.finish());
  }
  bool stopped() const { return stops_.stopped(); }
  bool cancelled() const { return cancelled_; }
  const std::string& text() const { return text_; }

 private:
  void emit(const std::string& piece) {
    if (piece.empty()) return;
    text_ += piece;
    if (options_.on_text && !cancelled_) cancelled_ = !options_.on_text(piece);
  }

  const GenerateOptions& options_;
  std::optional<StreamDecoder> decoder_;
  StopMatcher stops_;
  std::string text_;
  bool cancelled_ = false;
};

Result<void> check(const Session& session, std::span<const int> prompt, const GenerateOptions& options) {
  KVASIR_CHECK(check_sampling(options.sampling));
  if (options.max_tokens == 0 || options.max_tokens < -1)
    return fail(fmt::format("{} tokens asked for", options.max_tokens), "-n", "1 or more, or -1 for no limit");
  if (prompt.empty()) return fail("the prompt is empty", "-p", "a prompt of at least one token");
  const size_t end = static_cast<size_t>(session.pos()) + prompt.size();
  if (end > static_cast<size_t>(session.ctx()))
    return fail(fmt::format("a prompt of {} tokens does not fit the context of {}", end, session.ctx()), "-p",
                "a shorter prompt or a larger --ctx");
  return {};
}

// The next token of a session, which is computed anew from its last half where it is full.
Result<void> feed(Engine& engine, Session& session, int id, StepOutput* out, int* recomputed) {
  if (session.pos() < session.ctx()) return engine.prefill(session, {&id, 1}, out);
  const auto half = session.tokens().last(static_cast<size_t>(session.ctx() / 2));
  std::vector<int> tokens(half.begin(), half.end());
  tokens.push_back(id);
  session.clear();
  ++*recomputed;
  return engine.prefill(session, tokens, out);
}

bool contains(const std::vector<int>& ids, int id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

void fill_stats(const Engine& engine, const Session& session, const GenerateOptions& options, double start,
                double prefilled, double first, double end, Generation* g) {
  GenStats& s = g->stats;
  s.ttft_ms = (first - start) * 1e3;
  s.prefill_tok_s = g->prompt_tokens / (prefilled - start);
  if (g->tokens.size() > 1) s.decode_tok_s = static_cast<double>(g->tokens.size() - 1) / (end - first);
  s.cache = session.cache_stats();
  s.weights_bytes = engine.model().info().weights_bytes;
  s.weights = engine.model().info().weights_mode;
  s.threads = engine.threads();
  s.cpu = engine.cpu();
  if (options.rss) s.rss = rss_by_owner(engine.model().info().tokenizer_bytes);
  s.peak_rss_bytes = peak_rss_bytes();
}

}  // namespace

Result<Generation> generate(Engine& engine, Session& session, std::span<const int> prompt,
                            const GenerateOptions& options) {
  KVASIR_CHECK(check(session, prompt, options));
  // Before anything is fed, so that its failure changes nothing and its time is not the first token's.
  if (options.receipt) KVASIR_CHECK(engine.model().fingerprint());
  const double start = now_seconds();
  Generation g;
  g.prompt_tokens = static_cast<int>(prompt.size());
  g.cached_tokens = session.pos();
  StepOutput out;
  KVASIR_CHECK(engine.prefill(session, prompt, &out));
  const double prefilled = now_seconds();
  std::optional<Receipt> receipt;
  if (options.receipt) {
    KVASIR_TRY(receipt, Receipt::start(engine, session.cache_stats(), session.tokens()));
  }
  TextSink sink(engine.model(), session.tokens(), options);
  double first = 0;
  while (g.stop_reason.empty()) {
    KVASIR_TRY(const int id, sample(out.logits, options.sampling, session.tokens(), session.pos()));
    if (first == 0) first = now_seconds();
    g.tokens.push_back(id);
    if (receipt) receipt->add(out.logits, id);
    if (!options.ignore_eos && contains(engine.model().info().eos, id)) {
      g.stop_reason = "eos";
      break;
    }
    sink.push(id);
    if (sink.stopped())
      g.stop_reason = "stop";
    else if (sink.cancelled())
      g.stop_reason = "cancelled";
    else if (static_cast<int>(g.tokens.size()) == options.max_tokens ||
             (session.pos() == session.ctx() && options.on_full == OnFull::stop))
      g.stop_reason = "length";
    else
      KVASIR_CHECK(feed(engine, session, id, &out, &g.recomputed));
  }
  const double end = now_seconds();
  sink.finish();
  if (sink.stopped()) g.stop_reason = "stop";
  g.text = sink.text();
  if (receipt) g.receipt = receipt->hex();
  fill_stats(engine, session, options, start, prefilled, first, end, &g);
  return g;
}

}  // namespace kvasir
