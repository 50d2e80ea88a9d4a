// Turns of a conversation as token ids.
#include "cli/conversation.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "cli/conversation_file.h"

namespace kvasir::cli {
namespace {

// The number of leading generated tokens that lie wholly within g.text, which ends before a stop string.
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

// The rest of an answer's text after its first `kept` tokens.
std::string text_after(const std::shared_ptr<const Tokenizer>& tokenizer, std::span<const int> context,
                       const Generation& g, size_t kept) {
  StreamDecoder decoder(tokenizer);
  for (const int id : context.last(std::min<size_t>(4, context.size()))) (void)decoder.push(id);
  size_t bytes = 0;
  for (size_t i = 0; i < kept; ++i) bytes += decoder.push(g.tokens[i]).size();
  return g.text.substr(std::min(bytes, g.text.size()));
}

std::vector<Message> messages_of(const std::string& system, std::span<const Turn> turns, const std::string& asked) {
  std::vector<Message> messages;
  if (!system.empty()) messages.push_back({.role = "system", .content = system});
  for (const Turn& turn : turns) {
    messages.push_back({.role = "user", .content = turn.user});
    messages.push_back({.role = "assistant", .content = turn.answer});
  }
  messages.push_back({.role = "user", .content = asked});
  return messages;
}

}  // namespace

Conversation::Conversation(Engine& engine, Session session, ConversationFormat format, ConversationOptions options)
    : engine_(engine), session_(std::move(session)), format_(std::move(format)), o_(std::move(options)) {
  o_.generate.whole_text = true;
  o_.generate.on_full = o_.on_full == OnFullContext::recompute ? OnFull::recompute : OnFull::stop;
  for (std::string& stop : format_.stops()) o_.generate.stop.push_back(std::move(stop));
}

void Conversation::clear() {
  session_.clear();
  turns_.clear();
  totals_ = {};
}

std::string Conversation::text() const {
  if (format_.is_plain()) return turns_.empty() ? o_.system : turns_.back().held.text;
  std::string text;
  for (const Turn& turn : turns_) text += fmt::format("{}> {}\n{}", text.empty() ? "" : "\n", turn.user, turn.answer);
  return text;
}

// With plain turns the system text is encoded by itself, so that its ids do not depend on the first turn.
Result<Held> Conversation::beginning() const {
  Held held;
  if (!format_.is_plain() || o_.system.empty()) return held;
  KVASIR_TRY(held.ids, tokenizer().encode(o_.system));
  held.text = o_.system;
  return held;
}

// The longest held prefix of `text` among the first `turns` turns.
Result<Held> Conversation::held_of(std::string_view text, size_t turns) const {
  for (size_t i = turns; i-- > 0;)
    if (text.starts_with(turns_[i].held.text)) return turns_[i].held;
  KVASIR_TRY(Held held, beginning());
  return text.starts_with(held.text) ? held : Held();
}

// Shortens a prompt that fills the context. `turn`: number of ids of the new turn, at the end. OnFullContext::recompute
// keeps the last half of the context, at least the whole turn.
Result<void> Conversation::make_room(std::vector<int>* ids, size_t turn, const Asked& asked, Answer* answer) const {
  const auto ctx = static_cast<size_t>(session_.ctx());
  if (o_.on_full == OnFullContext::recompute && turn < ctx) {
    const size_t kept = std::max(ctx / 2, turn);
    answer->dropped = static_cast<int>(ids->size() - kept);
    ids->erase(ids->begin(), ids->end() - static_cast<std::ptrdiff_t>(kept));
    return {};
  }
  const int most = engine_.model().info().max_ctx;
  std::string hint = turn >= ctx ? "a shorter turn" : "/save FILE saves the conversation, /clear starts a new one";
  if (turn < ctx && asked.before == turns_.size()) hint += ", /regen then asks this turn";
  if (session_.ctx() < most) hint += fmt::format("; or kvasir chat --ctx {}", most);
  if (turn < ctx) hint += "; or kvasir chat --on-full recompute";
  return fail(
      Error::too_long,
      fmt::format("the conversation would have {} tokens with this turn, and the context has {}", ids->size(), ctx),
      "the context is full", hint);
}

// The whole prompt of an answer: its text and ids.
Result<Held> Conversation::prompt(const Asked& asked, Answer* answer) const {
  const auto before = std::span(turns_).first(asked.before);
  KVASIR_TRY(const ChatText text, format_.prompt(messages_of(o_.system, before, asked.text)));
  KVASIR_TRY(Held held, held_of(text.text, asked.before));
  const size_t known = held.text.size();
  KVASIR_TRY(const std::vector<int> more, format_.encode(tokenizer(), held.ids, text, known));
  held.ids.insert(held.ids.end(), more.begin(), more.end());
  held.text = text.text;
  if (held.ids.empty()) return fail(Error::bad_argument, "the turn has no tokens", "chat", "another text");
  if (held.ids.size() < static_cast<size_t>(session_.ctx())) return held;
  size_t turn = more.size();
  const size_t at = text.text.rfind(asked.text);
  const bool anew = !before.empty() && known != before.back().held.text.size();
  if (anew && at != std::string::npos && at > known) {  // earlier turns were encoded again too
    KVASIR_TRY(const std::vector<int> last, format_.encode(tokenizer(), {}, text, at));
    turn = std::min(turn, last.size());
  }
  KVASIR_CHECK(make_room(&held.ids, turn, asked, answer));
  return held;
}

// With OnFullContext::stop the last chosen token must fit the context too, since the next turn or /save feeds it.
GenerateOptions Conversation::options_for(size_t prompt_tokens, int tries) const {
  GenerateOptions options = o_.generate;
  options.sampling.seed += static_cast<uint64_t>(tries);
  const int room = session_.ctx() - static_cast<int>(prompt_tokens);
  if (o_.on_full == OnFullContext::stop && (options.max_tokens < 0 || options.max_tokens > room))
    options.max_tokens = room;
  return options;
}

// Prefills in pieces, so that Ctrl-C takes effect between them. Not with a layout that recomputes, which would compute
// the earlier pieces again each time. `replaces`: the answer would replace an earlier turn.
Result<void> Conversation::feed(std::span<const int> ids, bool replaces) {
  FeedOutput out;
  const auto piece = static_cast<size_t>(o_.piece);
  while (!session_.recomputes() && ids.size() - static_cast<size_t>(session_.pos()) > piece) {
    if (o_.interrupted()) break;
    KVASIR_CHECK(engine_.prefill(session_, ids.subspan(static_cast<size_t>(session_.pos()), piece), &out));
  }
  if (!o_.interrupted()) return {};
  if (replaces) return fail(Error::bad_argument, "the conversation is unchanged", "interrupted");
  return fail(Error::bad_argument, "the turn is not part of the conversation", "interrupted", "/regen");
}

Result<Answer> Conversation::ask(const std::string& text) {
  return answer({.text = text, .before = turns_.size(), .tries = 0});
}

Result<Answer> Conversation::edit(const std::string& text) {
  return answer({.text = text, .before = turns_.size() - 1, .tries = 0});
}

Result<Answer> Conversation::regenerate() {
  return answer({.text = turns_.back().user, .before = turns_.size() - 1, .tries = turns_.back().tries + 1});
}

Result<Answer> Conversation::answer(const Asked& asked) {
  Answer answer;
  KVASIR_TRY(Held held, prompt(asked, &answer));
  const double start = now_seconds();
  KVASIR_TRY(const Reuse reuse, engine_.reuse(session_, held.ids));
  KVASIR_CHECK(feed(held.ids, asked.before < turns_.size()));
  const double fed = now_seconds();
  const GenerateOptions options = options_for(held.ids.size(), asked.tries);
  KVASIR_TRY(const Generation g, generate(engine_, session_, held.ids, options));
  answer.prompt_tokens = static_cast<int>(held.ids.size());
  answer.reused = reuse.tokens;
  answer.differs = reuse.differs;
  answer.ttft_ms = (fed - start) * 1e3 + g.stats.ttft_ms;
  answer.decode_tok_s = g.stats.decode_tok_s;
  answer.full =
      g.stop_reason == StopReason::length && held.ids.size() + g.tokens.size() == static_cast<size_t>(session_.ctx());
  answer.receipt = g.receipt;
  totals_.prompt_tokens += answer.prompt_tokens;
  totals_.reused += answer.reused;
  KVASIR_TRY(held.ids, ids_after(g));
  held.text += g.text;
  turns_.resize(asked.before);
  turns_.push_back({.user = asked.text, .answer = g.text, .held = std::move(held), .tries = asked.tries});
  return answer;
}

// The ids of the conversation after an answer, without the end-of-text token or stop string. A token that crosses that
// end is replaced by the tokens of its text before the end.
Result<std::vector<int>> Conversation::ids_after(const Generation& g) const {
  std::vector<int> ids(session_.tokens().begin(), session_.tokens().end());
  const auto& shared = engine_.model().tokenizer();
  const auto context = std::span<const int>(ids).first(ids.size() - std::min(ids.size(), g.tokens.size()));
  size_t kept = g.tokens.size();
  if (g.stop_reason == StopReason::eos) --kept;
  if (g.stop_reason != StopReason::stop) {
    ids.resize(ids.size() - (g.tokens.size() - kept));
    return ids;
  }
  kept = tokens_of(shared, context, g);
  const std::string rest = text_after(shared, context, g, kept);
  ids.resize(ids.size() - (g.tokens.size() - kept));
  KVASIR_TRY(const std::vector<int> more, encode_after(tokenizer(), ids, rest));
  ids.insert(ids.end(), more.begin(), more.end());
  return ids;
}

Result<void> Conversation::save(const std::string& path) {
  KVASIR_TRY(const Held begun, beginning());
  const std::vector<int>& ids = turns_.empty() ? begun.ids : turns_.back().held.ids;
  if (ids.empty()) {
    session_.clear();
  } else {
    KVASIR_CHECK(engine_.reuse(session_, ids));
    FeedOutput out;
    KVASIR_CHECK(engine_.prefill(session_, std::span(ids).subspan(static_cast<size_t>(session_.pos())), &out));
  }
  KVASIR_CHECK(session_.save(path));
  return write_conversation(conversation_path(path), {.system = o_.system, .turns = turns_});
}

Result<void> Conversation::load(const std::string& path) {
  KVASIR_TRY(SavedConversation saved, read_conversation(conversation_path(path), engine_.model().info().vocab));
  KVASIR_CHECK(session_.load(path));
  if (!saved.turns.empty() && !std::ranges::equal(session_.tokens(), saved.turns.back().held.ids)) {
    session_.clear();  // the next answer computes it again
    return fail(Error::damaged, fmt::format("{} is of another conversation", conversation_path(path)), path,
                "two files that one /save wrote");
  }
  o_.system = std::move(saved.system);
  turns_ = std::move(saved.turns);
  totals_ = {};
  return {};
}

}  // namespace kvasir::cli
