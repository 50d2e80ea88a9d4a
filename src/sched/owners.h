// Fair shares between owners: virtual token counters, as in "Fairness in Serving Large Language Models" (Sheng et al.,
// OSDI 2024). order.h orders the requests of one owner.
#pragma once

#include <map>
#include <string>

namespace kvasir::sched {

class Owners {
 public:
  /// Adds a sequence of this owner, waiting or running. An owner who comes back gets at least the lowest counter of the
  /// owners present, so time away earns no credit.
  void arrive(const std::string& owner, double weight);
  /// Removes a sequence of this owner.
  void leave(const std::string& owner);
  /// Adds `tokens` served to the owner's account.
  void charge(const std::string& owner, double tokens);
  /// Tokens served divided by the weight; the owner with the lowest counter is served first.
  double counter(const std::string& owner) const;

  /// The cost of one generated token, in prompt tokens.
  static constexpr double kGenerated = 4;

 private:
  struct Account {
    double counter = 0, weight = 1;
    int sequences = 0;
  };
  std::map<std::string, Account> accounts_;
};

}  // namespace kvasir::sched
