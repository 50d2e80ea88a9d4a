// Pulls a model from a hub into the cache. This file controls the whole sequence from the listing to the links; other
// files of this folder implement its steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <kvasir/result.h>

namespace kvasir::hub {

inline constexpr const char* kDefaultEndpoint = "https://huggingface.co";

/// The progress of a pull.
struct PullProgress {
  std::string file;
  uint64_t done = 0, all = 0;  ///< bytes, summed over all files
};

struct PullOptions {
  std::string model;            ///< OWNER/NAME, OWNER/NAME:TYPE or OWNER/NAME:FILE
  std::string endpoint;         ///< if empty, $HF_ENDPOINT or kDefaultEndpoint
  int connections = 4;          ///< concurrent ranges of one file
  double timeout_s = 30;        ///< a connection fails after this time without a byte
  std::filesystem::path cache;  ///< the folder of all models
  std::function<void(const PullProgress&)> progress;
  std::function<void(const std::string&)> note;  ///< receives messages for the user, such as the wait for a lock
};

struct Pulled {
  std::string name, commit, path;  ///< path: what find_model returns for the name
  uint64_t bytes = 0, fetched = 0;
  size_t files = 0;
};

/// Pulls a model; the token is $HF_TOKEN. Errors: those of the network, the hub and the disk. After an error no file
/// looks complete that is not, and the next pull resumes where this one stopped.
Result<Pulled> pull(const PullOptions& options);

}  // namespace kvasir::hub
