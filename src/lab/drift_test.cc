// Drift compared with a plain computation over the logits of two sessions.
#include "lab/drift.h"

#include <algorithm>
#include <cmath>

#include "cache/kv_type.h"
#include "lab/perplexity.h"
#include "tests/support/engines.h"

namespace kvasir {
namespace {

using engine_test::AllOf;
using engine_test::HasSubstr;
using engine_test::message_of;
using engine_test::Opened;

DriftReport report_of(Opened& opened, const std::vector<int>& ids, std::optional<int> bos,
                      const DriftOptions& options) {
  const auto report = drift(opened.engine(), ids, bos, options);
  EXPECT_TRUE(report) << message_of(report);
  return report ? *report : DriftReport{.rows = std::vector<DriftRow>(options.candidates.size())};
}

// Logits of every token of `window`, fed at once to a new session.
std::vector<float> logits_of(Opened& opened, const std::vector<int>& window, const SessionOptions& options) {
  Session session = opened.session(options);
  engine_test::Copied out;
  const Feed feed{.session = &session, .tokens = window, .logits = Logits::all};
  EXPECT_TRUE(engine_test::step(opened.engine(), {&feed, 1}, &out));
  return out.logits;
}

// Softmax of a row of logits, without subtracting the maximum: logits of the tiny models are small.
std::vector<long double> softmax(const float* row, size_t vocab) {
  std::vector<long double> p;
  long double sum = 0;
  for (size_t id = 0; id < vocab; ++id) sum += std::exp(static_cast<long double>(row[id]));
  for (size_t id = 0; id < vocab; ++id) p.push_back(std::exp(static_cast<long double>(row[id])) / sum);
  return p;
}

struct Expected {
  long double max_delta = 0, mean_delta = 0, mean_kl = 0, max_kl = 0, agreement = 0, nll = 0, nll_f32 = 0;
  int64_t scored = 0;
};

// Adds one position to the sums, which computed() divides at the end.
void add_position(const float* wide, const float* narrow, size_t vocab, size_t next, Expected* e) {
  const auto p = softmax(wide, vocab), q = softmax(narrow, vocab);
  long double kl = 0;
  size_t top_p = 0, top_q = 0;
  for (size_t id = 0; id < vocab; ++id) {
    const long double delta = std::fabs(static_cast<long double>(wide[id]) - static_cast<long double>(narrow[id]));
    e->max_delta = std::max(e->max_delta, delta);
    e->mean_delta += delta;
    kl += p[id] * std::log(p[id] / q[id]);
    if (wide[id] > wide[top_p]) top_p = id;
    if (narrow[id] > narrow[top_q]) top_q = id;
  }
  e->mean_kl += kl;
  e->max_kl = std::max(e->max_kl, kl);
  e->agreement += top_p == top_q ? 1 : 0;
  e->nll -= std::log(q[next]);
  e->nll_f32 -= std::log(p[next]);
  ++e->scored;
}

Expected computed(Opened& opened, const std::vector<int>& ids, std::optional<int> bos, size_t ctx,
                  const KvPair& types) {
  const auto vocab = static_cast<size_t>(opened.model().info().vocab);
  Expected e;
  for (size_t from = 0; from + ctx <= ids.size(); from += ctx) {
    std::vector<int> window(ids.begin() + static_cast<std::ptrdiff_t>(from),
                            ids.begin() + static_cast<std::ptrdiff_t>(from + ctx));
    if (bos) window[0] = *bos;
    const auto wide = logits_of(opened, window, {});
    const auto narrow = logits_of(opened, window, {.kv_type_k = types.k, .kv_type_v = types.v});
    for (size_t t = ctx / 2 + 1; t < ctx; ++t)
      add_position(&wide[(t - 1) * vocab], &narrow[(t - 1) * vocab], vocab, static_cast<size_t>(window[t]), &e);
  }
  const auto n = static_cast<long double>(e.scored);
  e.mean_delta /= n * static_cast<long double>(vocab);
  for (long double* sum : {&e.mean_kl, &e.agreement, &e.nll, &e.nll_f32}) *sum /= n;
  return e;
}

void expect_near(double x, long double expected, double relative) {
  EXPECT_NEAR(x, static_cast<double>(expected), relative * std::fabs(static_cast<double>(expected)));
}

void expect_row(const DriftRow& row, const Expected& e) {
  SCOPED_TRACE(row.kv_type_k + " " + row.kv_type_v);
  EXPECT_GT(row.mean_kl, 0);
  EXPECT_GE(row.max_kl, row.mean_kl);
  EXPECT_EQ(row.max_delta_logit, static_cast<double>(e.max_delta));
  expect_near(row.mean_delta_logit, e.mean_delta, 1e-12);
  EXPECT_NEAR(row.mean_kl, static_cast<double>(e.mean_kl), 1e-13);
  EXPECT_NEAR(row.max_kl, static_cast<double>(e.max_kl), 1e-13);
  EXPECT_DOUBLE_EQ(row.top1_agreement, static_cast<double>(e.agreement));
  expect_near(row.perplexity, std::exp(e.nll), 1e-12);
  EXPECT_NEAR(row.perplexity_change, static_cast<double>(std::exp(e.nll - e.nll_f32) - 1), 1e-12);
}

TEST(Drift, IsWhatTheLogitsSay) {
  Opened opened(tiny::llama());
  const std::vector<int> ids = tiny::ids(200);
  DriftOptions options;
  options.candidates = {{"q8_0", "q8_0"}, {"q4_0h", "f32"}, {"f32", "bf16"}, {"f16", "q4_0"}};
  for (const int ctx : {40, 33})
    for (const std::optional<int> bos : {std::optional<int>(), std::optional<int>(17)}) {
      options.session.ctx = ctx;
      const DriftReport report = report_of(opened, ids, bos, options);
      const int windows = 200 / ctx;
      EXPECT_EQ(report.window, ctx);
      EXPECT_EQ(report.windows, windows);
      EXPECT_EQ(report.tokens, 200);
      EXPECT_EQ(report.scored, windows * (ctx - ctx / 2 - 1));
      ASSERT_EQ(report.rows.size(), options.candidates.size());
      for (size_t i = 0; i < report.rows.size(); ++i) {
        const KvPair& types = options.candidates[i];
        EXPECT_EQ(report.rows[i].kv_type_k, types.k);
        EXPECT_EQ(report.rows[i].kv_type_v, types.v);
        const Expected expected = computed(opened, ids, bos, static_cast<size_t>(ctx), types);
        expect_row(report.rows[i], expected);
        expect_near(report.perplexity_f32, std::exp(expected.nll_f32), 1e-12);
      }
    }
}

// A type that does not always agree, so that the fraction differs from 1.
TEST(Drift, CountsPositionsThatDisagree) {
  Opened opened(tiny::llama());
  const std::vector<int> ids = tiny::ids(800, 3);
  const KvPair types{"q4_0", "q4_0"};
  const DriftReport report = report_of(opened, ids, {}, {.session = {.ctx = 100}, .candidates = {types}});
  expect_row(report.rows[0], computed(opened, ids, {}, 100, types));
  EXPECT_LT(report.rows[0].top1_agreement, 1);
  EXPECT_GT(report.rows[0].top1_agreement, 0);
}

TEST(Drift, PerplexityIsThatOfTheCommand) {
  Opened opened(tiny::llama());
  const std::vector<int> ids = tiny::ids(120, 5);
  const DriftReport report =
      report_of(opened, ids, 1, {.session = {.ctx = 40}, .candidates = {{"q8_0", "q4_0"}, {"f32", "f16"}}});
  EXPECT_EQ(report.perplexity_f32, perplexity(opened.engine(), ids, 1, {.session = {.ctx = 40}})->perplexity);
  for (const DriftRow& row : report.rows) {
    const SessionOptions narrow{.ctx = 40, .kv_type_k = row.kv_type_k, .kv_type_v = row.kv_type_v};
    EXPECT_EQ(row.perplexity, perplexity(opened.engine(), ids, 1, {.session = narrow})->perplexity);
  }
}

TEST(Drift, OfF32AgainstItselfIsNothing) {
  Opened opened(tiny::llama());
  const DriftReport report =
      report_of(opened, tiny::ids(120), 1, {.session = {.ctx = 40}, .candidates = {{"f32", "f32"}}});
  const DriftRow& row = report.rows[0];
  EXPECT_EQ(row.max_delta_logit, 0);
  EXPECT_EQ(row.mean_delta_logit, 0);
  EXPECT_EQ(row.mean_kl, 0);
  EXPECT_EQ(row.max_kl, 0);
  EXPECT_EQ(row.top1_agreement, 1);
  EXPECT_EQ(row.perplexity, report.perplexity_f32);
  EXPECT_EQ(row.perplexity_change, 0);
  EXPECT_EQ(row.saturated, 0);
  EXPECT_EQ(row.kv_bytes_per_token, report.kv_bytes_per_token_f32);
}

// 2 layers, 2 KV heads of 8; a block of 32 holds one head.
TEST(Drift, BytesAreOfOneTokenInAllLayers) {
  Opened opened(tiny::llama());
  DriftOptions options;
  options.candidates = {{"f16", "f16"}, {"f16", "f32"}, {"f32", "q8_0"}, {"q4_0h", "q4_0"}};
  for (const char* layout : {"grow", "dense", "none", "paged", "windowed"}) {
    options.session = {.layout = layout, .ctx = 40};
    const DriftReport report = report_of(opened, tiny::ids(40), {}, options);
    EXPECT_EQ(report.kv_bytes_per_token_f32, 2u * 2 * (32 + 32)) << layout;
    EXPECT_EQ(report.rows[0].kv_bytes_per_token, 2u * 2 * (16 + 16));
    EXPECT_EQ(report.rows[1].kv_bytes_per_token, 2u * 2 * (16 + 32));
    EXPECT_EQ(report.rows[2].kv_bytes_per_token, 2u * 2 * (32 + 34));
    EXPECT_EQ(report.rows[3].kv_bytes_per_token, 2u * 2 * (18 + 18));
  }
}

TEST(Drift, IsTheSameHoweverItIsComputed) {
  const std::vector<int> ids = tiny::ids(120);
  DriftOptions options{.session = {.ctx = 40}, .candidates = {{"q8_0", "f16"}, {"q4_0h", "q4_0h"}}};
  Opened plain(tiny::llama());
  const DriftReport expected = report_of(plain, ids, 1, options);
  for (const int threads : {1, 3}) {
    Opened opened(tiny::llama(), {.threads = threads, .prefill_chunk = 7});
    for (const char* layout : {"grow", "dense", "none"}) {
      options.session.layout = layout;
      const DriftReport report = report_of(opened, ids, 1, options);
      for (size_t i = 0; i < report.rows.size(); ++i) {
        EXPECT_EQ(report.rows[i].mean_kl, expected.rows[i].mean_kl) << layout << " " << threads;
        EXPECT_EQ(report.rows[i].mean_delta_logit, expected.rows[i].mean_delta_logit);
        EXPECT_EQ(report.rows[i].perplexity, expected.rows[i].perplexity);
      }
    }
  }
}

// All sessions have the window, so they differ only in the type.
TEST(Drift, TakesAWindow) {
  Opened opened(tiny::llama());
  DriftOptions options{.session = {.ctx = 40}, .candidates = {{"f32", "f32"}, {"f16", "f16"}}};
  const DriftReport all = report_of(opened, tiny::ids(80), 1, options);
  options.session.window = 6;
  options.session.sinks = 2;
  const DriftReport windowed = report_of(opened, tiny::ids(80), 1, options);
  EXPECT_NE(windowed.perplexity_f32, all.perplexity_f32);
  EXPECT_EQ(windowed.rows[0].max_delta_logit, 0);
  EXPECT_GT(windowed.rows[1].max_delta_logit, 0);
}

// One channel of V in one layer is outside the range of f16: one value for every token fed, in each of three windows.
TEST(Drift, CountsWhatSaturates) {
  tiny::Model model = tiny::llama(codec_f32(), true);
  model.at("model.layers.1.self_attn.v_proj.bias").values[3] = 70000;
  Opened opened(model);
  DriftOptions options;
  options.candidates = {{"f16", "f16"}, {"f16", "f32"}, {"f32", "f16"}, {"bf16", "bf16"}, {"f32", "f32"}};
  for (const char* layout : {"grow", "dense"}) {
    options.session = {.layout = layout, .ctx = 30};
    const DriftReport report = report_of(opened, tiny::ids(100), {}, options);
    EXPECT_EQ(report.windows, 3);
    EXPECT_EQ(report.rows[0].saturated, 3 * 29) << "the last token of a window is not fed";
    EXPECT_EQ(report.rows[1].saturated, 0);
    EXPECT_EQ(report.rows[2].saturated, 3 * 29);
    EXPECT_EQ(report.rows[3].saturated, 0);
    EXPECT_EQ(report.rows[4].saturated, 0);
    EXPECT_GT(report.rows[0].max_delta_logit, 0);
  }
}

TEST(Drift, OfTheFirstWindowsOnly) {
  Opened opened(tiny::llama());
  const std::vector<int> ids = tiny::ids(200), two(ids.begin(), ids.begin() + 80);
  DriftOptions options{.session = {.ctx = 40}, .windows = 2, .candidates = {{"q8_0", "q8_0"}}};
  std::vector<int> done;
  double last = 0;
  options.progress = [&](int n, int all, double so_far) {
    EXPECT_EQ(all, 2);
    done.push_back(n);
    last = so_far;
  };
  const DriftReport report = report_of(opened, ids, {}, options);
  EXPECT_EQ(report.windows, 2);
  EXPECT_EQ(done, (std::vector<int>{1, 2}));
  EXPECT_EQ(last, report.perplexity_f32);
  options.progress = nullptr;
  options.windows = 0;
  EXPECT_EQ(report.rows[0].mean_kl, report_of(opened, two, {}, options).rows[0].mean_kl);
}

TEST(DriftCandidates, AreEveryTypeThreeTimes) {
  const auto all = drift_candidates({});
  ASSERT_TRUE(all) << message_of(all);
  std::vector<std::string> names;
  for (const KvType& type : kv_types())
    if (type.name != "f32") names.push_back(type.name);
  ASSERT_EQ(all->size(), 3 * names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const std::span three = std::span(*all).subspan(3 * i, 3);
    EXPECT_EQ(three[0].k + " " + three[0].v, names[i] + " " + names[i]);
    EXPECT_EQ(three[1].k + " " + three[1].v, names[i] + " f32");
    EXPECT_EQ(three[2].k + " " + three[2].v, "f32 " + names[i]);
  }
  const auto some = drift_candidates(std::vector<std::string>{"q4_0h", "F16"});
  ASSERT_TRUE(some) << message_of(some);
  ASSERT_EQ(some->size(), 6u);
  EXPECT_EQ((*some)[0].k, "q4_0h");
  EXPECT_EQ((*some)[5].v, "f16") << "by its own name";
}

TEST(DriftCandidates, RefusesTypesThatAreNone) {
  const auto refusal = [](const std::vector<std::string>& types) { return message_of(drift_candidates(types)); };
  EXPECT_THAT(refusal({"q8_0", "q77"}),
              AllOf(HasSubstr("DriftOptions::candidates"), HasSubstr("q77"), HasSubstr("q4_0h")));
  EXPECT_THAT(refusal({"f32"}), HasSubstr("compared with"));
  EXPECT_THAT(refusal({"f16", "q8_0", "F16"}), HasSubstr("f16 is named twice"));
}

TEST(Drift, RefusesWhatCannotBeCompared) {
  Opened opened(tiny::llama());
  const auto refusal = [&](const std::vector<int>& ids, const DriftOptions& options) {
    return message_of(drift(opened.engine(), ids, {}, options));
  };
  const std::vector<KvPair> f16{{"f16", "f16"}};
  EXPECT_THAT(refusal(tiny::ids(40), {.session = {.ctx = 40}}), HasSubstr("no KV type"));
  EXPECT_THAT(refusal(tiny::ids(40), {.session = {.ctx = 40}, .candidates = {{"f16", "q77"}}}), HasSubstr("q77"));
  EXPECT_THAT(refusal(tiny::ids(39), {.session = {.ctx = 40}, .candidates = f16}),
              AllOf(HasSubstr("39"), HasSubstr("40")));
  EXPECT_THAT(refusal(tiny::ids(39), {.session = {.ctx = 2}, .candidates = f16}), HasSubstr("window of 2"));
  EXPECT_THAT(refusal(tiny::ids(40), {.session = {.ctx = 40}, .windows = -1, .candidates = f16}),
              HasSubstr("-1 windows"));
  EXPECT_THAT(refusal(tiny::ids(40), {.session = {.layout = "shelf", .ctx = 40}, .candidates = f16}),
              HasSubstr("shelf"));
}

}  // namespace
}  // namespace kvasir
