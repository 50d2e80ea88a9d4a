// Measures what a reused prefix saves, and what the lookup costs if there is none.
#include <kvasir/bench.h>

#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include <kvasir/generate.h>
#include <kvasir/plan.h>

#include "base/clock.h"
#include "base/ranges.h"
#include "lab/bench_common.h"

namespace kvasir {
namespace {

namespace fs = std::filesystem;

GenerateOptions one_token(bool whole_text) {
  GenerateOptions options;
  options.sampling = {.temperature = 0};
  options.max_tokens = 1;
  options.ignore_eos = true;
  options.receipt = true;
  options.whole_text = whole_text;
  return options;
}

// Time to tokenise a text of about `tokens` tokens (made by decoding arbitrary ids), scaled to exactly that many.
Result<double> tokenise_ms(const Model& model, int tokens) {
  if (model.tokenizer() == nullptr) return 0;
  StreamDecoder decoder(model.tokenizer());
  std::string text;
  for (const int id : bench_ids(tokens, model.info().vocab, 9)) text += decoder.push(id);
  text += decoder.finish();
  const double start = now_seconds();
  KVASIR_TRY(const auto ids, model.tokenizer()->encode(text));
  const double ms = (now_seconds() - start) * 1e3;
  return ids.empty() ? 0 : ms * tokens / static_cast<double>(ids.size());
}

class PrefixBench {
 public:
  PrefixBench(Engine& engine, const PrefixOptions& options)
      : engine_(engine),
        o_(options),
        file_(fs::temp_directory_path() / fmt::format("kvasir-bench-{}.kv", ::getpid())) {}
  ~PrefixBench() {
    std::error_code ec;
    fs::remove(file_, ec);
  }

  Result<void> repeat(int round) {
    const int vocab = engine_.model().info().vocab;
    SessionOptions session = o_.session;
    session.salt = std::to_string(round);  // no prefix of another round is reused
    const std::vector<int> shared = bench_ids(o_.shared, vocab, 10 + 3 * round);
    const std::vector<int> first = joined(shared, 11 + 3 * round), second = joined(shared, 12 + 3 * round);
    KVASIR_TRY(Session cold, engine_.open_session(session));
    KVASIR_TRY(const Generation miss, generate(engine_, cold, first, one_token(true)));
    cold_.push_back(miss.stats.ttft_ms);
    miss_.push_back(miss.stats.reuse_ms + miss.stats.keep_ms);
    KVASIR_CHECK(known_beginning(session, second));
    KVASIR_CHECK(cold.truncate(o_.shared));
    KVASIR_CHECK(cold.save(file_.string()));
    KVASIR_CHECK(from_file(session, second));
    return suffix_alone(cold, second);
  }

  PrefixReport report() const {
    PrefixReport r{.shared = o_.shared, .suffix = o_.suffix};
    r.ttft_cold_ms = median(cold_);
    r.ttft_hit_ms = median(hit_);
    r.ttft_snapshot_ms = median(snapshot_);
    r.suffix_ms = median(suffix_);
    r.miss_ms = median(miss_);
    std::error_code ec;
    r.snapshot_bytes = fs::file_size(file_, ec);
    return r;
  }

 private:
  std::vector<int> joined(std::vector<int> shared, int salt) const {
    const std::vector<int> more = bench_ids(o_.suffix, engine_.model().info().vocab, salt);
    shared.insert(shared.end(), more.begin(), more.end());
    return shared;
  }

  Result<void> known_beginning(const SessionOptions& options, const std::vector<int>& text) {
    KVASIR_TRY(Session session, engine_.open_session(options));
    KVASIR_TRY(const Generation g, generate(engine_, session, text, one_token(true)));
    if (g.cached_tokens < o_.shared)
      return fail(Error::bad_argument, fmt::format("only {} of {} tokens were reused", g.cached_tokens, o_.shared),
                  "SessionOptions::layout", "SessionOptions::layout = paged");
    hit_.push_back(g.stats.ttft_ms);
    receipt_ = g.receipt;
    return {};
  }

  Result<void> from_file(const SessionOptions& options, const std::vector<int>& text) {
    KVASIR_TRY(Session session, engine_.open_session(options));
    const double start = now_seconds();
    KVASIR_CHECK(session.load(file_.string()));
    const double loaded = now_seconds();
    const std::span<const int> suffix = std::span(text).subspan(static_cast<size_t>(o_.shared));
    KVASIR_TRY(const Generation g, generate(engine_, session, suffix, one_token(false)));
    snapshot_.push_back((loaded - start) * 1e3 + g.stats.ttft_ms);
    return same(g);
  }

  // The suffix in the session that computed the prefix.
  Result<void> suffix_alone(Session& session, const std::vector<int>& text) {
    const std::span<const int> suffix = std::span(text).subspan(static_cast<size_t>(o_.shared));
    KVASIR_TRY(const Generation g, generate(engine_, session, suffix, one_token(false)));
    suffix_.push_back(g.stats.ttft_ms);
    return same(g);
  }

  Result<void> same(const Generation& g) const {
    if (g.receipt == receipt_) return {};
    return fail(Error::internal, "a reused prefix changed the answer; no time is shown", "bench_prefix",
                "please report this");
  }

  Engine& engine_;
  const PrefixOptions& o_;
  const fs::path file_;
  std::vector<double> cold_, hit_, snapshot_, suffix_, miss_;
  std::string receipt_;
};

}  // namespace

Result<PrefixReport> bench_prefix(const std::shared_ptr<const Model>& model, const PrefixOptions& o) {
  KVASIR_CHECK(check_at_least(o.shared, 1, "tokens", "PrefixOptions::shared"));
  KVASIR_CHECK(check_at_least(o.suffix, 1, "tokens that follow", "PrefixOptions::suffix"));
  KVASIR_CHECK(check_at_least(o.repeats, 1, "repeats", "PrefixOptions::repeats"));
  PlanRequest request;
  request.model = model->info().path;
  request.session = o.session;
  KVASIR_TRY(const PlanReport planned, plan(request));
  // Enough for the texts of one round; those of earlier rounds are evicted.
  const size_t room = planned.kv_bytes_per_token * static_cast<size_t>(o.shared + o.suffix + 64) * 3 / 2;
  KVASIR_TRY(const auto engine, Engine::create(model, {.threads = o.threads, .prefix_ram = room}));
  KVASIR_CHECK(model->fingerprint());
  KVASIR_CHECK(PrefixBench(*engine, o).repeat(0));  // untimed: allocates and warms the memory
  PrefixBench bench(*engine, o);
  for (int round = 1; round <= o.repeats; ++round) KVASIR_CHECK(bench.repeat(round));
  PrefixReport report = bench.report();
  KVASIR_TRY(report.tokenise_ms, tokenise_ms(*model, o.shared + o.suffix));
  return report;
}

}  // namespace kvasir
