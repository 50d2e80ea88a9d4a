// Feeds the windows of a text to several sessions and compares their logits row by row.
#include "lab/drift.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <kvasir/catalog.h>

#include "base/clock.h"
#include "base/float_env.h"
#include "base/thread_pool.h"
#include "lab/scoring.h"

namespace kvasir {
namespace {

constexpr const char* kReference = "f32";

// Statistics of one row of logits.
struct Said {
  double log_sum = 0;  // ln of the sum of e^logit
  double nll = 0;      // -ln p of the next token in the text
  std::ptrdiff_t top = 0;
};

Said said(std::span<const float> row, int next) {
  const double log_sum = log_sum_exp(row);
  return {log_sum, log_sum - static_cast<double>(row[static_cast<size_t>(next)]),
          std::max_element(row.begin(), row.end()) - row.begin()};
}

// The larger of two numbers. A NaN in either makes all later results NaN.
double larger(double most, double x) { return x > most || std::isnan(x) ? x : most; }

// The difference of a candidate's row of logits from that of f32.
struct Difference {
  double max_delta = 0, sum_delta = 0, kl = 0;
};

Difference difference(std::span<const float> wide, double wide_sum, std::span<const float> narrow, double narrow_sum) {
  Difference d;
  for (size_t id = 0; id < wide.size(); ++id) {
    const auto x = static_cast<double>(wide[id]), y = static_cast<double>(narrow[id]);
    const double log_p = x - wide_sum, log_q = y - narrow_sum, delta = std::fabs(x - y);
    d.max_delta = larger(d.max_delta, delta);
    d.sum_delta += delta;
    d.kl += std::exp(log_p) * (log_p - log_q);
  }
  if (d.kl < 0) d.kl = 0;  // negative only by rounding
  return d;
}

// Sums over the scored positions of one session.
struct Total {
  Moments nll;
  double max_delta = 0, sum_delta = 0, sum_kl = 0, max_kl = 0;
  int64_t agreed = 0;
};

// Compares all sessions with session 0, the reference.
class Comparison {
 public:
  Comparison(ThreadPool& pool, int vocab, size_t sessions)
      : pool_(pool), vocab_(static_cast<size_t>(vocab)), totals_(sessions) {}

  const std::vector<Total>& totals() const { return totals_; }

  /// sessions[s].logits [next][vocab] predict the tokens `next`.
  void add(std::span<const int> next, const PassOutput& sessions) {
    const size_t n = next.size();
    const auto row = [&](size_t i) { return sessions[i / n].logits.subspan(i % n * vocab_, vocab_); };
    said_.resize(n * totals_.size());
    differences_.resize(said_.size());
    pool_.run(static_cast<int>(said_.size()), [&](int chunk, int) {
      const auto i = static_cast<size_t>(chunk);
      said_[i] = said(row(i), next[i % n]);
    });
    pool_.run(static_cast<int>(said_.size() - n), [&](int chunk, int) {
      const size_t i = static_cast<size_t>(chunk) + n;
      differences_[i] = difference(row(i % n), said_[i % n].log_sum, row(i), said_[i].log_sum);
    });
    for (size_t i = 0; i < said_.size(); ++i) count(i, i % n, &totals_[i / n]);
  }

 private:
  void count(size_t i, size_t reference, Total* total) {
    const Difference& d = differences_[i];  // zeros for the reference
    total->nll.add(said_[i].nll);
    total->agreed += said_[i].top == said_[reference].top;
    total->max_delta = larger(total->max_delta, d.max_delta);
    total->sum_delta += d.sum_delta;
    total->max_kl = larger(total->max_kl, d.kl);
    total->sum_kl += d.kl;
  }

