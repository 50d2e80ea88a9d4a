// Perplexity compared with a plain computation over the logits of whole windows.
#include "lab/perplexity.h"

#include <cmath>
#include <numeric>

#include "tests/support/engines.h"

namespace kvasir {
namespace {

using engine_test::AllOf;
using engine_test::HasSubstr;
using engine_test::message_of;
using engine_test::Opened;

// A text that suits the model tales, long enough for several windows of 64.
constexpr std::string_view kText =
    "Once upon a time, there was a little fox who lived near the river. Every morning the fox walked to the water "
    "and looked at the fish. One day a big bear came and asked, \"Why do you look at the fish and never catch one?\" "
    "The fox said, \"I like to see them swim. They are my friends.\" The bear thought about it for a long time. Then "
    "he sat down next to the fox, and they watched the fish together until the sun went down. The next day the bear "
    "brought some bread, and the two new friends shared it with the fish. They were all very happy, and the fox "
    "learned that it is good to share what you love.";

struct Expected {
  double perplexity = 0, standard_error = 0;
  size_t scored = 0;
};

// Feeds every window at once; sums in long double, log of the probability, textbook variance.
Expected computed(Opened& opened, const std::vector<int>& ids, std::optional<int> bos, size_t ctx, size_t windows) {
  const auto vocab = static_cast<size_t>(opened.model().info().vocab);
  std::vector<long double> nll;
  for (size_t w = 0; w < windows; ++w) {
    std::vector<int> window(ids.begin() + static_cast<std::ptrdiff_t>(w * ctx),
                            ids.begin() + static_cast<std::ptrdiff_t>((w + 1) * ctx));
    if (bos) window[0] = *bos;
    Session session = opened.session();
    engine_test::Copied out;
    const Feed feed{.session = &session, .tokens = window, .logits = Logits::all};
    EXPECT_TRUE(engine_test::step(opened.engine(), {&feed, 1}, &out));
    for (size_t t = ctx / 2 + 1; t < ctx; ++t) {
      long double sum = 0;
      for (size_t id = 0; id < vocab; ++id) sum += std::exp(static_cast<long double>(out.logits[(t - 1) * vocab + id]));
      const auto logit = static_cast<long double>(out.logits[(t - 1) * vocab + static_cast<size_t>(window[t])]);
      nll.push_back(-std::log(std::exp(logit) / sum));
    }
  }
  const auto n = static_cast<long double>(nll.size());
  const long double mean = std::accumulate(nll.begin(), nll.end(), 0.0L) / n;
  long double variance = 0;
  for (long double x : nll) variance += (x - mean) * (x - mean) / (n - 1);
  return {static_cast<double>(std::exp(mean)), static_cast<double>(std::exp(mean) * std::sqrt(variance / n)),
          nll.size()};
}

PerplexityReport report_of(Opened& opened, const std::vector<int>& ids, std::optional<int> bos,
                           const PerplexityOptions& options) {
  const auto report = perplexity(opened.engine(), ids, bos, options);
  EXPECT_TRUE(report) << message_of(report);
  return report ? *report : PerplexityReport{};
}

TEST(Perplexity, IsWhatTheLogitsSay) {
  Opened opened("tales");
  const std::vector<int> ids = *opened.model().tokenizer()->encode(kText);
  ASSERT_GE(ids.size(), 128u);
  for (const int ctx : {64, 63, 33}) {
    const auto size = static_cast<size_t>(ctx), windows = ids.size() / size;
    for (const std::optional<int> bos : {std::optional<int>(), std::optional<int>(17)}) {
      const Expected expected = computed(opened, ids, bos, size, windows);
      const PerplexityReport report = report_of(opened, ids, bos, {.session = {.ctx = ctx}});
      EXPECT_EQ(report.windows, static_cast<int>(windows));
      EXPECT_EQ(report.scored, static_cast<int64_t>(windows * (size - size / 2 - 1)));
      EXPECT_EQ(report.scored, static_cast<int64_t>(expected.scored));
      EXPECT_EQ(report.tokens, static_cast<int64_t>(ids.size()));
      EXPECT_NEAR(report.perplexity, expected.perplexity, 1e-11 * expected.perplexity) << ctx;
      EXPECT_NEAR(report.standard_error, expected.standard_error, 1e-9 * expected.standard_error) << ctx;
      EXPECT_DOUBLE_EQ(report.perplexity, std::exp(report.nll));
    }
  }
}

// More logits than are in memory at once, and windows longer than an attention tile and a prefill chunk.
TEST(Perplexity, OfLongWindowsToo) {
  Opened opened("tales");
  const std::vector<int> ids = tiny::ids(700, 1, 4096);
  const Expected expected = computed(opened, ids, 3, 600, 1);
  const PerplexityReport report = report_of(opened, ids, 3, {.session = {.ctx = 600}});
  EXPECT_EQ(report.scored, 299);
  EXPECT_NEAR(report.perplexity, expected.perplexity, 1e-11 * expected.perplexity);
  EXPECT_NEAR(report.standard_error, expected.standard_error, 1e-9 * expected.standard_error);
}

TEST(Perplexity, IsTheSameHoweverItIsComputed) {
  const std::vector<int> ids = tiny::ids(200);
  Opened plain(tiny::llama());
  const PerplexityReport expected = report_of(plain, ids, 1, {.session = {.ctx = 40}});
  EXPECT_EQ(expected.windows, 5);
  for (const int threads : {1, 3}) {
    Opened opened(tiny::llama(), {.threads = threads, .prefill_chunk = 7});
    for (const char* layout : {"grow", "dense", "concat", "none"}) {
      const PerplexityReport report = report_of(opened, ids, 1, {.session = {.layout = layout, .ctx = 40}});
      EXPECT_EQ(report.nll, expected.nll) << layout << " " << threads;
      EXPECT_EQ(report.standard_error, expected.standard_error);
    }
  }
  const SessionOptions narrow{.ctx = 40, .kv_type_k = "bf16", .kv_type_v = "bf16"};
  EXPECT_NE(report_of(plain, ids, 1, {.session = narrow}).nll, expected.nll);
}

TEST(Perplexity, OfTheFirstWindowsOnly) {
  Opened opened(tiny::llama());
  const std::vector<int> ids = tiny::ids(200), two(ids.begin(), ids.begin() + 80);
  std::vector<int> done;
  PerplexityOptions options{.session = {.ctx = 40}, .windows = 2};
  double last = 0;
  options.progress = [&](int n, int all, double so_far) {
    EXPECT_EQ(all, 2);
    done.push_back(n);
    last = so_far;
  };
  const PerplexityReport report = report_of(opened, ids, {}, options);
  EXPECT_EQ(report.windows, 2);
  EXPECT_EQ(report.tokens, 200);
  EXPECT_EQ(report.nll, report_of(opened, two, {}, {.session = {.ctx = 40}}).nll);
  EXPECT_EQ(done, (std::vector<int>{1, 2}));
  EXPECT_EQ(last, report.perplexity);
  options.windows = 99;
  options.progress = nullptr;
  EXPECT_EQ(report_of(opened, ids, {}, options).windows, 5) << "as many as there are";
}

TEST(Perplexity, OfOneTokenHasNoKnownError) {
  Opened opened(tiny::llama());
  const std::vector<int> ids = tiny::ids(3);
  const Expected expected = computed(opened, ids, {}, 3, 1);
  const PerplexityReport report = report_of(opened, ids, {}, {.session = {.ctx = 3}});
  EXPECT_EQ(report.scored, 1);
  EXPECT_NEAR(report.perplexity, expected.perplexity, 1e-11 * expected.perplexity);
  EXPECT_EQ(report.standard_error, 0);
}

TEST(Perplexity, RefusesWhatCannotBeScored) {
  Opened opened(tiny::llama());
  const auto refusal = [&](const std::vector<int>& ids, std::optional<int> bos, const PerplexityOptions& options) {
    return message_of(perplexity(opened.engine(), ids, bos, options));
  };
  const int vocab = opened.model().info().vocab, most = opened.model().info().max_ctx;
  EXPECT_THAT(refusal(tiny::ids(39), {}, {.session = {.ctx = 40}}), AllOf(HasSubstr("39"), HasSubstr("40")));
  EXPECT_THAT(refusal({}, {}, {.session = {.ctx = 40}}), HasSubstr("40"));
  EXPECT_THAT(refusal(tiny::ids(39), {}, {.session = {.ctx = 2}}), HasSubstr("window of 2"));
  EXPECT_THAT(refusal(tiny::ids(40), {}, {.session = {.ctx = 40}, .windows = -1}), HasSubstr("-1 windows"));
  EXPECT_THAT(refusal(tiny::ids(40), {}, {.session = {.ctx = most + 1}}), HasSubstr(std::to_string(most)));
  std::vector<int> ids = tiny::ids(40);
  ids.back() = vocab;  // scored, never fed
  EXPECT_THAT(refusal(ids, {}, {.session = {.ctx = 40}}), HasSubstr(std::to_string(vocab)));
  ids.back() = -1;
  EXPECT_THAT(refusal(ids, {}, {.session = {.ctx = 40}}), HasSubstr("-1"));
  EXPECT_THAT(refusal(tiny::ids(40), vocab, {.session = {.ctx = 40}}), HasSubstr(std::to_string(vocab)));
}

}  // namespace
}  // namespace kvasir
