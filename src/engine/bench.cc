// Verification first, then the clock.
#include <kvasir/bench.h>

#include <algorithm>

#include <fmt/format.h>

#include <kvasir/plan.h>
#include <kvasir/verify.h>

#include "arch/network.h"
#include "base/clock.h"
#include "base/system.h"
#include "cache/layout.h"
#include "engine/limits.h"
#include "engine/session_shape.h"

namespace kvasir {
namespace {

constexpr int kVerifySteps = 16;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Ids that are all over the vocabulary and the same every time.
std::vector<int> some_ids(int n, int vocab, int salt) {
  std::vector<int> ids;
  uint32_t state = static_cast<uint32_t>(salt) * 2654435761u + 12345u;
  for (int i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    ids.push_back(static_cast<int>(state >> 8) % vocab);
  }
  return ids;
}

Result<void> verify_first(const std::shared_ptr<const Model>& model, const BenchOptions& o, int threads) {
  VerifyOptions v;
  const int vocab = model->info().vocab, ctx = o.session.ctx > 0 ? o.session.ctx : model->info().max_ctx;
  const int length = std::min(24, std::max(1, ctx - kVerifySteps));
  v.prompts = {some_ids(length, vocab, 1), some_ids(std::max(1, length / 2), vocab, 2)};
  v.new_tokens = std::min(kVerifySteps, ctx - length);
  v.layouts = o.verify_layouts;
  v.session = o.session;
  v.threads = {threads};
  v.chunks = {5, 0};
  v.batches = {1, 2};
  if (v.layouts.empty()) {
    KVASIR_TRY(const LayoutInfo* layout, find_layout(o.session.layout));
    v.layouts = {layout};
  }
  KVASIR_TRY(const VerifyReport report, verify(model, v));
  if (report.pass) return {};
  return fail(fmt::format("verification failed: {} differing tokens, {} differing logit bits; speeds are not shown",
                          report.differing_tokens, report.differing_logit_bits),
              "bench", "kvasir verify, for the table");
}

class Bencher {
 public:
  Bencher(std::shared_ptr<const Model> model, const BenchOptions& options) : model_(std::move(model)), o_(options) {}

  Result<void> run(int threads, BenchReport* report) {
    KVASIR_TRY(engine_, Engine::create(model_, {threads, o_.prefill_chunk}));
    const Network& net = model_->network();
    KVASIR_TRY(shape_, session_shape(net.family(), net.config(), o_.session));
    KVASIR_TRY(report->read_bytes_s, measure_read_bandwidth(threads));
    KVASIR_TRY(report->flops, measure_fma_rate(threads));
    const std::string at = o_.depth > 0 ? fmt::format(" @ d{}", o_.depth) : "";
    if (o_.prompt > 0) {
      KVASIR_TRY(auto test, repeat(fmt::format("pp{}{}", o_.prompt, at), o_.prompt, &Bencher::prefill_seconds));
      test.fraction_of_limit = test.tok_s_median * flops_per_token() / report->flops;
      report->tests.push_back(std::move(test));
    }
    if (o_.generate > 0) {
      KVASIR_TRY(auto test, repeat(fmt::format("tg{}{}", o_.generate, at), o_.generate, &Bencher::decode_seconds));
      test.fraction_of_limit = test.tok_s_median * bytes_per_step() / report->read_bytes_s;
      report->tests.push_back(std::move(test));
    }
    return {};
  }

 private:
  using Seconds = Result<double> (Bencher::*)();

  Result<BenchTest> repeat(std::string name, int tokens, Seconds seconds) {
    std::vector<double> rates;
    for (int i = 0; i < o_.repeats + 1; ++i) {
      if (o_.progress) o_.progress(fmt::format("{} on {} threads, {}/{}", name, engine_->threads(), i, o_.repeats));
      KVASIR_TRY(const double s, (this->*seconds)());
      if (i > 0) rates.push_back(tokens / s);  // the first one warms up
    }
    return BenchTest{std::move(name),
                     engine_->threads(),
                     median(rates),
                     *std::min_element(rates.begin(), rates.end()),
                     *std::max_element(rates.begin(), rates.end()),
                     0};
  }

  Result<Session> deep_session(StepOutput* out) {
    KVASIR_TRY(Session session, engine_->open_session(o_.session));
    if (o_.depth > 0) KVASIR_CHECK(engine_->prefill(session, some_ids(o_.depth, model_->info().vocab, 3), out));
    return session;
  }

  Result<double> prefill_seconds() {
    StepOutput out;
    KVASIR_TRY(Session session, deep_session(&out));
    const std::vector<int> ids = some_ids(o_.prompt, model_->info().vocab, 4);
    const double start = now_seconds();
    KVASIR_CHECK(engine_->prefill(session, ids, &out));
    return now_seconds() - start;
  }

  Result<double> decode_seconds() {
    StepOutput out;
    KVASIR_TRY(Session session, deep_session(&out));
    const std::vector<int> ids = some_ids(o_.generate, model_->info().vocab, 5);
    const double start = now_seconds();
    for (const int& id : ids) KVASIR_CHECK(engine_->prefill(session, {&id, 1}, &out));
    return now_seconds() - start;
  }

  // Two operations per weight that every token multiplies; the head is left out, it runs for one token of the prompt.
  double flops_per_token() const {
    const ModelConfig& c = model_->network().config();
    const double attention = 2.0 * c.hidden * c.heads * c.head_dim + 2.0 * c.hidden * c.kv_dim();
    const double mlp = (c.rope ? 3.0 : 2.0) * c.hidden * c.ffn;
    return 2.0 * c.layers * (attention + mlp);
  }

  // The weights once, and the history's rows at the middle of the test.
  double bytes_per_step() const {
    return static_cast<double>(model_->info().weights_bytes) +
           static_cast<double>(shape_.position_bytes()) * (o_.depth + o_.generate / 2.0);
  }

  std::shared_ptr<const Model> model_;
  const BenchOptions& o_;
  std::unique_ptr<Engine> engine_;
  CacheShape shape_;
};

}  // namespace

Result<BenchReport> bench(const std::shared_ptr<const Model>& model, const BenchOptions& options) {
  BenchOptions o = options;
  if (o.threads.empty()) o.threads = {default_threads()};
  if (o.prompt < 0 || o.generate < 0 || o.depth < 0 || o.repeats < 1)
    return fail("a negative length or no repeats", "bench", "-p 512 -n 128 -d 0 -r 5");
  const int ctx = o.session.ctx > 0 ? o.session.ctx : model->info().max_ctx;
  if (int64_t{o.depth} + std::max(o.prompt, o.generate) > ctx)
    return fail(
        fmt::format("{} + {} positions do not fit the context of {}", o.depth, std::max(o.prompt, o.generate), ctx),
        "bench", "smaller -p, -n or -d, or a larger --ctx");
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
  StepSeries series;
  series.layout = session.layout;
  std::vector<std::vector<double>> ms(static_cast<size_t>(positions));
  const std::vector<int> ids = some_ids(positions, model->info().vocab, 6);
  for (int repeat = 0; repeat < repeats; ++repeat) {
    KVASIR_TRY(const auto engine, Engine::create(model, {threads, 1 << 20}));
    KVASIR_TRY(Session s, engine->open_session(session));
    StepOutput out;
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
