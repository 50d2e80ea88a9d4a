// Scores the windows of a text; the threads share the scored tokens.
#include "lab/perplexity.h"

#include <cmath>

#include "base/clock.h"
#include "base/float_env.h"
#include "base/thread_pool.h"
#include "lab/scoring.h"

namespace kvasir {
namespace {

class Scorer {
 public:
  Scorer(ThreadPool& pool, int vocab) : pool_(pool), vocab_(static_cast<size_t>(vocab)) {}

  const Moments& moments() const { return moments_; }

  /// logits [next][vocab] predict the tokens `next`.
  void add(std::span<const int> next, std::span<const float> logits) {
    nll_.resize(next.size());
    pool_.run(static_cast<int>(next.size()), [&](int chunk, int) {
      const auto i = static_cast<size_t>(chunk);
      const auto row = logits.subspan(i * vocab_, vocab_);
      nll_[i] = log_sum_exp(row) - static_cast<double>(row[static_cast<size_t>(next[i])]);
    });
    for (double x : nll_) moments_.add(x);
  }

 private:
  ThreadPool& pool_;
  size_t vocab_;
  std::vector<double> nll_;
  Moments moments_;
};

}  // namespace

Result<PerplexityReport> perplexity(Engine& engine, std::span<const int> ids, std::optional<int> bos,
                                    const PerplexityOptions& options) {
  KVASIR_TRY(Session session, engine.open_session(options.session));
  KVASIR_TRY(const auto pool, ThreadPool::create(engine.threads()));
  const int vocab = engine.model().info().vocab;
  KVASIR_TRY(const auto windows, TextWindows::cut(ids, bos, session.ctx(), options.windows, engine.model()));
  PerplexityReport report;
  report.window = windows.size();
  report.windows = windows.count();
  report.tokens = static_cast<int64_t>(ids.size());

  const FloatEnv env;
  const double start = now_seconds();
  Scorer scorer(*pool, vocab);
  const auto score = [&scorer](std::span<const int> next, const PassOutput& rows) { scorer.add(next, rows[0].logits); };
  for (int w = 0; w < report.windows; ++w) {
    KVASIR_CHECK(score_window(engine, {&session, 1}, windows.at(w), score));
    if (options.progress) options.progress(w + 1, report.windows, std::exp(scorer.moments().mean()));
  }
  report.seconds = now_seconds() - start;
  report.scored = scorer.moments().n();
  report.nll = scorer.moments().mean();
  report.perplexity = std::exp(report.nll);
  report.standard_error = scorer.moments().standard_error() * report.perplexity;
  return report;
}

}  // namespace kvasir
