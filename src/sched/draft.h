// Guesses by a smaller model: for each sequence a session of its own, which follows the sequence's text. Whether a
// guess is right is decided by the rows of the large model, so that nothing here can change an answer.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include <kvasir/engine.h>

namespace kvasir::sched {

class Draft {
 public:
  /// Errors: a vocabulary other than the large model's, those of Engine::create().
  static Result<std::unique_ptr<Draft>> create(const Model& large, std::shared_ptr<const Model> small, int threads,
                                               const SessionOptions& session);

  /// A sequence's text, and how many tokens are to be guessed.
  struct Ask {
    const void* sequence;
    std::span<const int> text;
    int most;
  };
  /// The likeliest next tokens of each, all in the same passes; fewer, or none, where the memory or the context of the
  /// small model ends.
  std::vector<std::vector<int>> guess(std::span<const Ask> asks);
  /// The sequence has ended or waits.
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
