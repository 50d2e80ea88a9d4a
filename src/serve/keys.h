// API keys: the caller that each key identifies, with its weight and its limit of concurrent requests.
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
  int most = 0;     ///< limit of concurrent requests; 0 for none
  int running = 0;  ///< number of concurrent requests now
};

class Keys {
 public:
  /// Without keys, all clients are one caller without a name.
  Keys();
  /// Reads a file of lines "name key [weight] [most at a time]"; "#" begins a comment. Errors: the file cannot be read,
  /// has an invalid line, a name or key twice, or no key at all.
  static Result<Keys> read(const std::string& path);

  bool required() const { return !keys_.empty(); }
  /// Returns the caller of a key; null if the key is unknown. Compares all keys, each in constant time.
  std::shared_ptr<Caller> find(std::string_view key) const;

 private:
  std::vector<std::pair<std::string, std::shared_ptr<Caller>>> keys_;
  std::shared_ptr<Caller> anybody_;
};

}  // namespace kvasir::serve
