// Changes to the cache's folders: what a finished pull links, what is there, and its removal. Blobs are blob_file.h's;
// looking a model up is base/hub_cache.h's.
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

/// Links the files into the snapshot of the commit, in their order, and lets refs/main name it then; gives its folder.
Result<std::filesystem::path> publish(const std::filesystem::path& repo_folder, const std::string& commit,
                                      const std::vector<StoredFile>& files);

/// A model that lies in the cache.
struct Stored {
  RepoName repo;
  std::string commit;          ///< empty: no pull of it has come to its end
  std::filesystem::path path;  ///< of the snapshot, else of the model's folder
  std::vector<std::string>
      models;                     ///< what MODEL may be: OWNER/NAME, or OWNER/NAME:FILE for each of several GGUF files
  uint64_t bytes = 0;             ///< of all blobs
  uint64_t incomplete_bytes = 0;  ///< of them, in files that are not whole
};

/// All models of the cache, by name. A cache that is not there holds none.
Result<std::vector<Stored>> stored_models(const std::filesystem::path& cache);

/// Removes a model with its blobs and locks; gives the bytes of its blobs. Errors: it is not there, a pull of it is
/// under way.
Result<uint64_t> remove_model(const std::filesystem::path& cache, const RepoName& repo);

}  // namespace kvasir::hub
