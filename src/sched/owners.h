// Who is served next among owners: virtual token counters, as in "Fairness in Serving Large Language Models" (Sheng et
// al., OSDI 2024). Which of an owner's requests goes first is order.h's.
#pragma once

#include <map>
#include <string>

namespace kvasir::sched {

class Owners {
 public:
  /// One more sequence of this owner waits or runs. An owner who comes back starts with the least counter of those who
  /// are there: time away earns nothing.
  void arrive(const std::string& owner, double weight);
  /// One less.
  void leave(const std::string& owner);
  /// The owner has been served so many tokens.
  void charge(const std::string& owner, double tokens);
  /// Tokens served, over the weight: the least goes first.
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
