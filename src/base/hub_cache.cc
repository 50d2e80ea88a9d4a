// Lookups in the hub cache. Nothing here creates a file, and the only file read is refs/main.
#include "base/hub_cache.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/files.h"

namespace kvasir::hub {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kModels = "models--";
constexpr size_t kCommitDigits = 40;
constexpr size_t kMostSnapshotFiles = 100000;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

// huggingface_hub expands "~/models" the same way.
fs::path with_user_folder(const std::string& path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  return fs::path(variable("HOME")) / path.substr(std::min<size_t>(path.size(), 2));
}

tl::unexpected<Error> not_pulled(const RepoName& repo, const char* what) {
  return fail(Error::not_found, what, repo.text(), fmt::format("kvasir pull {}", repo.text()));
}

bool holds_safetensors(const std::vector<std::string>& files) {
  return std::ranges::find(files, "config.json") != files.end() && std::ranges::any_of(files, [](const std::string& f) {
           return f.ends_with(".safetensors") && f.find('/') == f.npos;
         });
}

}  // namespace

fs::path cache_folder() {
  if (const std::string set = variable("HF_HUB_CACHE"); !set.empty()) return with_user_folder(set);
  if (const std::string set = variable("HF_HOME"); !set.empty()) return with_user_folder(set) / "hub";
  if (const std::string set = variable("XDG_CACHE_HOME"); !set.empty())
    return with_user_folder(set) / "huggingface" / "hub";
  return fs::path(variable("HOME")) / ".cache" / "huggingface" / "hub";
}

std::string folder_name(const RepoName& repo) { return std::string(kModels) + repo.owner + "--" + repo.name; }

std::optional<RepoName> repo_of_folder(std::string_view folder) {
  if (!folder.starts_with(kModels)) return std::nullopt;
  folder.remove_prefix(kModels.size());
  const size_t dashes = folder.find("--");
  if (dashes == folder.npos) return std::nullopt;
  return parse_repo(std::string(folder.substr(0, dashes)) + "/" + std::string(folder.substr(dashes + 2)));
}

bool is_commit(std::string_view text) {
  return text.size() == kCommitDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

Result<fs::path> snapshot_of(const fs::path& cache, const RepoName& repo) {
  const fs::path folder = cache / folder_name(repo);
  std::error_code ec;
  if (!fs::is_directory(folder, ec))
    return fail(Error::not_found, "there is no such file or folder, and no model of this name has been pulled",
                repo.text(), fmt::format("another path, or kvasir pull {}", repo.text()));
  auto commit = read_text_file(folder / "refs" / "main", 1024);
  if (!commit) return not_pulled(repo, "its pull is not complete");
  while (!commit->empty() && (commit->back() == '\n' || commit->back() == '\r')) commit->pop_back();
  if (!is_commit(*commit))
    return fail(Error::damaged, "does not contain a commit", (folder / "refs" / "main").string(),
                fmt::format("kvasir pull {}", repo.text()));
  fs::path snapshot = folder / "snapshots" / *commit;
  if (!fs::is_directory(snapshot, ec)) return not_pulled(repo, "its pull is not complete");
  return snapshot;
}

std::vector<std::string> snapshot_files(const fs::path& snapshot) {
  std::vector<std::string> files;
  std::error_code ec;
  for (fs::recursive_directory_iterator at(snapshot, ec), end; !ec && at != end; at.increment(ec)) {
    std::error_code of_file;
    if (at->is_regular_file(of_file)) files.push_back(at->path().lexically_relative(snapshot).generic_string());
    if (files.size() > kMostSnapshotFiles) break;
  }
  std::ranges::sort(files);
  return files;
}

Result<std::string> pulled_model(const fs::path& cache, const Wanted& wanted) {
  KVASIR_TRY(const fs::path snapshot, snapshot_of(cache, wanted.repo));
  const std::vector<std::string> files = snapshot_files(snapshot);
  if (wanted.what.empty() && holds_safetensors(files)) return snapshot.string();
  auto chosen = choose_gguf(files, wanted.what, wanted.text());
  if (chosen) return (snapshot / chosen->front()).string();
  if (chosen.error().kind == Error::not_found) chosen.error().hint = fmt::format("kvasir pull {}", wanted.text());
  return tl::unexpected(std::move(chosen).error());
}

std::string model_name(const fs::path& path) {
  if (path.parent_path().filename() == "snapshots")
    if (const auto repo = repo_of_folder(path.parent_path().parent_path().filename().string())) return repo->text();
  return path.filename().string();
}

}  // namespace kvasir::hub
