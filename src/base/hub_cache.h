// The folder on this machine that holds models of the hub, in huggingface_hub's layout. Read only; src/hub fills it,
// and hub_names.h parses names.
//
//   CACHE/models--OWNER--NAME/blobs/SUM                   the bytes of a file, under their SHA-256 or git's SHA-1
//   CACHE/models--OWNER--NAME/snapshots/COMMIT/FILE       a link to the blob
//   CACHE/models--OWNER--NAME/refs/main                   COMMIT
#pragma once

#include <filesystem>

#include "base/hub_names.h"

namespace kvasir::hub {

/// The first that is set of $HF_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub and ~/.cache/huggingface/hub.
std::filesystem::path cache_folder();

/// "models--OWNER--NAME".
std::string folder_name(const RepoName& repo);
/// The inverse of folder_name(); empty if the folder is not a model's.
std::optional<RepoName> repo_of_folder(std::string_view folder);

/// Whether `text` is 40 hexadecimal digits.
bool is_commit(std::string_view text);

/// The folder of the commit that refs/main names. Errors: not pulled, or not completely.
Result<std::filesystem::path> snapshot_of(const std::filesystem::path& cache, const RepoName& repo);

/// Names of the files of a snapshot, relative to it and sorted, without links that lead nowhere.
std::vector<std::string> snapshot_files(const std::filesystem::path& snapshot);

/// The path to open a pulled model by: the snapshot's folder if it contains safetensors, else one GGUF file. Errors:
/// not pulled, no file fits, several files fit.
Result<std::string> pulled_model(const std::filesystem::path& cache, const Wanted& wanted);

/// The model's name for users: "OWNER/NAME" for a snapshot, else the name of the file or folder.
std::string model_name(const std::filesystem::path& path);

}  // namespace kvasir::hub
