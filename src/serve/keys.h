// API keys: who asks, with which weight, and how much at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>

namespace kvasir::serve {

struct Caller {
  std::string name = {};
  double weight = 1;
  int most = 0;  ///< requests at a time; 0: any number
  int running = 0;
};

class Keys {
 public:
  /// No keys: everybody is one caller without a name.
  Keys();
  /// A file of lines "name key [weight] [most at a time]"; "#" begins a comment. Errors: a file that cannot be read, a
  /// line that is none of that, a name or key twice, no key at all.
  static Result<Keys> read(const std::string& path);

  bool required() const { return !keys_.empty(); }
  /// The caller of a key, who lives as long as this; null: none. Every key is compared, in constant time.
  std::shared_ptr<Caller> find(std::string_view key) const;

 private:
  std::vector<std::pair<std::string, std::shared_ptr<Caller>>> keys_;
  std::shared_ptr<Caller> anybody_;
};

}  // namespace kvasir::serve
