// Requests inside the scheduler: a job is a submitted request, and each of its sequences is one choice. The scheduler
// decides when they run.
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

/// One choice. known() are its tokens so far; its session has computed a prefix of them, and every pass computes more,
/// whether they are prompt tokens, a chosen token, draft tokens, or tokens of a session that was closed by preemption.
struct Sequence {
  Job* job = nullptr;
  int choice = 0;
  std::variant<Generator, Pooler> work;
  std::unique_ptr<Session> session = {};  // null while it waits
  bool forks = false;                     // it computes the prompt, from which its job's other choices fork
  bool waits_for_prompt = false;          // it forks from that sequence
  uint64_t age = 0;                       // order of first admission, from 1; 0: not admitted yet
  int reached = 0;                        // largest number of tokens that any of its sessions computed
  int preemptions = 0, bypassed = 0;
  bool over = false;
  std::optional<double> first_token = {};  // on the scheduler's clock

  Generator* generator() { return std::get_if<Generator>(&work); }
  const Generator* generator() const { return std::get_if<Generator>(&work); }
  Pooler* pooler() { return std::get_if<Pooler>(&work); }
  std::span<const int> known() const;
  bool is_done() const;
  /// Number of known tokens that its session has not computed. Requires: a session.
  int lacks() const;
  /// The next tokens to feed, at most `most`, draft tokens included.
  Feed next(int most, std::span<const int> guesses);
  /// Whether it still computes the prompt, so that others with the same prefix may wait for it.
  bool is_prefilling() const;
};

struct Job {
  RequestId id = 0;
  Request request;
  std::vector<std::unique_ptr<Sequence>> choices;
  double submitted = 0;  // on the scheduler's clock, as are the next two
  std::optional<double> admitted, deadline;
  int reused = 0, computed = 0, recomputed = 0;  // prompt tokens; prompt tokens; all tokens
  int reached = 0;                               // positions of the prompt that were reused or computed at least once
  int left = 0;                                  // choices that are not over

  /// Makes the next choice that waits for the prompt compute it.
  void lead_next();
  int prompt_tokens() const { return static_cast<int>(request.prompt.size()); }
};

/// Errors: an option out of range, tokens to resume for a choice that does not exist.
Result<std::unique_ptr<Job>> make_job(const std::shared_ptr<const Model>& model, Request request);

/// The last event of a choice that ends at `now`.
Finished finished(const Sequence& sequence, double now);

}  // namespace kvasir::sched
