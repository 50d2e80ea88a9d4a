// bench() and measure_steps(). Speeds are measured only after a verification has passed.
#include <kvasir/bench.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include <kvasir/catalog.h>
#include <kvasir/plan.h>
#include <kvasir/verify.h>

#include "base/clock.h"
#include "base/ranges.h"
#include "base/system.h"
#include "lab/bench_common.h"
#include "lab/step_all.h"

namespace kvasir {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<int> bench_ids(int n, int vocab, int salt) {
  std::vector<int> ids;
  uint32_t state = static_cast<uint32_t>(salt) * 2654435761u + 12345u;
  for (int i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    ids.push_back(static_cast<int>(state >> 8) % vocab);
  }
  return ids;
}

namespace {

constexpr int kVerifySteps = 16;

Result<void> verify_first(const std::shared_ptr<const Model>& model, const BenchOptions& o, int threads) {
  VerifyOptions v;
  v.acts = v.others = false;
  const int vocab = model->info().vocab, ctx = o.session.ctx > 0 ? o.session.ctx : model->info().max_ctx;
  const int length = std::min(24, std::max(1, ctx - kVerifySteps));
  v.prompts = {bench_ids(length, vocab, 1), bench_ids(std::max(1, length / 2), vocab, 2)};
  v.new_tokens = std::min(kVerifySteps, ctx - length);
  v.layouts = o.verify_layouts;
  v.session = o.session;
  v.threads = {threads};
  v.chunks = {5, 0};
  v.batches = {1, 2};
  if (v.layouts.empty()) v.layouts = {o.session.layout};
  KVASIR_TRY(const VerifyReport report, verify(model, v));
  if (report.pass) return {};
  return fail(Error::internal,
              fmt::format("verification failed: {} differing tokens, {} differing logit bits; speeds are not shown",
                          report.differing_tokens, report.differing_logit_bits),
              "bench", "kvasir verify, for the table");
}

BenchTest summary(std::string name, int threads, int batch, const std::vector<double>& rates) {
  const auto n = static_cast<double>(rates.size());
  const double mean = std::accumulate(rates.begin(), rates.end(), 0.0) / n;
  double squares = 0;
  for (double rate : rates) squares += (rate - mean) * (rate - mean);
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  return {.name = std::move(name),
          .threads = threads,
          .batch = batch,
          .tok_s_median = median(rates),
          .tok_s_min = *least,
          .tok_s_max = *most,
          .tok_s_mean = mean,
          .tok_s_stddev = n > 1 ? std::sqrt(squares / (n - 1)) : 0};
}

class Bencher {
 public:
  Bencher(std::shared_ptr<const Model> model, const BenchOptions& options) : model_(std::move(model)), o_(options) {}

  Result<void> run(int threads, BenchReport* report) {
    sessions_.clear();
    KVASIR_TRY(engine_, Engine::create(model_, {threads, o_.prefill_chunk}));
    KVASIR_TRY(report->limits, measure_rates(threads));
    report->cpu = engine_->cpu();
    const Rates& limits = report->limits;
    if (o_.prompt > 0) {
      KVASIR_TRY(auto test, repeat("pp", o_.prompt, &Bencher::prefill_seconds));
      KVASIR_TRY(const auto type, catalog::find_weight_type(model_->info().weight_type));
      // Two operations per layer weight and token. The head is left out: it runs for one token of the prompt.
      const double operations = 2.0 * static_cast<double>(model_->info().layer_weights);
      test.fraction_of_limit = test.tok_s_median * operations / (type.integer ? limits.int8_ops : limits.flops);
      report->tests.push_back(std::move(test));
    }
    if (o_.generate > 0) {
      KVASIR_TRY(auto test, repeat("tg", o_.generate, &Bencher::decode_seconds));
      KVASIR_TRY(const double bytes, bytes_per_step());
      test.fraction_of_limit = test.tok_s_median / o_.batch * bytes / limits.memory;
      report->tests.push_back(std::move(test));
    }
    return {};
  }

 private:
  using Seconds = Result<double> (Bencher::*)();

  Result<BenchTest> repeat(const char* kind, int tokens, Seconds seconds) {
    const std::string name = fmt::format("{}{}{}{}", kind, tokens, o_.batch > 1 ? fmt::format("x{}", o_.batch) : "",
                                         o_.depth > 0 ? fmt::format("@d{}", o_.depth) : "");
    std::vector<double> rates;
    for (int i = 0; i < o_.repeats + 1; ++i) {
      if (o_.progress) o_.progress(fmt::format("{} on {} threads, {}/{}", name, engine_->threads(), i, o_.repeats));
      KVASIR_CHECK(go_to_depth());
      KVASIR_TRY(const double s, (this->*seconds)());
      if (i > 0) rates.push_back(1.0 * tokens * o_.batch / s);  // run 0 warms up
    }
    return summary(name, engine_->threads(), o_.batch, rates);
  }

  // `tokens` ids for each sequence, different for each. The ids of sequence 0 do not depend on the batch size.
  std::vector<std::vector<int>> ids_for_all(int tokens, int salt) const {
    std::vector<std::vector<int>> all;
    for (int b = 0; b < o_.batch; ++b) all.push_back(bench_ids(tokens, model_->info().vocab, salt + 16 * b));
    return all;
  }

  Result<void> feed_all(const std::vector<std::vector<int>>& ids) {
    std::vector<Feed> feeds;
    for (size_t b = 0; b < sessions_.size(); ++b) feeds.push_back({&sessions_[b], ids[b]});
    return step_all(*engine_, feeds, &out_);
  }

