// Keeping draft sessions in step with their sequences, and drafting greedily.
#include "sched/draft.h"

#include <algorithm>

#include <fmt/format.h>

#include <kvasir/sampling.h>

namespace kvasir::sched {
namespace {

Result<void> check_vocabulary(const Model& large, const Model& small) {
  const auto refuse = [&](const std::string& what) {
    return fail(Error::bad_argument, what, "SchedulerOptions::draft", "a smaller model of the same family");
  };
  if (large.info().vocab != small.info().vocab)
    return refuse(fmt::format("the draft model has {} tokens, the model {}", small.info().vocab, large.info().vocab));
  const auto &a = large.tokenizer(), &b = small.tokenizer();
  if (a == nullptr || b == nullptr) return {};
  for (int id = 0; id < std::min(a->vocab_size(), b->vocab_size()); ++id)
    if (a->piece(id) != b->piece(id))
      return refuse(fmt::format("token {} of the draft model differs from the model's", id));
  return {};
}

}  // namespace

Result<std::unique_ptr<Draft>> Draft::create(const Model& large, std::shared_ptr<const Model> small, int threads,
                                             const SessionOptions& session) {
  KVASIR_CHECK(check_vocabulary(large, *small));
  KVASIR_TRY(auto engine, Engine::create(std::move(small), {.threads = threads}));
  SessionOptions own = session;
  own.ctx = 0;
  own.window = 0;
  own.sinks = {};
  own.slide = false;
  return std::unique_ptr<Draft>(new Draft(std::move(engine), own));
}

// Returns the sequence's draft session, truncated to the prefix it has in common with the text. Null if there is no
// room.
Session* Draft::follow(const Ask& ask) {
  auto found = sessions_.find(ask.sequence);
  if (found == sessions_.end()) {
    auto opened = engine_->open_session(options_);
    if (!opened) return nullptr;
    found = sessions_.emplace(ask.sequence, std::move(*opened)).first;
  }
  Session& session = found->second;
  const auto had = session.tokens();
  const auto same = std::mismatch(had.begin(), had.end(), ask.text.begin(), ask.text.end()).first - had.begin();
  const int keep = std::min(static_cast<int>(same), static_cast<int>(ask.text.size()) - 1);
  if (keep < session.pos() && !session.truncate(keep)) session.clear();
  return ask.most > 0 && static_cast<int>(ask.text.size()) + ask.most <= session.ctx() ? &session : nullptr;
}

std::vector<std::vector<int>> Draft::guess(std::span<const Ask> asks) {
  std::vector<std::vector<int>> guesses(asks.size());
  std::vector<Session*> sessions;
  for (const Ask& ask : asks) sessions.push_back(follow(ask));
  for (;;) {
    std::vector<Feed> feeds;
    std::vector<size_t> of;
    for (size_t i = 0; i < asks.size(); ++i) {
      const auto had = static_cast<int>(guesses[i].size());
      if (sessions[i] == nullptr || had >= asks[i].most) continue;
      const auto tokens = had == 0 ? asks[i].text.subspan(static_cast<size_t>(sessions[i]->pos()))
                                   : std::span<const int>(guesses[i]).last(1);
      feeds.push_back({sessions[i], tokens});
      of.push_back(i);
    }
    PassOutput out;
    // Without memory or finite logits, drafting stops; the answer is the same.
    if (feeds.empty() || !engine_->step(feeds, &out)) return guesses;
    for (size_t i = 0; i < of.size(); ++i) {
      const auto likeliest = sample(out[i].logits, {.temperature = 0});
      if (likeliest)
        guesses[of[i]].push_back(*likeliest);
      else
        sessions[of[i]] = nullptr;  // its logits are not finite, or there are none
    }
  }
}

}  // namespace kvasir::sched
