// A model of a hub, brought into the cache: the course of it, from the listing to the links. Its steps have files of
// their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <kvasir/result.h>

namespace kvasir::hub {

inline constexpr const char* kDefaultEndpoint = "https://huggingface.co";

/// How far a pull is.
struct PullProgress {
  std::string file;
  uint64_t done = 0, all = 0;  ///< bytes of all files together
};

struct PullOptions {
  std::string model;            ///< OWNER/NAME, with :TYPE or :FILE
  std::string endpoint;         ///< empty: $HF_ENDPOINT, or kDefaultEndpoint
  int connections = 4;          ///< ranges of a file at the same time
  double timeout_s = 30;        ///< without a byte, after which a connection is given up
  std::filesystem::path cache;  ///< where the models are
  std::function<void(const PullProgress&)> progress;
  std::function<void(const std::string&)> note;  ///< something that a person should hear of meanwhile
};

struct Pulled {
  std::string name, commit, path;  ///< path: what find_model gives for the name
  uint64_t bytes = 0, fetched = 0;
  size_t files = 0;
};

/// The token is $HF_TOKEN's. Errors: as the network, the hub and the disk have them; then nothing new looks whole, and
/// the next pull goes on where this one ended.
Result<Pulled> pull(const PullOptions& options);

}  // namespace kvasir::hub