  // Leaves each session with `depth` positions: truncated to them if the layout can, else filled again.
  Result<void> go_to_depth() {
    if (!sessions_.empty() &&
        std::all_of(sessions_.begin(), sessions_.end(), [&](Session& s) { return s.truncate(o_.depth).has_value(); }))
      return {};
    sessions_.clear();
    for (int b = 0; b < o_.batch; ++b) {
      KVASIR_TRY(Session session, engine_->open_session(o_.session));
      sessions_.push_back(std::move(session));
    }
    return o_.depth > 0 ? feed_all(ids_for_all(o_.depth, 3)) : Result<void>{};
  }

  Result<double> prefill_seconds() {
    const auto ids = ids_for_all(o_.prompt, 4);
    const double start = now_seconds();
    KVASIR_CHECK(feed_all(ids));
    return now_seconds() - start;
  }

  Result<double> decode_seconds() {
    const auto ids = ids_for_all(o_.generate, 5);
    std::vector<Session*> sessions;
    for (Session& s : sessions_) sessions.push_back(&s);
    std::vector<int> step(sessions.size());
    const double start = now_seconds();
    for (size_t i = 0; i < ids[0].size(); ++i) {
      for (size_t b = 0; b < step.size(); ++b) step[b] = ids[b][i];
      KVASIR_CHECK(decode_all(*engine_, sessions, step, &out_));
    }
    return now_seconds() - start;
  }

  // Bytes that a step reads: the weights once, and the K and V rows of every sequence at the middle of the test.
  Result<double> bytes_per_step() const {
    PlanRequest request;
    request.model = model_->info().path;
    request.session = o_.session;
    request.chat = std::max(1, o_.depth + o_.generate / 2);
    KVASIR_TRY(const PlanReport report, plan(request));
    return static_cast<double>(report.read_bytes_per_token) +
           (o_.batch - 1.0) * request.chat * static_cast<double>(report.kv_bytes_per_token);
  }

  std::shared_ptr<const Model> model_;
  const BenchOptions& o_;
  std::unique_ptr<Engine> engine_;
  std::vector<Session> sessions_;
  PassOutput out_;
};

}  // namespace

namespace {

Result<void> check(const BenchOptions& o) {
  KVASIR_CHECK(check_at_least(o.prompt, 0, "tokens", "BenchOptions::prompt"));
  KVASIR_CHECK(check_at_least(o.generate, 0, "tokens", "BenchOptions::generate"));
  KVASIR_CHECK(check_at_least(o.depth, 0, "positions", "BenchOptions::depth"));
  KVASIR_CHECK(check_at_least(o.repeats, 1, "repeats", "BenchOptions::repeats"));
  KVASIR_CHECK(check_at_least(o.batch, 1, "sequences", "BenchOptions::batch"));
  KVASIR_CHECK(check_all_at_least(o.threads, 1, "threads", "BenchOptions::threads"));
  if (o.prompt == 0 && o.generate == 0)
    return fail(Error::bad_argument, "nothing is measured with BenchOptions::prompt = 0 and BenchOptions::generate = 0",
                "bench", "BenchOptions::prompt = 512, BenchOptions::generate = 128 or both");
  return {};
}

}  // namespace

Result<BenchReport> bench(const std::shared_ptr<const Model>& model, const BenchOptions& options) {
  BenchOptions o = options;
  if (o.threads.empty()) o.threads = {default_threads()};
  KVASIR_CHECK(check(o));
  const int ctx = o.session.ctx > 0 ? o.session.ctx : model->info().max_ctx;
  if (int64_t{o.depth} + std::max(o.prompt, o.generate) > ctx)
    return fail(
        Error::too_long,
        fmt::format("{} + {} positions do not fit the context of {}", o.depth, std::max(o.prompt, o.generate), ctx),
        "bench",
        "smaller BenchOptions::prompt, BenchOptions::generate or BenchOptions::depth, or a larger SessionOptions::ctx");
  if (o.progress) o.progress("verifying");
  KVASIR_CHECK(verify_first(model, o, o.threads.front()));
  BenchReport report;
  report.verified = true;
  Bencher bencher(model, o);
  for (int threads : o.threads) KVASIR_CHECK(bencher.run(threads, &report));
  return report;
}

Result<StepSeries> measure_steps(const std::shared_ptr<const Model>& model, const SessionOptions& session, int threads,
                                 int positions, int repeats) {
  KVASIR_CHECK(check_at_least(positions, 1, "positions", "measure_steps"));
  KVASIR_CHECK(check_at_least(repeats, 1, "repeats", "measure_steps"));
  StepSeries series;
  series.layout = session.layout;
  std::vector<std::vector<double>> ms(static_cast<size_t>(positions));
  const std::vector<int> ids = bench_ids(positions, model->info().vocab, 6);
  for (int repeat = 0; repeat < repeats; ++repeat) {
    KVASIR_TRY(const auto engine, Engine::create(model, {threads, 1 << 20}));
    KVASIR_TRY(Session s, engine->open_session(session));
    FeedOutput out;
    series.kv_bytes.clear();
    for (size_t i = 0; i < ids.size(); ++i) {
      const double start = now_seconds();
      KVASIR_CHECK(engine->prefill(s, {&ids[i], 1}, &out));
      ms[i].push_back((now_seconds() - start) * 1e3);
      series.kv_bytes.push_back(s.cache_stats().bytes);
    }
    series.copied_rows = s.cache_stats().copied_rows;
  }
  for (auto& values : ms) series.ms.push_back(median(std::move(values)));
  return series;
}

}  // namespace kvasir
