// The folder in which models of the hub lie on this machine, as huggingface_hub lays it out: read only. Names are
// hub_names.h's; src/hub fills the folder.
//
//   CACHE/models--OWNER--NAME/blobs/SUM                   the bytes of a file, under their SHA-256 or git's SHA-1
//   CACHE/models--OWNER--NAME/snapshots/COMMIT/FILE       a link to the blob
//   CACHE/models--OWNER--NAME/refs/main                   COMMIT
#pragma once

#include <filesystem>

#include "base/hub_names.h"

namespace kvasir::hub {

/// $HF_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub: the first that is set.
std::filesystem::path cache_folder();

/// "models--OWNER--NAME".
std::string folder_name(const RepoName& repo);
/// The other way; null: the folder of something else.
std::optional<RepoName> repo_of_folder(std::string_view folder);

/// 40 hexadecimal digits.
bool is_commit(std::string_view text);

/// The folder of the commit that refs/main names. Errors: not pulled, or not to the end.
Result<std::filesystem::path> snapshot_of(const std::filesystem::path& cache, const RepoName& repo);

/// The names of the files of a snapshot, relative to it and sorted; links that lead nowhere are left out.
std::vector<std::string> snapshot_files(const std::filesystem::path& snapshot);

/// What a model that has been pulled is opened by: the snapshot's folder where it holds safetensors, else one GGUF
/// file. Errors: it has not been pulled, or nothing or too much in it fits.
Result<std::string> pulled_model(const std::filesystem::path& cache, const Wanted& wanted);

/// How a person calls the model at `path`: "OWNER/NAME" for a snapshot, else the name of the file or folder.
std::string model_name(const std::filesystem::path& path);

}  // namespace kvasir::hub
