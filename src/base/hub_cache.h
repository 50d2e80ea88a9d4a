// Read-only lookups in the local cache of hub models, which has the layout of huggingface_hub. hub_names.h parses
// names; src/hub fills the cache.
//
//   CACHE/models--OWNER--NAME/blobs/SUM                   the bytes of a file, named by their SHA-256 or git SHA-1
//   CACHE/models--OWNER--NAME/snapshots/COMMIT/FILE       a link to the blob
//   CACHE/models--OWNER--NAME/refs/main                   COMMIT
#pragma once

#include <filesystem>

#include "base/hub_names.h"

namespace kvasir::hub {

/// Returns the first that is set of $HF_HUB_CACHE, $HF_HOME/hub and $XDG_CACHE_HOME/huggingface/hub; otherwise
/// ~/.cache/huggingface/hub.
std::filesystem::path cache_folder();

/// "models--OWNER--NAME".
std::string folder_name(const RepoName& repo);
/// The inverse of folder_name; null if `folder` is not the folder of a model.
std::optional<RepoName> repo_of_folder(std::string_view folder);

/// Whether `text` is 40 hexadecimal digits in lower case.
bool is_commit(std::string_view text);

/// Returns the folder of the commit that refs/main names. Errors: the model was never pulled, its pull did not finish,
/// or refs/main names no commit.
Result<std::filesystem::path> snapshot_of(const std::filesystem::path& cache, const RepoName& repo);

/// Returns the sorted names of the files of a snapshot, relative to it. Dangling links are left out.
std::vector<std::string> snapshot_files(const std::filesystem::path& snapshot);

/// Returns the path to open a pulled model by: the snapshot's folder if it holds safetensors and `wanted` names no type
/// or file, else one GGUF file. Errors: the model has not been pulled, or no file or more than one file fits.
Result<std::string> pulled_model(const std::filesystem::path& cache, const Wanted& wanted);

/// Returns a readable name of the model at `path`: "OWNER/NAME" for a snapshot, else the name of the file or folder.
std::string model_name(const std::filesystem::path& path);

}  // namespace kvasir::hub
