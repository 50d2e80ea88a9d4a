// Requests inside the scheduler: a job is a request that was taken, its sequences are its choices. When they run is the
// scheduler's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <kvasir/scheduler.h>

#include "engine/pooler.h"

namespace kvasir::sched {

struct Job;

/// One choice. It has tokens that are known, and its session some that are computed: every pass moves the second
/// towards the first, whether they are a prompt's, a chosen one, guesses, or those of a session that was given up.
struct Sequence {
  Job* job = nullptr;
  int choice = 0;
  std::variant<Generator, Pooler> work;
  std::unique_ptr<Session> session = {};  // null: it waits
  bool forks = false;                     // it computes the prompt, and then the others of its job fork from it
  bool waits_for_prompt = false;          // one of those
  uint64_t age = 0;                       // 1 for the first sequence that was admitted; 0: never
  int reached = 0;                        // the most tokens that were computed, in any session
  int preemptions = 0, bypassed = 0;
  bool over = false;
  std::optional<double> first_token = {};  // on the scheduler's clock

  Generator* generator() { return std::get_if<Generator>(&work); }
  const Generator* generator() const { return std::get_if<Generator>(&work); }
  Pooler* pooler() { return std::get_if<Pooler>(&work); }
  std::span<const int> known() const;
  bool is_done() const;
  /// Known tokens that its session has not computed. Requires: a session.
  int lacks() const;
  /// The next tokens for its session, at most `most`, guesses included.
  Feed next(int most, std::span<const int> guesses);
  /// Whether it still computes the prompt, so that others with the same beginning may wait for it.
  bool is_prefilling() const;
};

struct Job {
  RequestId id = 0;
  Request request;
  std::vector<std::unique_ptr<Sequence>> choices;
  double submitted = 0;  // on the scheduler's clock, as the next two
  std::optional<double> admitted, deadline;
  int reused = 0, computed = 0, recomputed = 0;  // of the prompt; of the prompt; of all
  int reached = 0;                               // positions of the prompt that are reused or were computed once
  int left = 0;                                  // choices that are not over

  /// The next of the choices that wait for the prompt computes it.
  void lead_next();
  int prompt_tokens() const { return static_cast<int>(request.prompt.size()); }
};

/// Errors: an option out of range, tokens to resume for a choice that there is not.
Result<std::unique_ptr<Job>> make_job(const std::shared_ptr<const Model>& model, Request request);

/// The last event of a choice that has ended, at `now`.
Finished finished(const Sequence& sequence, double now);

}  // namespace kvasir::sched
