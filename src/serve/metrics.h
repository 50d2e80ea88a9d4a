// The server's metrics in Prometheus' text format, under Kvasir's names and optionally vLLM's too.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kvasir/scheduler.h>

#include "serve/api/answer.h"

namespace kvasir::serve {

class Metrics {
 public:
  /// `vllm_names`: also export the names that dashboards made for vLLM use.
  explicit Metrics(bool vllm_names);
  ~Metrics();

  void first_token(const std::string& model, double seconds);
  void between_tokens(const std::string& model, double seconds);
  void over(const std::string& model, const AnswerRecord& record);

  /// Records that a model is unloaded: its counters stay, its gauges become 0.
  void put_away(const std::string& model, const SchedulerStats& last);

  struct ModelState {
    std::string name;
    SchedulerStats stats;
  };
  /// Returns all metrics as text. `models`: the models that are loaded now.
  std::string text(const std::vector<ModelState>& models, int connections);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvasir::serve
