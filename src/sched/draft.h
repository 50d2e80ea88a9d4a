// Draft tokens from a smaller model, with one draft session per sequence. The large model's logits decide which draft
// tokens are accepted, so nothing here can change an answer.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include <kvasir/engine.h>

namespace kvasir::sched {

class Draft {
 public:
  /// Errors: a vocabulary other than the large model's, and those of Engine::create().
  static Result<std::unique_ptr<Draft>> create(const Model& large, std::shared_ptr<const Model> small, int threads,
                                               const SessionOptions& session);

  /// A sequence's tokens, and the number of tokens to draft.
  struct Ask {
    const void* sequence;
    std::span<const int> text;
    int most;
  };
  /// Drafts the likeliest next tokens of each sequence, all in the same passes. Returns fewer, or none, for a sequence
  /// if the small model runs out of memory or context.
  std::vector<std::vector<int>> guess(std::span<const Ask> asks);
  /// Closes the draft session of a sequence that has ended or was preempted.
  void forget(const void* sequence) { sessions_.erase(sequence); }

 private:
  Draft(std::unique_ptr<Engine> engine, SessionOptions session)
      : engine_(std::move(engine)), options_(std::move(session)) {}
  Session* follow(const Ask& ask);

  std::unique_ptr<Engine> engine_;
  SessionOptions options_;
  std::map<const void*, Session> sessions_;
};

}  // namespace kvasir::sched
