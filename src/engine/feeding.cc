// The passes of one call, one after another.
#include "engine/feeding.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "engine/session_impl.h"

namespace kvasir {

Result<void> Feeding::check(const Model& model, std::span<const Feed> feeds) {
  std::vector<const Session*> sessions;
  for (const Feed& feed : feeds) {
    const Session& session = *feed.session;
    sessions.push_back(&session);
    if (feed.tokens.empty() && session.computed() == session.pos())
      return fail(Error::bad_argument, "no tokens to feed", "Generator::prompt", "a prompt that is not empty");
    KVASIR_CHECK(model.check_ids(feed.tokens, "Generator::prompt"));
    const size_t end = session.tokens().size() + feed.tokens.size();
    if (end > static_cast<size_t>(session.ctx()))
      return fail(Error::too_long, fmt::format("{} tokens do not fit the context of {}", end, session.ctx()),
                  "Generator::prompt", "a shorter prompt or a larger SessionOptions::ctx");
  }
  std::sort(sessions.begin(), sessions.end());
  if (std::adjacent_find(sessions.begin(), sessions.end()) != sessions.end())
    return fail(Error::bad_argument, "a session is fed twice in one step", "Feed::session",
                "one feed a session, with all its tokens");
  return {};
}

size_t Feeding::tokens_to_compute(std::span<const Feed> feeds) {
  size_t tokens = 0;
  for (const Feed& feed : feeds)
    tokens += static_cast<size_t>(feed.session->pos() - feed.session->computed()) + feed.tokens.size();
  return tokens;
}

Feeding::Feeding(Engine::Impl& engine, std::span<const Feed> feeds)
    : engine_(engine), feeds_(feeds), hidden_at_(feeds.size()), errors_(feeds.size()) {
  for (const Feed& feed : feeds) {
    before_.push_back(feed.session->pos());
    std::vector<int>& tokens = feed.session->impl().tokens;
    tokens.insert(tokens.end(), feed.tokens.begin(), feed.tokens.end());
  }
}

Result<void> Feeding::run(PassOutput* out) {
  Result<void> done = reserve();
  if (done) done = run_passes();
  for (size_t i = 0; i < feeds_.size(); ++i) {
    Session::Impl& session = feeds_[i].session->impl();
    if (!done && !errors_[i]) session.roll_back(before_[i]);
    session.cache->end_step();
  }
  return done ? give_rows(out) : done;
}

// Reserves all memory that the call needs before any pass runs: a long prompt grows its cache once, and a call that
// does not fit changes nothing.
Result<void> Feeding::reserve() {
  std::vector<std::unique_ptr<Layout::Growth>> growths;
  size_t rows = 0, states = 0;
  for (size_t i = 0; i < feeds_.size(); ++i) {
    Session::Impl& session = feeds_[i].session->impl();
    KVASIR_TRY(auto growth, session.prepare(session.pos()));
    growths.push_back(std::move(growth));
    rows += wanted_rows(i);
    hidden_at_[i] = states;
    if (feeds_[i].hidden) states += feeds_[i].tokens.size() * static_cast<size_t>(engine_.network->config().hidden);
  }
  KVASIR_CHECK(engine_.logits.reserve(rows * static_cast<size_t>(engine_.network->config().vocab)));
  KVASIR_CHECK(engine_.hidden.reserve(states));
  for (size_t i = 0; i < feeds_.size(); ++i) {
    Session::Impl& session = feeds_[i].session->impl();
    session.apply(std::move(growths[i]), session.pos());
  }
  return {};
}

Result<void> Feeding::run_passes() {
  const auto vocab = static_cast<size_t>(engine_.network->config().vocab);
  for (auto items = next_items(); !items.empty(); items = next_items()) {
    Network::Output pass{.logits = engine_.logits.data() + row_owners_.size() * vocab, .errors = {}};
    KVASIR_CHECK(engine_.network->forward(items, *engine_.compute, engine_.workspace, &pass));
    for (size_t i = 0; i < items.size(); ++i) {
      row_owners_.insert(row_owners_.end(), items[i].tokens.size() - static_cast<size_t>(items[i].wanted_from),
                         owners_[i]);
      if (pass.errors[i]) fail_feed(owners_[i], std::move(*pass.errors[i]));
    }
  }
  return {};
}

// Positions that a cache does not cover are computed again; for a layout that recomputes, these are all of them. Every
// session has at least one token in the pass. In order, sessions with more tokens share the rest of the chunk.
std::vector<BatchItem> Feeding::next_items() {
  std::vector<BatchItem> items;
  owners_.clear();
  const auto channels = static_cast<size_t>(engine_.network->config().hidden);
  int room = std::max(0, engine_.chunk - static_cast<int>(feeds_.size()));
  for (size_t i = 0; i < feeds_.size(); ++i) {
    const Session::Impl& session = feeds_[i].session->impl();
    Layout& cache = *session.cache;
    const int most = cache.info().drops_old ? std::min(1 + room, cache.shape().lookahead) : 1 + room;
    const int first = cache.coverage(), n = std::min(session.pos() - first, most);
    if (n == 0 || errors_[i]) continue;
    room -= n - 1;
    BatchItem item{.cache = &cache,
                   .first = first,
                   .tokens = std::span(session.tokens).subspan(static_cast<size_t>(first), static_cast<size_t>(n)),
                   .wanted_from = std::clamp(wanted_from(i) - first, 0, n)};
    if (feeds_[i].hidden) {
      item.hidden_from = std::clamp(before_[i] - first, 0, n);
      const auto row = static_cast<size_t>(std::max(first, before_[i]) - before_[i]);
      item.hidden = engine_.hidden.data() + hidden_at_[i] + row * channels;
    }
    items.push_back(item);
    owners_.push_back(i);
  }
  return items;
}

int Feeding::wanted_from(size_t i) const {
  const int end = before_[i] + static_cast<int>(feeds_[i].tokens.size());
  if (feeds_[i].logits == Logits::none) return end;
  return feeds_[i].logits == Logits::all ? before_[i] : end - 1;
}

size_t Feeding::wanted_rows(size_t i) const {
  return static_cast<size_t>(before_[i] + static_cast<int>(feeds_[i].tokens.size()) - wanted_from(i));
}

void Feeding::fail_feed(size_t i, Error error) {
  feeds_[i].session->impl().roll_back(before_[i]);
  errors_[i] = std::move(error);
}

// The rows of a feed are not contiguous only if several feeds want rows from several passes.
Result<void> Feeding::sort_rows() {
  std::vector<size_t> runs = row_owners_;
  runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
  std::sort(runs.begin(), runs.end());
  if (std::adjacent_find(runs.begin(), runs.end()) == runs.end()) return {};
  const auto vocab = static_cast<size_t>(engine_.network->config().vocab);
  std::vector<size_t> order(row_owners_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return row_owners_[a] < row_owners_[b]; });
  RowBuffer sorted;
  KVASIR_CHECK(sorted.reserve(order.size() * vocab));
  for (size_t to = 0; to < order.size(); ++to)
    std::copy_n(engine_.logits.data() + order[to] * vocab, vocab, sorted.data() + to * vocab);
  engine_.logits = std::move(sorted);
  std::sort(row_owners_.begin(), row_owners_.end());
  return {};
}

Result<void> Feeding::give_rows(PassOutput* out) {
  KVASIR_CHECK(sort_rows());
  const auto& config = engine_.network->config();
  const auto vocab = static_cast<size_t>(config.vocab), channels = static_cast<size_t>(config.hidden);
  out->assign(feeds_.size(), {});
  for (size_t row = 0; row < row_owners_.size(); ++row) {
    FeedOutput& feed = (*out)[row_owners_[row]];
    const float* first = feed.logits.empty() ? engine_.logits.data() + row * vocab : feed.logits.data();
    feed.logits = {first, feed.logits.size() + vocab};
  }
  for (size_t i = 0; i < feeds_.size(); ++i) {
    FeedOutput& feed = (*out)[i];
    if (feeds_[i].hidden) feed.hidden = {engine_.hidden.data() + hidden_at_[i], feeds_[i].tokens.size() * channels};
    if (errors_[i]) feed = {.logits = {}, .hidden = {}, .error = std::move(errors_[i])};
  }
  return {};
}

}  // namespace kvasir
