// Links the files of a finished pull, lists the models of the cache and removes them. blob_file.h writes blobs;
// base/hub_cache.h looks up one model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <kvasir/result.h>

#include "base/hub_names.h"

namespace kvasir::hub {

/// A file of a commit, whose blob is in the cache.
struct StoredFile {
  std::string name, sum;
};

/// Links the files into the snapshot of the commit, in order, then makes refs/main name the commit. Returns the
/// snapshot's folder. Errors: a folder, link or file cannot be written.
Result<std::filesystem::path> publish(const std::filesystem::path& repo_folder, const std::string& commit,
                                      const std::vector<StoredFile>& files);

/// A model in the cache.
struct Stored {
  RepoName repo;
  std::string commit;               ///< empty if no pull has finished
  std::filesystem::path path;       ///< the snapshot's folder; if there is none, the model's folder
  std::vector<std::string> models;  ///< values for MODEL: OWNER/NAME, or OWNER/NAME:FILE for each of several GGUF files
  uint64_t bytes = 0;               ///< bytes of all blobs
  uint64_t incomplete_bytes = 0;    ///< bytes of incomplete blobs, included in `bytes`
};

/// Returns all models of the cache, sorted by name; none if the cache does not exist. Errors: it cannot be read.
Result<std::vector<Stored>> stored_models(const std::filesystem::path& cache);

/// Removes a model with its blobs and locks, and returns the bytes of its blobs. Errors: the model is not in the cache,
/// its folder is a link, a pull of it is running, or a file cannot be removed.
Result<uint64_t> remove_model(const std::filesystem::path& cache, const RepoName& repo);

}  // namespace kvasir::hub
