// What the server counts, for Prometheus: its text format, under Kvasir's names and, if asked, vLLM's too.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kvasir/scheduler.h>

#include "serve/api/answer.h"

namespace kvasir::serve {

class Metrics {
 public:
  /// `vllm_names`: what dashboards made for vLLM look for, besides.
  explicit Metrics(bool vllm_names);
  ~Metrics();

  void first_token(const std::string& model, double seconds);
  void between_tokens(const std::string& model, double seconds);
  void over(const std::string& model, const AnswerRecord& record);

  /// A model that is put away: its counters stay, what it held is gone.
  void put_away(const std::string& model, const SchedulerStats& last);

  struct ModelState {
    std::string name;
    SchedulerStats stats;
  };
  /// All of it as text. `models`: those that are loaded now.
  std::string text(const std::vector<ModelState>& models, int connections);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvasir::serve
