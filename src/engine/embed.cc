// Text embeddings: the pooled final-norm states.
#include <cmath>

#include <fmt/format.h>

#include "base/float_env.h"
#include "engine/engine_impl.h"

namespace kvasir {

Result<std::vector<float>> Engine::embed(Session& session, std::span<const int> tokens, Pooling pooling) {
  if (session.pos() != 0)
    return fail(Error::bad_argument, fmt::format("the session is mid-conversation, at position {}", session.pos()),
                "embed", "a session of its own, or clear() first");
  session.clear();
  PassOutput out;
  const Feed feed{.session = &session, .tokens = tokens, .logits = Logits::none, .hidden = true};
  auto done = step({&feed, 1}, &out);
  session.clear();
  if (done && out[0].error) done = tl::unexpected(std::move(*out[0].error));
  if (!done) return tl::unexpected<Error>(done.error());

  const FloatEnv env;
  const size_t hidden = static_cast<size_t>(impl_->model->info().hidden), n = tokens.size();
  std::vector<double> sum(hidden, 0.0);
  for (size_t t = pooling == Pooling::last ? n - 1 : 0; t < n; ++t)
    for (size_t d = 0; d < hidden; ++d) sum[d] += static_cast<double>(out[0].hidden[t * hidden + d]);
  double squares = 0;
  for (double x : sum) squares += x * x;
  const double norm = squares > 0 ? std::sqrt(squares) : 1.0;
  std::vector<float> vector(hidden);
  for (size_t d = 0; d < hidden; ++d) vector[d] = static_cast<float>(sum[d] / norm);
  return vector;
}

}  // namespace kvasir
