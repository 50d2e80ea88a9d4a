// Text embeddings: pooled final-norm states.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/float_env.h"
#include "engine/engine_impl.h"
#include "engine/pooler.h"

namespace kvasir {

Feed Pooler::next(Session& session, int most) {
  const auto first = static_cast<size_t>(session.pos());
  const bool again = first < pooled_;
  const size_t end = std::min(again ? pooled_ : text_.size(), first + static_cast<size_t>(most));
  return {.session = &session,
          .tokens = std::span(text_).subspan(first, end - first),
          .logits = Logits::none,
          .hidden = !again};
}

void Pooler::take(std::span<const float> hidden) {
  const FloatEnv env;
  for (size_t at = 0; at < hidden.size(); at += sum_.size(), ++pooled_) {
    if (pooling_ == Pooling::last && pooled_ + 1 < text_.size()) continue;
    for (size_t d = 0; d < sum_.size(); ++d) sum_[d] += static_cast<double>(hidden[at + d]);
  }
}

std::vector<float> Pooler::result() const {
  const FloatEnv env;
  double squares = 0;
  for (const double x : sum_) squares += x * x;
  const double norm = squares > 0 ? std::sqrt(squares) : 1.0;
  std::vector<float> vector(sum_.size());
  for (size_t d = 0; d < sum_.size(); ++d) vector[d] = static_cast<float>(sum_[d] / norm);
  return vector;
}

Result<std::vector<float>> Engine::embed(Session& session, std::span<const int> tokens, Pooling pooling) {
  if (session.pos() != 0)
    return fail(Error::bad_argument, fmt::format("the session is mid-conversation, at position {}", session.pos()),
                "embed", "a session of its own, or clear() first");
  session.clear();
  Pooler pooler(pooling, {tokens.begin(), tokens.end()}, static_cast<size_t>(impl_->model->info().hidden));
  // A layout that keeps nothing would recompute everything in each pass, so it is fed the whole text at once.
  const int most = session.recomputes() ? static_cast<int>(tokens.size()) : pass_tokens();
  Result<void> done;
  do {
    const Feed feed = pooler.next(session, most);
    PassOutput out;
    done = step({&feed, 1}, &out);
    if (done && out[0].error) done = tl::unexpected(std::move(*out[0].error));
    if (done) pooler.take(out[0].hidden);
  } while (done && !pooler.done());
  session.clear();
  if (!done) return tl::unexpected<Error>(done.error());
  return pooler.result();
}

}  // namespace kvasir
