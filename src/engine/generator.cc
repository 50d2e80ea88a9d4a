// One sequence as it is generated: sampling, stopping, guessing, the receipt.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <kvasir/generate.h>

#include "base/clock.h"
#include "engine/text_sink.h"

namespace kvasir {
namespace {

bool contains(const std::vector<int>& ids, int id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

// Up to `most` tokens that followed the last occurrence of the text's last three tokens, or else of its last two
// (prompt lookup decoding).
std::span<const int> what_followed(std::span<const int> text, size_t most) {
  for (const size_t n : {size_t{3}, size_t{2}}) {
    if (text.size() <= n) continue;
    const auto key = text.last(n), before = text.first(text.size() - 1);
    const auto found = std::find_end(before.begin(), before.end(), key.begin(), key.end());
    if (found == before.end()) continue;
    const auto rest = text.subspan(static_cast<size_t>(found - before.begin()) + n);
    return rest.first(std::min(most, rest.size()));
  }
  return {};
}

Result<void> check_stops(const Model& model, const GenerateOptions& options) {
  for (const std::string& stop : options.stop) {
    if (stop.empty())
      return fail(Error::bad_argument, "an empty text ends nothing", "GenerateOptions::stop",
                  "a text of at least one character");
    if (model.tokenizer() == nullptr)
      return fail(Error::bad_argument, "this model came without a tokenizer, so no text ends anything",
                  "GenerateOptions::stop", "ModelOptions::tokenizer");
  }
  return {};
}

}  // namespace

std::string_view stop_reason_name(StopReason reason) {
  constexpr std::array<std::string_view, 4> kNames{"eos", "stop", "length", "cancelled"};
  return kNames[static_cast<size_t>(reason)];
}

struct Generator::Impl {
  // None, or one that follows this sequence alone: a copy follows another one from the same state.
  class OwnConstraint {
   public:
    OwnConstraint() = default;
    explicit OwnConstraint(const Constraint* from) : own_(from == nullptr ? nullptr : from->clone()) {}
    OwnConstraint(const OwnConstraint& other) : OwnConstraint(other.own_.get()) {}
    OwnConstraint& operator=(OwnConstraint&&) = default;
    ~OwnConstraint() = default;

    Constraint* get() const { return own_.get(); }

   private:
    std::unique_ptr<Constraint> own_;
  };

  std::shared_ptr<const Model> model;
  GenerateOptions options;
  int choice = 0;
  std::vector<int> known;      // the text and the chosen tokens
  size_t text_tokens = 0;      // of `known`, before the first chosen one
  size_t base = 0;             // where the part of `known` begins that a session is to hold
  std::vector<int> fed;        // what next() gave
  size_t guesses = 0;          // at the end of `fed`
  bool wants_rows = false;     // the feed reaches the end of `known`
  Session* session = nullptr;  // from next() to take()
  OwnConstraint constraint;
  std::optional<TextSink> sink;  // from the first row on
  std::optional<Receipt> receipt;
  std::vector<TokenLogprob> logprobs;
  std::optional<StopReason> stop;
  int guessed = 0, accepted = 0, recomputed = 0;
  int to_prefill = -1;  // tokens that the first session lacked
  double start = 0, prefilled = 0, first = 0;

  std::span<const int> held() const { return std::span(known).subspan(base); }
  std::span<const int> generated() const { return std::span(known).subspan(text_tokens); }

