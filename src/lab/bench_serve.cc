// A trace of arrivals, replayed through the scheduler without sockets.
#include <kvasir/bench.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/system.h"
#include "lab/bench_parts.h"

namespace kvasir {

// ---- traces -------------------------------------------------------------------------------------------------------

namespace {

using Json = nlohmann::json;

TraceRequest request_of(const Json& line) {
  TraceRequest r;
  r.name = line.at("name").get<std::string>();
  r.at_s = line.value("at", 0.0);
  r.after = line.value("after", "");
  r.think_s = line.value("think", 0.0);
  r.continues = line.value("continues", false);
  for (const Json& run : line.at("prompt"))
    r.prompt.push_back({run.at("tokens").get<int>(), run.at("salt").get<int>()});
  r.max_tokens = line.value("max_tokens", r.max_tokens);
  r.choices = line.value("choices", r.choices);
  r.owner = line.value("owner", "");
  r.weight = line.value("weight", r.weight);
  r.priority = line.value("priority", r.priority);
  r.cancel_after = line.value("cancel_after", r.cancel_after);
  return r;
}

}  // namespace

Result<std::vector<TraceRequest>> read_trace(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail(Error::not_found, "no such trace", path, "a file of docs/formats/trace.md");
  std::vector<TraceRequest> trace;
  std::map<std::string, size_t> names;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    if (text.empty()) continue;
    const std::string where = fmt::format("{}:{}", path, number);
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object()) return fail(Error::damaged, "not a JSON object", where, "one request a line");
    try {
      trace.push_back(request_of(line));
    } catch (const Json::exception& e) {
      return fail(Error::damaged, e.what(), where, "docs/formats/trace.md");
    }
    const TraceRequest& r = trace.back();
    if (!r.after.empty() && !names.contains(r.after))
      return fail(Error::damaged, fmt::format("comes after '{}', which does not come before it", r.after), where);
    if (!names.emplace(r.name, trace.size() - 1).second)
      return fail(Error::damaged, fmt::format("a second request '{}'", r.name), where);
  }
  return trace;
}

// ---- the replay ---------------------------------------------------------------------------------------------------

namespace {

/// Which requests are due when, what has come of each, and the times that are reported.
class Replay {
 public:
  Replay(const std::vector<TraceRequest>& trace, int vocab) : trace_(trace), vocab_(vocab), states_(trace.size()) {
    for (size_t i = 0; i < trace.size(); ++i)
      if (trace[i].after.empty())
        due_.emplace(trace[i].at_s, i);
      else
        followers_[trace[i].after].push_back(i);
  }

  bool is_over() const { return due_.empty() && ids_.empty(); }
  std::optional<double> next_due() const { return due_.empty() ? std::nullopt : std::optional(due_.begin()->first); }

  /// Hands over all that is due at `now`.
  Result<void> submit(Scheduler& scheduler, double now) {
    while (!due_.empty() && due_.begin()->first <= now) {
      const size_t i = due_.begin()->second;
      states_[i].due = due_.begin()->first;
      due_.erase(due_.begin());
      KVASIR_TRY(const RequestId id, scheduler.submit(make(i)));
      ids_[id] = i;
      states_[i].left = trace_[i].choices;
    }
    return {};
  }

  void see(Scheduler& scheduler, std::span<RequestEvent> events, double now) {
    for (RequestEvent& event : events) {
      const size_t i = ids_.at(event.request);
      if (const auto* news = std::get_if<Event>(&event.news)) see_tokens(scheduler, event, i, *news, now);
      if (const auto* done = std::get_if<Finished>(&event.news)) {
        if (event.choice == 0) states_[i].answer = done->generation.tokens;
        see_end(event.request, i, now);
      }
      if (std::holds_alternative<Error>(event.news)) see_end(event.request, i, now);
    }
  }

  Percentiles first_tokens() const { return percentiles(first_); }
  std::map<std::string, Percentiles> first_tokens_of_owners() const {
    std::map<std::string, Percentiles> all;
    for (const auto& [owner, times] : first_of_owner_) all[owner] = percentiles(times);
    return all;
  }
  Percentiles between_tokens() const { return percentiles(between_); }
  Percentiles totals() const { return percentiles(total_); }

 private:
  struct State {
    std::vector<int> prompt, answer;
    double due = 0;
    std::map<int, double> last;  // of each choice, its last token
    int left = 0, tokens = 0;
  };

