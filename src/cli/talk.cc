// Turns as ids.
#include "cli/talk.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"

namespace kvasir::cli {
namespace {

// How many of the generated tokens spell no more than `text`, whose end a text of --stop decided.
size_t tokens_of(const std::shared_ptr<const Tokenizer>& tokenizer, std::span<const int> context, const Generation& g) {
  StreamDecoder decoder(tokenizer);
  for (const int id : context.last(std::min<size_t>(4, context.size()))) (void)decoder.push(id);
  std::string so_far;
  size_t kept = 0;
  for (size_t i = 0; i < g.tokens.size(); ++i) {
    const std::string piece = decoder.push(g.tokens[i]);
    so_far += piece;
    if (so_far.size() > g.text.size()) break;
    if (!piece.empty() || so_far.size() < g.text.size()) kept = i + 1;
  }
  return kept;
}

// The text that `kept` tokens leave of an answer.
std::string text_after(const std::shared_ptr<const Tokenizer>& tokenizer, std::span<const int> context,
                       const Generation& g, size_t kept) {
  StreamDecoder decoder(tokenizer);
  for (const int id : context.last(std::min<size_t>(4, context.size()))) (void)decoder.push(id);
  size_t bytes = 0;
  for (size_t i = 0; i < kept; ++i) bytes += decoder.push(g.tokens[i]).size();
  return g.text.substr(std::min(bytes, g.text.size()));
}

}  // namespace

Talk::Talk(Engine& engine, Session session, TalkOptions options)
    : engine_(engine), session_(std::move(session)), o_(std::move(options)) {
  o_.generate.whole_text = true;
  o_.generate.on_full = o_.on_full == OnFullTalk::recompute ? OnFull::recompute : OnFull::stop;
}

void Talk::clear() {
  session_.clear();
  ids_.clear();
}

std::string Talk::text() const {
  std::string text = visible_text(engine_.model().tokenizer(), ids_);
  const bool own_space = !ids_.empty() && text.starts_with(' ') && !tokenizer().is_special(ids_[0]) &&
                         tokenizer().decode(std::span(ids_).first(1)).value_or("") != tokenizer().token_text(ids_[0]);
  return own_space ? text.substr(1) : text;
}

// The text that a talk begins with is encoded apart, whatever is said first.
Result<void> Talk::begin() {
  if (!ids_.empty() || o_.system.empty()) return {};
  KVASIR_TRY(ids_, tokenizer().encode(o_.system));
  return {};
}

// `turn` of the ids asked are new, and an answer takes one more. Recomputing keeps the last half of the context, and
// all of the turn.
Result<void> Talk::make_room(std::vector<int>* asked, size_t turn, Answer* answer) const {
  const auto ctx = static_cast<size_t>(session_.ctx());
  if (asked->size() < ctx) return {};
  if (o_.on_full == OnFullTalk::recompute && turn < ctx) {
    const size_t kept = std::max(ctx / 2, turn);
    answer->dropped = static_cast<int>(asked->size() - kept);
    asked->erase(asked->begin(), asked->end() - static_cast<std::ptrdiff_t>(kept));
    return {};
  }
  const int most = engine_.model().info().max_ctx;
  std::string hint =
      turn >= ctx ? "a shorter turn" : "/save FILE keeps the talk, /clear starts a new one, /again then asks this turn";
  if (session_.ctx() < most) hint += fmt::format("; or kvasir chat --ctx {}", most);
  if (turn < ctx) hint += "; or kvasir chat --on-full recompute";
  return fail(Error::too_long,
              fmt::format("the talk would have {} tokens with this turn, and the context has {}", asked->size(), ctx),
              "the context is full", hint);
}

// The token chosen last is fed with the next turn, or saved: where the context ends the talk, it has to fit too.
GenerateOptions Talk::options_for(size_t asked) const {
  GenerateOptions options = o_.generate;
  const int room = session_.ctx() - static_cast<int>(asked);
  if (o_.on_full == OnFullTalk::stop && (options.max_tokens < 0 || options.max_tokens > room))
    options.max_tokens = room;
  return options;
}

// In pieces, so that Ctrl-C need not wait for all of them. A cache that holds nothing would compute them again and
// again.
Result<void> Talk::feed(std::span<const int> ids) {
  FeedOutput out;
  const auto piece = static_cast<size_t>(o_.piece);
  while (!session_.recomputes() && ids.size() - static_cast<size_t>(session_.pos()) > piece) {
    if (o_.interrupted()) break;
    KVASIR_CHECK(engine_.prefill(session_, ids.subspan(static_cast<size_t>(session_.pos()), piece), &out));
  }
  if (o_.interrupted()) return fail(Error::bad_argument, "the turn is not part of the talk", "interrupted", "/again");
  return {};
}

Result<Answer> Talk::ask(const std::string& line) {
  Answer answer;
  KVASIR_CHECK(begin());
  const std::string turn = (ids_.empty() ? "" : "\n") + o_.user + line + "\n" + o_.assistant;
  KVASIR_TRY(const std::vector<int> more, encode_after(tokenizer(), ids_, turn));
  std::vector<int> asked = ids_;
  asked.insert(asked.end(), more.begin(), more.end());
  if (asked.empty()) return fail(Error::bad_argument, "the turn has no tokens", "chat", "another text");
  KVASIR_CHECK(make_room(&asked, more.size(), &answer));
  const double start = now_seconds();
  KVASIR_TRY(const Reuse reuse, engine_.reuse(session_, asked));
  KVASIR_CHECK(feed(asked));
  const double fed = now_seconds();
  const GenerateOptions options = options_for(asked.size());
  KVASIR_TRY(const Generation g, generate(engine_, session_, asked, options));
  answer.prompt_tokens = static_cast<int>(asked.size());
  answer.reused = reuse.tokens;
  answer.differs = reuse.differs;
  answer.ttft_ms = (fed - start) * 1e3 + g.stats.ttft_ms;
  answer.decode_tok_s = g.stats.decode_tok_s;
  answer.full =
      g.stop_reason == StopReason::length && asked.size() + g.tokens.size() == static_cast<size_t>(session_.ctx());
  KVASIR_CHECK(keep(g));
  return answer;
}

// The end of an answer is no part of it. A token that reaches over that end leaves its text before.
Result<void> Talk::keep(const Generation& g) {
  ids_.assign(session_.tokens().begin(), session_.tokens().end());
  const auto& shared = engine_.model().tokenizer();
  const auto context = std::span<const int>(ids_).first(ids_.size() - std::min(ids_.size(), g.tokens.size()));
  size_t kept = g.tokens.size();
  if (g.stop_reason == StopReason::eos) --kept;
  if (g.stop_reason != StopReason::stop) {
    ids_.resize(ids_.size() - (g.tokens.size() - kept));
    return {};
  }
  kept = tokens_of(shared, context, g);
  const std::string rest = text_after(shared, context, g, kept);
  ids_.resize(ids_.size() - (g.tokens.size() - kept));
  KVASIR_TRY(const std::vector<int> more, encode_after(tokenizer(), ids_, rest));
  ids_.insert(ids_.end(), more.begin(), more.end());
  return {};
}

Result<void> Talk::save(const std::string& path) {
  KVASIR_CHECK(begin());
  if (!ids_.empty()) {
    KVASIR_CHECK(engine_.reuse(session_, ids_));
    FeedOutput out;
    KVASIR_CHECK(engine_.prefill(session_, std::span(ids_).subspan(static_cast<size_t>(session_.pos())), &out));
  }
  return session_.save(path);
}

Result<void> Talk::load(const std::string& path) {
  KVASIR_CHECK(session_.load(path));
  ids_.assign(session_.tokens().begin(), session_.tokens().end());
  return {};
}

}  // namespace kvasir::cli