  ThreadPool& pool_;
  size_t vocab_;
  std::vector<Total> totals_;
  std::vector<Said> said_;  // [session][next]
  std::vector<Difference> differences_;
};

SessionOptions with_types(SessionOptions options, const KvPair& types) {
  options.kv_type_k = types.k;
  options.kv_type_v = types.v;
  return options;
}

// Opens the reference session, then one for each candidate.
Result<std::vector<Session>> open_sessions(const Engine& engine, const DriftOptions& options) {
  if (options.candidates.empty())
    return fail(Error::bad_argument, "no KV type to compare with f32", "DriftOptions::candidates",
                "DriftOptions::candidates = q8_0, or none for all of them");
  std::vector<Session> sessions;
  KVASIR_TRY(Session reference, engine.open_session(with_types(options.session, {kReference, kReference})));
  SessionOptions same = options.session;
  same.ctx = reference.ctx();
  sessions.push_back(std::move(reference));
  for (const KvPair& types : options.candidates) {
    KVASIR_TRY(Session session, engine.open_session(with_types(same, types)));
    sessions.push_back(std::move(session));
  }
  return sessions;
}

DriftRow row_of(const Total& total, const Total& reference, int vocab, const CacheStats& stats) {
  const auto scored = static_cast<double>(total.nll.n());
  DriftRow row;
  row.kv_type_k = stats.kv_type_k;
  row.kv_type_v = stats.kv_type_v;
  row.kv_bytes_per_token = stats.token_bytes;
  row.saturated = stats.saturated;
  row.max_delta_logit = total.max_delta;
  row.mean_delta_logit = total.sum_delta / (scored * vocab);
  row.mean_kl = total.sum_kl / scored;
  row.max_kl = total.max_kl;
  row.top1_agreement = static_cast<double>(total.agreed) / scored;
  row.perplexity = std::exp(total.nll.mean());
  row.perplexity_change = row.perplexity / std::exp(reference.nll.mean()) - 1;
  return row;
}

void fill_report(int vocab, std::span<const Session> sessions, std::span<const Total> totals, DriftReport* report) {
  report->scored = totals[0].nll.n();
  report->perplexity_f32 = std::exp(totals[0].nll.mean());
  report->kv_bytes_per_token_f32 = sessions[0].cache_stats().token_bytes;
  for (size_t s = 1; s < sessions.size(); ++s)
    report->rows.push_back(row_of(totals[s], totals[0], vocab, sessions[s].cache_stats()));
}

}  // namespace

Result<std::vector<KvPair>> drift_candidates(std::span<const std::string> types) {
  std::vector<std::string> names;
  for (const std::string& asked : types) {
    auto type = catalog::find_kv_type(asked);
    if (!type) return fail(Error::bad_argument, type.error().what, "DriftOptions::candidates", type.error().hint);
    if (type->name == kReference)
      return fail(Error::bad_argument, "f32 is what the others are compared with", "DriftOptions::candidates",
                  "DriftOptions::candidates = f16,q8_0");
    if (std::find(names.begin(), names.end(), type->name) != names.end())
      return fail(Error::bad_argument, fmt::format("{} is named twice", type->name), "DriftOptions::candidates",
                  "each type once");
    names.push_back(type->name);
  }
  if (types.empty())
    for (const auto& type : catalog::kv_types())
      if (type.name != kReference) names.push_back(type.name);
  std::vector<KvPair> candidates;
  for (const std::string& name : names)
    for (const KvPair& pair : {KvPair{name, name}, KvPair{name, kReference}, KvPair{kReference, name}})
      candidates.push_back(pair);
  return candidates;
}

Result<DriftReport> drift(Engine& engine, std::span<const int> ids, std::optional<int> bos,
                          const DriftOptions& options) {
  KVASIR_TRY(std::vector<Session> sessions, open_sessions(engine, options));
  KVASIR_TRY(const auto pool, ThreadPool::create(engine.threads()));
  const int vocab = engine.model().info().vocab;
  KVASIR_TRY(const auto windows, TextWindows::cut(ids, bos, sessions[0].ctx(), options.windows, engine.model()));
  DriftReport report;
  report.window = windows.size();
  report.windows = windows.count();
  report.tokens = static_cast<int64_t>(ids.size());

  const FloatEnv env;
  const double start = now_seconds();
  Comparison comparison(*pool, vocab, sessions.size());
  const auto compare = [&comparison](std::span<const int> next, const PassOutput& rows) { comparison.add(next, rows); };
  for (int w = 0; w < report.windows; ++w) {
    KVASIR_CHECK(score_window(engine, sessions, windows.at(w), compare));
    if (options.progress) options.progress(w + 1, report.windows, std::exp(comparison.totals()[0].nll.mean()));
  }
  report.seconds = now_seconds() - start;
  fill_report(vocab, sessions, comparison.totals(), &report);
  return report;
}

}  // namespace kvasir
