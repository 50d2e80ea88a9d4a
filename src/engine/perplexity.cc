// Windows of a text, scored a few rows of logits at a time.
#include "engine/perplexity.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/float_env.h"
#include "base/thread_pool.h"

namespace kvasir {
namespace {

// Logits held at once; a step holds them about three times while it gathers them.
constexpr size_t kLogitBytes = size_t{8} << 20;

// -ln softmax(row)[id]
double negative_log_likelihood(std::span<const float> row, int id) {
  const double most = static_cast<double>(*std::max_element(row.begin(), row.end()));
  double sum = 0;
  for (float x : row) sum += std::exp(static_cast<double>(x) - most);
  return most + std::log(sum) - static_cast<double>(row[static_cast<size_t>(id)]);
}

// Mean and variance, one value at a time (Welford 1962).
class Moments {
 public:
  void add(double x) {
    ++n_;
    const double from_mean = x - mean_;
    mean_ += from_mean / static_cast<double>(n_);
    squares_ += from_mean * (x - mean_);
  }
  int64_t n() const { return n_; }
  double mean() const { return mean_; }
  /// 0 for a single value, of which it is not known.
  double standard_error() const {
    return n_ < 2 ? 0 : std::sqrt(squares_ / (static_cast<double>(n_) * static_cast<double>(n_ - 1)));
  }

 private:
  int64_t n_ = 0;
  double mean_ = 0, squares_ = 0;
};

class Scorer {
 public:
  Scorer(Engine& engine, Session& session, ThreadPool& pool)
      : engine_(engine), session_(session), pool_(pool), vocab_(static_cast<size_t>(engine.model().info().vocab)) {}

  const Moments& moments() const { return moments_; }

  /// Feeds all of `window` but its last token, and scores the tokens after its middle one.
  Result<void> add(std::span<const int> window) {
    const size_t middle = window.size() / 2, rows = std::clamp<size_t>(kLogitBytes / sizeof(float) / vocab_, 1, 256);
    session_.clear();
    KVASIR_CHECK(engine_.prefill(session_, window.first(middle), &out_));
    for (size_t at = middle; at + 1 < window.size(); at += rows) {
      const auto fed = window.subspan(at, std::min(rows, window.size() - 1 - at));
      const Feed feed{.session = &session_, .tokens = fed, .all_logits = true};
      KVASIR_CHECK(engine_.step({&feed, 1}, &out_));
      score(window.subspan(at + 1, fed.size()));
    }
    return {};
  }

 private:
  // out_ holds the logits that predict each of `next`.
  void score(std::span<const int> next) {
    nll_.resize(next.size());
    pool_.run(static_cast<int>(next.size()), [&](int chunk, int) {
      const auto i = static_cast<size_t>(chunk);
      nll_[i] = negative_log_likelihood(std::span(out_.logits).subspan(i * vocab_, vocab_), next[i]);
    });
    for (double x : nll_) moments_.add(x);
  }

  Engine& engine_;
  Session& session_;
  ThreadPool& pool_;
  size_t vocab_;
  StepOutput out_;
  std::vector<double> nll_;
  Moments moments_;
};

// A window's last token is scored and never fed, so no step would refuse it.
Result<void> check_ids(std::span<const int> ids, int vocab) {
  for (int id : ids)
    if (id < 0 || id >= vocab)
      return fail(fmt::format("token id {} is out of range, the vocabulary has {}", id, vocab), "perplexity",
                  "the tokenizer that belongs to this model");
  return {};
}

// How many whole windows are to be scored.
Result<int> count_windows(size_t tokens, int window, int asked) {
  if (window < 3)
    return fail(fmt::format("a window of {} tokens has none to score", window), "--ctx", "3 or more, usually 512");
  if (asked < 0) return fail(fmt::format("{} windows asked for", asked), "--chunks", "1 or more; 0 for all");
  const auto whole = static_cast<int>(std::min<size_t>(tokens / static_cast<size_t>(window), 1u << 30));
  if (whole == 0)
    return fail(fmt::format("the text has {} tokens, a window takes {}", tokens, window), "perplexity",
                "a longer text or a smaller --ctx");
  return asked == 0 ? whole : std::min(asked, whole);
}

}  // namespace

Result<PerplexityReport> perplexity(Engine& engine, std::span<const int> ids, std::optional<int> bos,
                                    const PerplexityOptions& options) {
  KVASIR_TRY(Session session, engine.open_session(options.session));
  KVASIR_TRY(const auto pool, ThreadPool::create(engine.threads()));
  PerplexityReport report;
  report.window = session.ctx();
  KVASIR_TRY(report.windows, count_windows(ids.size(), report.window, options.windows));
  KVASIR_CHECK(check_ids(ids, engine.model().info().vocab));
  report.tokens = static_cast<int64_t>(ids.size());

  const FloatEnv env;
  const double start = now_seconds();
  Scorer scorer(engine, session, *pool);
  const auto size = static_cast<size_t>(report.window);
  for (int w = 0; w < report.windows; ++w) {
    const auto from = ids.subspan(static_cast<size_t>(w) * size, size);
    std::vector<int> window(from.begin(), from.end());
    if (bos) window[0] = *bos;
    KVASIR_CHECK(scorer.add(window));
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
