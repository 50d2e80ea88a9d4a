// Metrics on top of prometheus-cpp's core. The scheduler keeps its own counts; a scrape adds their increase.
#include "serve/metrics.h"

#include <functional>
#include <limits>
#include <map>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace kvasir::serve {
namespace {

using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;

const Buckets kRequestSeconds{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300};
const Buckets kTokenSeconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5};

// A value of the scheduler, with its name and vLLM's.
struct Value {
  const char* name;
  const char* vllm;  // "" if vLLM has no such metric
  const char* help;
  std::function<double(const SchedulerStats&)> of;
};

double share(const SchedulerStats& s) {
  if (s.kv_capacity == 0 || s.kv_capacity == std::numeric_limits<size_t>::max()) return 0;
  return static_cast<double>(s.kv_used) / static_cast<double>(s.kv_capacity);
}

const std::vector<Value>& gauges() {
  static const std::vector<Value> all{
      {"kvasir_requests_running", "vllm:num_requests_running", "Sequences that hold KV memory",
       [](const SchedulerStats& s) { return s.running; }},
      {"kvasir_requests_waiting", "vllm:num_requests_waiting", "Sequences that wait for KV memory",
       [](const SchedulerStats& s) { return s.waiting; }},
      {"kvasir_kv_bytes", "", "Bytes of KV blocks held by sequences and by the prefix cache",
       [](const SchedulerStats& s) { return static_cast<double>(s.kv_used); }},
      {"kvasir_kv_usage", "vllm:kv_cache_usage_perc", "Share of the KV budget in use, 0 to 1; 0 without a budget",
       share},
  };
  return all;
}

const std::vector<Value>& counters() {
  const auto number = [](int64_t SchedulerStats::*field) {
    return [field](const SchedulerStats& s) { return static_cast<double>(s.*field); };
  };
  static const std::vector<Value> all{
      {"kvasir_prompt_tokens_computed_total", "", "Prompt tokens computed", number(&SchedulerStats::computed)},
      {"kvasir_prompt_tokens_reused_total", "vllm:prefix_cache_hits_total", "Prompt tokens reused from the cache",
       number(&SchedulerStats::reused)},
      {"kvasir_tokens_recomputed_total", "", "Tokens computed again after preemptions",
       number(&SchedulerStats::recomputed)},
      {"kvasir_tokens_generated_total", "vllm:generation_tokens_total", "Tokens generated",
       number(&SchedulerStats::generated)},
      {"kvasir_preemptions_total", "vllm:num_preemptions_total", "Sequences preempted for memory",
       number(&SchedulerStats::preemptions)},
      {"kvasir_passes_total", "", "Forward passes", number(&SchedulerStats::passes)},
      {"kvasir_pass_tokens_total", "", "Tokens in forward passes", number(&SchedulerStats::pass_tokens)},
      {"kvasir_tokens_guessed_total", "vllm:spec_decode_num_draft_tokens_total", "Draft tokens",
       number(&SchedulerStats::guessed)},
      {"kvasir_tokens_accepted_total", "vllm:spec_decode_num_accepted_tokens_total", "Draft tokens accepted",
       number(&SchedulerStats::accepted)},
  };
  return all;
}

}  // namespace

struct Metrics::Impl {
  using Histograms = prometheus::Family<Histogram>;

  bool vllm;
  prometheus::Registry registry;
  std::vector<std::pair<Histograms*, const Buckets*>> first, between, request;
  prometheus::Family<prometheus::Counter>* requests;
  prometheus::Gauge* connections;
  std::map<std::pair<std::string, std::string>, double> last;  // last value of counters, by name and model

  explicit Impl(bool vllm_names) : vllm(vllm_names) {
    add(&first, "kvasir_first_token_seconds", "vllm:time_to_first_token_seconds", "Seconds to the first token",
        kRequestSeconds);
    add(&between, "kvasir_between_tokens_seconds", "vllm:inter_token_latency_seconds", "Seconds between two tokens",
        kTokenSeconds);
    add(&request, "kvasir_request_seconds", "vllm:e2e_request_latency_seconds", "Seconds to the end of the answer",
        kRequestSeconds);
    requests = &prometheus::BuildCounter().Name("kvasir_requests_total").Help("Requests by status").Register(registry);
    connections =
        &prometheus::BuildGauge().Name("kvasir_connections").Help("Open connections").Register(registry).Add({});
  }

  void add(std::vector<std::pair<Histograms*, const Buckets*>>* list, const char* name, const char* vllm_name,
           const char* help, const Buckets& buckets) {
    list->emplace_back(&prometheus::BuildHistogram().Name(name).Help(help).Register(registry), &buckets);
    if (vllm) list->emplace_back(&prometheus::BuildHistogram().Name(vllm_name).Help(help).Register(registry), &buckets);
  }

  static void observe(const std::vector<std::pair<Histograms*, const Buckets*>>& list, const std::string& model,
                      double seconds) {
    for (const auto& [family, buckets] : list) family->Add({{"model_name", model}}, *buckets).Observe(seconds);
  }

  std::vector<const char*> names_of(const Value& value) const {
    std::vector<const char*> names{value.name};
    if (vllm && *value.vllm != '\0') names.push_back(value.vllm);
    return names;
  }

  // A value below the last one comes from a new scheduler, which counts from 0.
  double increase(const std::string& name, const std::string& model, double value) {
    const double before = std::exchange(last[{name, model}], value);
    return value >= before ? value - before : value;
  }

  void take(const ModelState& model) {
    for (const Value& value : gauges())
      for (const char* name : names_of(value))
        prometheus::BuildGauge()
            .Name(name)
            .Help(value.help)
            .Register(registry)
            .Add({{"model_name", model.name}})
            .Set(value.of(model.stats));
    for (const Value& value : counters())
      for (const char* name : names_of(value)) {
        auto& counter =
            prometheus::BuildCounter().Name(name).Help(value.help).Register(registry).Add({{"model_name", model.name}});
        counter.Increment(increase(name, model.name, value.of(model.stats)));
      }
  }
};

Metrics::Metrics(bool vllm_names) : impl_(std::make_unique<Impl>(vllm_names)) {}
Metrics::~Metrics() = default;

void Metrics::first_token(const std::string& model, double seconds) { Impl::observe(impl_->first, model, seconds); }

void Metrics::between_tokens(const std::string& model, double seconds) {
  Impl::observe(impl_->between, model, seconds);
}

void Metrics::over(const std::string& model, const AnswerRecord& record) {
  const std::string status = record.gone ? "gone" : std::to_string(record.status);
  impl_->requests->Add({{"model_name", model}, {"status", status}}).Increment();
  if (record.status == 200 && !record.gone) Impl::observe(impl_->request, model, record.total_s);
}

void Metrics::put_away(const std::string& model, const SchedulerStats& last) {
  impl_->take({model, last});
  impl_->take({model, {}});
}

std::string Metrics::text(const std::vector<ModelState>& models, int connections) {
  impl_->connections->Set(connections);
  for (const ModelState& model : models) impl_->take(model);
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace kvasir::serve