  Request make(size_t i) {
    const TraceRequest& t = trace_[i];
    State& state = states_[i];
    if (t.continues) {
      const auto before = std::find_if(trace_.begin(), trace_.end(), [&](const auto& r) { return r.name == t.after; });
      const State& other = states_[static_cast<size_t>(before - trace_.begin())];
      state.prompt = other.prompt;
      state.prompt.insert(state.prompt.end(), other.answer.begin(), other.answer.end());
    }
    for (const TraceRequest::Run& run : t.prompt) {
      const std::vector<int> ids = bench_ids(run.tokens, vocab_, run.salt);
      state.prompt.insert(state.prompt.end(), ids.begin(), ids.end());
    }
    Request request{.prompt = state.prompt};
    request.options.sampling = {.temperature = 0};
    request.options.max_tokens = t.max_tokens;
    request.options.ignore_eos = true;
    request.choices = t.choices;
    request.owner = t.owner;
    request.weight = t.weight;
    request.priority = t.priority;
    return request;
  }

  void see_tokens(Scheduler& scheduler, const RequestEvent& event, size_t i, const Event& news, double now) {
    State& state = states_[i];
    const auto [last, is_first] = state.last.emplace(event.choice, now);
    if (is_first && event.choice == 0) {
      first_.push_back(now - state.due);
      first_of_owner_[trace_[i].owner].push_back(now - state.due);
    }
    if (!is_first) between_.push_back(now - last->second);
    last->second = now;
    const int before = state.tokens, limit = trace_[i].cancel_after;
    state.tokens += static_cast<int>(news.ids.size());
    if (limit >= 0 && before < limit && state.tokens >= limit) scheduler.cancel(event.request);
  }

  void see_end(RequestId id, size_t i, double now) {
    if (--states_[i].left > 0) return;
    total_.push_back(now - states_[i].due);
    const auto next = followers_.find(trace_[i].name);
    if (next == followers_.end())
      states_[i] = {};  // nobody goes on with its text
    else
      for (const size_t follower : next->second) due_.emplace(now + trace_[follower].think_s, follower);
    ids_.erase(id);
  }

  static Percentiles percentiles(std::vector<double> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    const auto at = [&](double part) {
      return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
    };
    return {at(0.5), at(0.95), at(0.99), values.back()};
  }

  const std::vector<TraceRequest>& trace_;
  int vocab_;
  std::vector<State> states_;
  std::multimap<double, size_t> due_;
  std::map<std::string, std::vector<size_t>> followers_;
  std::map<RequestId, size_t> ids_;
  std::vector<double> first_, between_, total_;
  std::map<std::string, std::vector<double>> first_of_owner_;
};

}  // namespace

Result<ServeReport> bench_serve(const std::shared_ptr<const Model>& model, const ServeOptions& options) {
  KVASIR_TRY(const auto engine, Engine::create(model, options.engine));
  KVASIR_CHECK(model->fingerprint());  // kept texts need it, and reading all weights is no request's time
  SchedulerOptions scheduling = options.scheduler;
  scheduling.max_queue = std::max(scheduling.max_queue, static_cast<int>(options.trace.size()));
  scheduling.max_queue_tokens = INT64_MAX / 2;
  KVASIR_TRY(const auto scheduler, Scheduler::create(*engine, scheduling));
  Replay replay(options.trace, model->info().vocab);
  ServeReport report;
  const double start = now_seconds();
  const auto now = [start] { return now_seconds() - start; };
  while (!replay.is_over()) {
    KVASIR_CHECK(replay.submit(*scheduler, now()));
    const bool ran =
        scheduler->run_once([&](std::span<RequestEvent> events) { replay.see(*scheduler, events, now()); });
    report.peak_kv_bytes = std::max(report.peak_kv_bytes, engine->kv_used());
    const auto next = replay.next_due();
    if (!ran && next && *next > now()) std::this_thread::sleep_for(std::chrono::duration<double>(*next - now()));
  }
  report.stats = scheduler->stats();
  report.requests = static_cast<int>(options.trace.size());
  report.wall_s = now();
  report.first_token_s = replay.first_tokens();
  report.first_token_s_of_owner = replay.first_tokens_of_owners();
  report.between_tokens_s = replay.between_tokens();
  report.total_s = replay.totals();
  report.generated_tok_s = static_cast<double>(report.stats.generated) / report.wall_s;
  report.peak_rss_bytes = peak_rss_bytes();
  return report;
}

}  // namespace kvasir
