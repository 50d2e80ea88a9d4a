// Traces of arrivals: reading them, and the state of a replay. bench_serve.cc and src/serve run replays.
#include <kvasir/bench.h>

#include <algorithm>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lab/bench_common.h"

namespace kvasir {

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
      return fail(Error::damaged, fmt::format("follows '{}', which no earlier line names", r.after), where);
    if (!names.emplace(r.name, trace.size() - 1).second)
      return fail(Error::damaged, fmt::format("a second request named '{}'", r.name), where);
  }
  return trace;
}

std::vector<int> trace_ids(const TraceRequest::Run& run, int vocab) { return bench_ids(run.tokens, vocab, run.salt); }

// ---- the course of a replay ---------------------------------------------------------------------------------------

namespace {

Percentiles percentiles(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
  };
  return {at(0.5), at(0.95), at(0.99), values.back()};
}

}  // namespace

struct TraceReplay::Impl {
  struct State {
    std::vector<int> prompt, answer;
    double due = 0;
    std::map<int, double> last;  // choice -> time of its last token
    int tokens = 0;
  };

  void begin(size_t i) {
    const TraceRequest& t = trace[i];
    if (t.continues) {
      const State& other = states[names.at(t.after)];
      states[i].prompt = other.prompt;
      states[i].prompt.insert(states[i].prompt.end(), other.answer.begin(), other.answer.end());
    }
    for (const TraceRequest::Run& run : t.prompt) {
      const std::vector<int> ids = trace_ids(run, vocab);
      states[i].prompt.insert(states[i].prompt.end(), ids.begin(), ids.end());
    }
  }

  void end(size_t i, std::vector<int> answer, double now) {
    --under_way;
    const auto next = followers.find(i);
    if (next == followers.end()) {
      states[i] = {};  // no other request continues its text
      return;
    }
    states[i].answer = std::move(answer);
    for (const size_t follower : next->second) due.emplace(now + trace[follower].think_s, follower);
  }

  const std::vector<TraceRequest>& trace;
  int vocab;
  std::vector<State> states = {};
  std::multimap<double, size_t> due = {};
  std::map<std::string, size_t> names = {};
  std::map<size_t, std::vector<size_t>> followers = {};
  size_t under_way = 0;
  std::vector<double> first = {}, between = {}, total = {};
  std::map<std::string, std::vector<double>> first_of_owner = {};
};

TraceReplay::TraceReplay(const std::vector<TraceRequest>& trace, int vocab)
    : impl_(std::make_unique<Impl>(Impl{.trace = trace, .vocab = vocab})) {
  impl_->states.resize(trace.size());
  for (size_t i = 0; i < trace.size(); ++i) {
    impl_->names.emplace(trace[i].name, i);
    if (trace[i].after.empty())
      impl_->due.emplace(trace[i].at_s, i);
    else
      impl_->followers[impl_->names.at(trace[i].after)].push_back(i);
  }
}

TraceReplay::~TraceReplay() = default;

bool TraceReplay::is_over() const { return impl_->due.empty() && impl_->under_way == 0; }

std::optional<double> TraceReplay::next_due() const {
  return impl_->due.empty() ? std::nullopt : std::optional(impl_->due.begin()->first);
}

std::optional<size_t> TraceReplay::take_due(double now) {
  const auto next = impl_->due.begin();
  if (next == impl_->due.end() || next->first > now) return {};
  const size_t i = next->second;
  impl_->states[i].due = next->first;
  impl_->due.erase(next);
  impl_->begin(i);
  ++impl_->under_way;
  return i;
}

const std::vector<int>& TraceReplay::prompt(size_t request) const { return impl_->states[request].prompt; }

bool TraceReplay::see_tokens(size_t request, int choice, int tokens, double now) {
  Impl::State& state = impl_->states[request];
  const auto [last, is_first] = state.last.emplace(choice, now);
  if (is_first && choice == 0) {
    impl_->first.push_back(now - state.due);
    impl_->first_of_owner[impl_->trace[request].owner].push_back(now - state.due);
  }
  if (!is_first) impl_->between.push_back(now - last->second);
  last->second = now;
  const int before = state.tokens, limit = impl_->trace[request].cancel_after;
  state.tokens += tokens;
  return limit >= 0 && before < limit && state.tokens >= limit;
}

void TraceReplay::see_end(size_t request, std::vector<int> answer, double now) {
  impl_->total.push_back(now - impl_->states[request].due);
  impl_->end(request, std::move(answer), now);
}

void TraceReplay::see_failure(size_t request, double now) { impl_->end(request, {}, now); }

void TraceReplay::report(ServeReport* report, double now) const {
  report->requests = static_cast<int>(impl_->trace.size());
  report->wall_s = now;
  report->first_token_s = percentiles(impl_->first);
  for (const auto& [owner, times] : impl_->first_of_owner) report->first_token_s_of_owner[owner] = percentiles(times);
  report->between_tokens_s = percentiles(impl_->between);
  report->total_s = percentiles(impl_->total);
  report->generated_tok_s = static_cast<double>(report->stats.generated) / now;
}

}  // namespace kvasir
