// One sequence while it is generated: sampling, stopping, draft tokens, the receipt.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <kvasir/generate.h>

#include "base/clock.h"
#include "engine/text_sink.h"

namespace kvasir {
namespace {

bool contains(const std::vector<int>& ids, int id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

// Prompt lookup decoding: up to `most` tokens that followed the last earlier occurrence of the text's last three
// tokens, or else of its last two.
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
      return fail(Error::bad_argument, "an empty stop string", "GenerateOptions::stop",
                  "a text of at least one character");
    if (model.tokenizer() == nullptr)
      return fail(Error::bad_argument, "this model has no tokenizer, so stop strings cannot be matched",
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
  // A clone of the caller's constraint that follows this sequence alone, or none. Copying clones the state.
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
  std::vector<int> known;      // the given tokens, then the chosen ones
  size_t text_tokens = 0;      // number of given tokens in `known`
  size_t resumed = 0;          // number of chosen tokens that another generator chose
  size_t witnessed = 0;        // number of resumed tokens whose logits are in the receipt; all, if there is no receipt
  size_t base = 0;             // where the part of `known` that a session holds begins
  std::vector<int> fed;        // tokens of the last next(), draft tokens at the end
  size_t guesses = 0;          // number of draft tokens in `fed`
  size_t rows = 0;             // number of rows of logits that next() asked for
  Session* session = nullptr;  // from next() to take()
  OwnConstraint constraint;
  std::optional<TextSink> sink;
  std::optional<Receipt> receipt;
  std::vector<TokenLogprob> logprobs;
  std::optional<StopReason> stop;
  int guessed = 0, accepted = 0, recomputed = 0;
  int to_prefill = -1;  // tokens that the first session had to compute
  double start = 0, prefilled = 0, first = 0;

  std::span<const int> held() const { return std::span(known).subspan(base); }
  std::span<const int> generated() const { return std::span(known).subspan(text_tokens); }
  // Whether logits of resumed tokens are still missing in the receipt.
  bool replays() const { return witnessed < resumed; }

  void start_over(Session& s);
  void match(Session& s);
  size_t wanted_from() const;
  void guess(std::span<const int> given, int room);
  Result<void> resume(std::span<const int> ids);
  Result<void> accept(int id);
  SamplingParams without_end() const;
  Result<void> begin();
  void witness(std::span<const float> row);
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
  if (options.min_tokens < 0)
    return fail(Error::bad_argument, fmt::format("at least {} tokens", options.min_tokens),
                "GenerateOptions::min_tokens", "0 or more");
  KVASIR_CHECK(model.check_ids(options.stop_ids, "GenerateOptions::stop_ids"));
  if (options.lookup < 0)
    return fail(Error::bad_argument, fmt::format("{} draft tokens", options.lookup), "GenerateOptions::lookup",
                "0 or more");
  if (options.logprobs < -1)
    return fail(Error::bad_argument, fmt::format("{} log probabilities", options.logprobs), "GenerateOptions::logprobs",
                "0 or more, or -1 for none");
  return check_stops(model, options);
}

Result<Generator> Generator::create(std::shared_ptr<const Model> model, std::vector<int> text, GenerateOptions options,
                                    int choice, std::span<const int> resume) {
  KVASIR_CHECK(check(*model, options));
  if (text.empty())
    return fail(Error::bad_argument, "the prompt is empty", "Generator::prompt", "a prompt of at least one token");
  KVASIR_CHECK(model->check_ids(text, "Generator::prompt"));
  // Computed before anything is fed, so that a failure changes nothing and its time is not part of the TTFT.
  if (options.receipt) KVASIR_CHECK(model->fingerprint());
  auto impl = std::make_unique<Impl>();
  impl->model = std::move(model);
  impl->text_tokens = text.size();
  impl->known = std::move(text);
  impl->choice = choice;
  impl->constraint = Impl::OwnConstraint(options.constraint.get());
  impl->options = std::move(options);
  impl->sink.emplace(*impl->model, impl->known, impl->options.stop, impl->options.include_stop);
  KVASIR_CHECK(impl->resume(resume));
  return Generator(std::move(impl));
}

// Restores the state as if these tokens had been chosen here. The logits that a receipt needs come with the passes.
Result<void> Generator::Impl::resume(std::span<const int> ids) {
  KVASIR_CHECK(model->check_ids(ids, "Generator::resume"));
  if (!ids.empty() && options.on_full == OnFull::recompute)
    return fail(Error::bad_argument, "tokens do not show where a full context was recomputed", "Generator::resume",
                "GenerateOptions::on_full = stop");
  for (const int id : ids) {
    if (stop)
      return fail(Error::bad_argument, fmt::format("the text ended before token {} of those to resume", resumed),
                  "Generator::resume", "the tokens that were generated, as they came");
    KVASIR_CHECK(accept(id));
    known.push_back(id);
    ++resumed;
    if (!ends(id) && static_cast<int>(resumed) == options.max_tokens) stop = StopReason::length;
  }
  (void)sink->news();
  witnessed = options.receipt ? 0 : resumed;
  return {};
}

// Advances the constraint by a resumed token. Errors: the constraint forbids it.
Result<void> Generator::Impl::accept(int id) {
  Constraint* const rules = constraint.get();
  if (rules == nullptr) return {};
  std::vector<uint64_t> mask((static_cast<size_t>(model->info().vocab) + 63) / 64);
  rules->allow(mask);
  const auto bit = static_cast<size_t>(id);
  if ((mask[bit / 64] >> (bit % 64) & 1) == 0)
    return fail(Error::bad_argument, fmt::format("the constraint forbids token {} of those to resume", resumed),
                "Generator::resume", "the constraint and the tokens of one generation");
  rules->accept(id);
  return {};
}

Generator Generator::fork(int choice, Session& session) const {
  auto other = std::make_unique<Impl>(*impl_);
  other->choice = choice;
  other->session = &session;
  return Generator(std::move(other));
}

bool Generator::done() const { return impl_->stop && (!impl_->replays() || *impl_->stop == StopReason::cancelled); }
std::optional<StopReason> Generator::stop_reason() const { return impl_->stop; }
std::span<const int> Generator::tokens() const { return impl_->known; }
std::span<const int> Generator::generated() const { return impl_->generated(); }

void Generator::cancel() {
  if (!impl_->stop || *impl_->stop == StopReason::length) impl_->stop = StopReason::cancelled;
}

// ---- feeding ------------------------------------------------------------------------------------------------------

// Recomputes a full context: its last half becomes the text of an emptied session.
void Generator::Impl::start_over(Session& s) {
  base = known.size() - static_cast<size_t>(s.ctx() / 2) - 1;
  s.clear();
}

// Truncates the session to its common prefix with the text, so that the logits needed next are still to be computed.
void Generator::Impl::match(Session& s) {
  if (held().size() > static_cast<size_t>(s.ctx()) && options.on_full == OnFull::recompute) {
    start_over(s);
    ++recomputed;
  }
  const auto text = held(), theirs = s.tokens();
  const auto same =
      static_cast<int>(std::mismatch(theirs.begin(), theirs.end(), text.begin(), text.end()).first - theirs.begin());
  const auto first_row = static_cast<int>(wanted_from());
  const int most = s.computed() <= first_row && !replays() ? same : first_row;
  const int keep = std::min(same, most);
  if (keep < s.pos() && !s.truncate(keep)) s.clear();
}

int Generator::lacks(const Session& session) const {
  const auto all = static_cast<int>(impl_->held().size());
  if (all > session.ctx() && impl_->options.on_full == OnFull::recompute) return session.ctx() / 2 + 1;
  return std::max(1, all - session.computed());
}

// The position of the first row of logits that has not been used.
size_t Generator::Impl::wanted_from() const { return replays() ? text_tokens - 1 + witnessed : held().size() - 1; }

Feed Generator::next(Session& session, int most, std::span<const int> guesses) {
  Impl& g = *impl_;
  g.match(session);
  g.session = &session;
  if (g.to_prefill < 0) {
    g.to_prefill = static_cast<int>(g.held().size()) - session.computed();
    g.start = now_seconds();
  }
  // If the session has `most` or more uncomputed tokens, they are removed and fed again in parts.
  if (session.pos() - session.computed() >= most && !session.recomputes()) (void)session.truncate(session.computed());
  const int room = std::max(1, most - (session.pos() - session.computed()));
  const auto first = static_cast<size_t>(session.pos()), wanted = g.wanted_from();
  // A feed returns logits of its last token or of all: tokens before the first wanted row need a feed of their own.
  const size_t end = g.replays() && first < wanted ? wanted : g.held().size() - (g.stop ? 1 : 0);
  const auto rest = g.held().subspan(first, end - first);
  const auto part = rest.first(std::min(rest.size(), static_cast<size_t>(room)));
  g.fed.assign(part.begin(), part.end());
  g.guesses = 0;
  if (g.replays())
    g.rows = first < wanted ? 0 : part.size();
  else
    g.rows = part.size() == rest.size() ? 1 : 0;
  if (g.rows == 0) return {&session, g.fed, Logits::none};
  if (part.size() == 1 && !g.replays() && !g.generated().empty() && most > 1) g.guess(guesses, most - 1);
  g.rows += g.guesses;
  return {&session, g.fed, g.rows > 1 ? Logits::all : Logits::last};
}

// Appends draft tokens: at most as many as can be truncated again, fit the context, and may still be generated.
void Generator::Impl::guess(std::span<const int> given, int room) {
  const int wanted = given.empty() ? options.lookup : static_cast<int>(given.size());
  int most = std::min({wanted, room, session->can_take_back(), session->ctx() - session->pos() - 1});
  if (options.max_tokens > 0) most = std::min(most, options.max_tokens - static_cast<int>(generated().size()) - 1);
  if (most <= 0) return;
  const auto followed =
      given.empty() ? what_followed(held(), static_cast<size_t>(most)) : given.first(static_cast<size_t>(most));
  fed.insert(fed.end(), followed.begin(), followed.end());
  guesses = followed.size();
  guessed += static_cast<int>(guesses);
}

// ---- choosing -----------------------------------------------------------------------------------------------------

// Rejected draft tokens are truncated, so that the session equals one decoded without them.
Result<Event> Generator::take(std::span<const float> rows) {
  Impl& g = *impl_;
  Event event;
  if (g.rows == 0) return event;
  if (g.prefilled == 0) KVASIR_CHECK(g.begin());
  const size_t vocab = static_cast<size_t>(g.model->info().vocab), n = rows.size() / vocab;
  if (n != g.rows)
    return fail(Error::bad_argument, fmt::format("{} rows of logits, next() asked for {}", n, g.rows),
                "Generator::take", "the rows of this generator's own feed");
  size_t row = 0;
  for (; row < n && g.replays(); ++row) g.witness(rows.subspan(row * vocab, vocab));
  if (row == n) {
    if (!g.stop || g.replays()) return event;
    KVASIR_CHECK(g.end());  // the resumed tokens are a complete answer
    event.stop = g.stop;
    return event;
  }
  const size_t before = g.held().size();
  size_t right = 0;  // accepted draft tokens
  for (;; ++right, ++row) {
    KVASIR_CHECK(g.choose(rows.subspan(row * vocab, vocab), &event));
    if (g.stop || row + 1 == n || g.known.back() != g.fed[g.fed.size() - g.guesses + right]) break;
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
  if (options.receipt) {
    KVASIR_TRY(receipt, Receipt::start(*model, session->cache_stats(), std::span(known).first(text_tokens)));
  }
  return {};
}

void Generator::Impl::witness(std::span<const float> row) {
  receipt->add(row, known[text_tokens + witnessed]);
  ++witnessed;
}

Result<void> Generator::Impl::choose(std::span<const float> row, Event* event) {
  const int position = static_cast<int>(held().size());
  const size_t prompt = text_tokens > base ? text_tokens - base : 0;
  SamplingParams no_end;
  const bool may_end = static_cast<int>(generated().size()) >= options.min_tokens;
  if (!may_end) no_end = without_end();
  KVASIR_TRY(const int id, sample(row, may_end ? options.sampling : no_end,
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

// Sampling parameters under which no token can end the text.
SamplingParams Generator::Impl::without_end() const {
  SamplingParams params = options.sampling;
  constexpr float kBan = -100;
  for (const int id : options.stop_ids) params.logit_bias[id] = kBan;
  if (!options.ignore_eos)
    for (const int id : model->info().eos) params.logit_bias[id] = kBan;
  return params;
}

// Whether this token ends the text, by its id, by a stop string that it completes, or by the constraint.
bool Generator::Impl::ends(int id) {
  if (contains(options.stop_ids, id) || (!options.ignore_eos && contains(model->info().eos, id))) {
    stop = StopReason::eos;
    return true;
  }
  sink->push(id);
  if (sink->stopped() || (constraint.get() != nullptr && constraint.get()->done())) stop = StopReason::stop;
  return stop.has_value();
}

// Appends the token chosen last to the session, which computes it when it continues.
Result<void> Generator::Impl::end() {
  if (receipt) KVASIR_CHECK(model->fingerprint());  // fails if the files changed since the receipt began
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
  out.text = g.sink->text();
  out.stop_text = g.sink->stop_text();
  out.tokens.assign(g.generated().begin(), g.generated().end());
  out.prompt_tokens = static_cast<int>(g.text_tokens);
  out.guessed = g.guessed;
  out.accepted = g.accepted;
  out.recomputed = g.recomputed;
  if (g.stop) out.stop_reason = *g.stop;
  out.logprobs = g.logprobs;
  if (g.receipt && !g.replays()) out.receipt = g.receipt->hex();
  out.stats.ttft_ms = (g.first - g.start) * 1e3;
  if (g.prefilled > g.start) out.stats.prefill_tok_s = g.to_prefill / (g.prefilled - g.start);
  if (out.tokens.size() > 1)
    out.stats.decode_tok_s = static_cast<double>(out.tokens.size() - 1) / (now_seconds() - g.first);
  return out;
}

}  // namespace kvasir