  void start_over(Session& s);
  void match(Session& s);
  void guess();
  Result<void> begin();
  Result<void> choose(std::span<const float> row, Event* event);
  bool ends(int id);
  Result<void> end();
};

Generator::Generator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;
Generator::~Generator() = default;

Result<void> Generator::check(const Model& model, const GenerateOptions& options) {
  KVASIR_CHECK(check_sampling(options.sampling));
  if (options.max_tokens == 0 || options.max_tokens < -1)
    return fail(Error::bad_argument, fmt::format("{} tokens asked for", options.max_tokens),
                "GenerateOptions::max_tokens", "1 or more, or -1 for no limit");
  if (options.lookup < 0)
    return fail(Error::bad_argument, fmt::format("{} tokens to guess", options.lookup), "GenerateOptions::lookup",
                "0 or more");
  if (options.logprobs < -1)
    return fail(Error::bad_argument, fmt::format("{} log probabilities", options.logprobs), "GenerateOptions::logprobs",
                "0 or more, or -1 for none");
  return check_stops(model, options);
}

Result<Generator> Generator::create(std::shared_ptr<const Model> model, std::vector<int> text, GenerateOptions options,
                                    int choice) {
  KVASIR_CHECK(check(*model, options));
  if (text.empty())
    return fail(Error::bad_argument, "the prompt is empty", "Generator::prompt", "a prompt of at least one token");
  KVASIR_CHECK(model->check_ids(text, "Generator::prompt"));
  // Before anything is fed, so that its failure changes nothing and its time is not the first token's.
  if (options.receipt) KVASIR_CHECK(model->fingerprint());
  auto impl = std::make_unique<Impl>();
  impl->model = std::move(model);
  impl->text_tokens = text.size();
  impl->known = std::move(text);
  impl->choice = choice;
  impl->constraint = Impl::OwnConstraint(options.constraint.get());
  impl->options = std::move(options);
  return Generator(std::move(impl));
}

Generator Generator::fork(int choice, Session& session) const {
  auto other = std::make_unique<Impl>(*impl_);
  other->choice = choice;
  other->session = &session;
  return Generator(std::move(other));
}

bool Generator::done() const { return impl_->stop.has_value(); }
std::optional<StopReason> Generator::stop_reason() const { return impl_->stop; }
std::span<const int> Generator::tokens() const { return impl_->known; }
std::span<const int> Generator::generated() const { return impl_->generated(); }

void Generator::cancel() {
  if (!impl_->stop || *impl_->stop == StopReason::length) impl_->stop = StopReason::cancelled;
}

// ---- feeding ------------------------------------------------------------------------------------------------------

// The last half of a full context becomes a text of its own.
void Generator::Impl::start_over(Session& s) {
  base = known.size() - static_cast<size_t>(s.ctx() / 2) - 1;
  s.clear();
}

// Leaves the session with a prefix of the text, of which at least one token is still to be computed.
void Generator::Impl::match(Session& s) {
  if (held().size() > static_cast<size_t>(s.ctx()) && options.on_full == OnFull::recompute) {
    start_over(s);
    ++recomputed;
  }
  const auto text = held(), theirs = s.tokens();
  const auto same =
      static_cast<int>(std::mismatch(theirs.begin(), theirs.end(), text.begin(), text.end()).first - theirs.begin());
  const int most = s.computed() < static_cast<int>(text.size()) ? same : static_cast<int>(text.size()) - 1;
  const int keep = std::min(same, most);
  if (keep < s.pos() && !s.truncate(keep)) s.clear();
}

Feed Generator::next(Session& session, int most) {
  Impl& g = *impl_;
  g.match(session);
  g.session = &session;
  if (g.to_prefill < 0) {
    g.to_prefill = static_cast<int>(g.held().size()) - session.computed();
    g.start = now_seconds();
  }
  // Tokens that the session knows and has not computed are fed again, as many as there is room for.
  if (session.pos() - session.computed() >= most && !session.recomputes()) (void)session.truncate(session.computed());
  const int room = std::max(1, most - (session.pos() - session.computed()));
  const auto rest = g.held().subspan(static_cast<size_t>(session.pos()));
  const auto part = rest.first(std::min(rest.size(), static_cast<size_t>(room)));
  g.fed.assign(part.begin(), part.end());
  g.guesses = 0;
  g.wants_rows = part.size() == rest.size();
  if (!g.wants_rows) return {&session, g.fed, Logits::none};
  if (g.options.lookup > 0 && part.size() == 1 && !g.generated().empty()) g.guess();
  return {&session, g.fed, g.guesses > 0 ? Logits::all : Logits::last};
}

// As many as may be taken back, fit the context, and could be wanted.
void Generator::Impl::guess() {
  int most = std::min({options.lookup, session->can_take_back(), session->ctx() - session->pos() - 1});
  if (options.max_tokens > 0) most = std::min(most, options.max_tokens - static_cast<int>(generated().size()) - 1);
  if (most <= 0) return;
  const auto followed = what_followed(held(), static_cast<size_t>(most));
  fed.insert(fed.end(), followed.begin(), followed.end());
  guesses = followed.size();
  guessed += static_cast<int>(guesses);
}

// ---- choosing -----------------------------------------------------------------------------------------------------

// Rejected guesses are truncated, so that the session equals one that was decoded without them.
Result<Event> Generator::take(std::span<const float> rows) {
  Impl& g = *impl_;
  Event event;
  if (!g.wants_rows) return event;
  if (!g.sink) KVASIR_CHECK(g.begin());
  const size_t vocab = static_cast<size_t>(g.model->info().vocab), n = rows.size() / vocab;
  if (n != g.guesses + 1)
    return fail(Error::bad_argument, fmt::format("{} rows of logits, next() asked for {}", n, g.guesses + 1),
                "Generator::take", "the rows of this generator's own feed");
  const size_t before = g.held().size();
  size_t right = 0;  // guesses
  for (;; ++right) {
    KVASIR_CHECK(g.choose(rows.subspan(right * vocab, vocab), &event));
    if (g.stop || right + 1 == n || g.known.back() != g.fed[g.fed.size() - g.guesses + right]) break;
  }
  g.accepted += static_cast<int>(right);
  if (right < g.guesses) KVASIR_CHECK(g.session->truncate(static_cast<int>(before + right)));
  if (g.stop) KVASIR_CHECK(g.end());
  event.text = g.sink->news();
  event.stop = g.stop;
  return event;
}

Result<void> Generator::Impl::begin() {
  prefilled = now_seconds();
  sink.emplace(*model, held(), options.stop);
  if (options.receipt) {
    KVASIR_TRY(receipt, Receipt::start(*model, session->cache_stats(), held()));
  }
  return {};
}

Result<void> Generator::Impl::choose(std::span<const float> row, Event* event) {
  const int position = static_cast<int>(held().size());
  const size_t prompt = text_tokens > base ? text_tokens - base : 0;
  KVASIR_TRY(const int id, sample(row, options.sampling,
                                  {.recent = held(),
                                   .prompt_tokens = prompt,
                                   .position = position,
                                   .choice = choice,
                                   .constraint = constraint.get()}));
  if (first == 0) first = now_seconds();
  if (constraint.get() != nullptr) constraint.get()->accept(id);
  if (receipt) receipt->add(row, id);
  event->ids.push_back(id);
  if (options.logprobs >= 0) {
    logprobs.push_back(logprobs_of(row, id, static_cast<size_t>(options.logprobs)));
    event->logprobs.push_back(logprobs.back());
  }
  known.push_back(id);
  const bool full = position == session->ctx() && options.on_full == OnFull::stop;
  if (ends(id)) return {};
  if (static_cast<int>(generated().size()) == options.max_tokens || full) stop = StopReason::length;
  return {};
}

// By the token itself or by the text that it completes.
bool Generator::Impl::ends(int id) {
  if (!options.ignore_eos && contains(model->info().eos, id)) {
    stop = StopReason::eos;
    return true;
  }
  sink->push(id);
  if (sink->stopped() || (constraint.get() != nullptr && constraint.get()->done())) stop = StopReason::stop;
  return stop.has_value();
}

// The token chosen last belongs to the session, which computes it when it goes on.
Result<void> Generator::Impl::end() {
  if (receipt) KVASIR_CHECK(model->fingerprint());  // it still is what the receipt began with
  sink->finish();
  if (sink->stopped()) stop = StopReason::stop;
  if (session->pos() < session->ctx()) return session->append(std::span(known).last(1));
  if (options.on_full == OnFull::stop) return {};
  start_over(*session);
  return session->append(held());
}

Generation Generator::result() const {
  const Impl& g = *impl_;
  Generation out;
  if (g.sink) out.text = g.sink->text();
  out.tokens.assign(g.generated().begin(), g.generated().end());
  out.prompt_tokens = static_cast<int>(g.text_tokens);
  out.guessed = g.guessed;
  out.accepted = g.accepted;
  out.recomputed = g.recomputed;
  if (g.stop) out.stop_reason = *g.stop;
  out.logprobs = g.logprobs;
  if (g.receipt) out.receipt = g.receipt->hex();
  out.stats.ttft_ms = (g.first - g.start) * 1e3;
  out.stats.prefill_tok_s = g.to_prefill / (g.prefilled - g.start);
  if (out.tokens.size() > 1)
    out.stats.decode_tok_s = static_cast<double>(out.tokens.size() - 1) / (now_seconds() - g.first);
  return out;
}

}  // namespace kvasir
