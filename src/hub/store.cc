// Each link is made under a temporary name and renamed, so that it appears atomically.
#include "hub/store.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include <fmt/format.h>

#include "base/files.h"
#include "base/hub_cache.h"
#include "hub/digest.h"
#include "hub/file_lock.h"

namespace kvasir::hub {
namespace fs = std::filesystem;
namespace {

constexpr const char* kUnfinished = ".incomplete";

Result<void> make_folder(const fs::path& folder) {
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) return fail_errno("create", folder, ec.value());
  return {};
}

// "../../blobs/SUM" for a file directly in the snapshot, with one more "../" for each folder in the name.
std::string link_target(const StoredFile& file) {
  std::string up = "../../";
  for (const char c : file.name) up += c == '/' ? "../" : "";
  return up + "blobs/" + file.sum;
}

Result<void> link_file(const fs::path& snapshot, const StoredFile& file) {
  const fs::path link = snapshot / file.name;
  const std::string target = link_target(file);
  std::error_code ec;
  if (fs::is_symlink(fs::symlink_status(link, ec)) && fs::read_symlink(link, ec) == target) return {};
  KVASIR_CHECK(make_folder(link.parent_path()));
  for (const fs::path& leftover : leftovers_of(link)) ::unlink(leftover.c_str());
  const fs::path made = temporary_name(link);
  const TemporaryName remembered(made);
  ::unlink(made.c_str());
  if (::symlink(target.c_str(), made.c_str()) != 0) return fail_errno("create", link, errno);
  if (::rename(made.c_str(), link.c_str()) == 0) return {};
  const int error = errno;
  ::unlink(made.c_str());
  return fail_errno("create", link, error);
}

// Names that a user can type: the folder as a whole, or else each complete GGUF file.
std::vector<std::string> names_of_models(const fs::path& cache, const Stored& stored) {
  const std::string name = stored.repo.text();
  if (pulled_model(cache, {stored.repo, {}})) return {name};
  std::vector<std::string> out;
  for (const std::string& file : snapshot_files(stored.path)) {
    if (!file.ends_with(".gguf")) continue;
    const auto found = pulled_model(cache, {stored.repo, file});
    if (found && fs::path(*found) == stored.path / file) out.push_back(name + ":" + file);
  }
  return out;
}

void count_blobs(const fs::path& blobs, Stored& out) {
  std::error_code ec;
  for (fs::directory_iterator at(blobs, ec), end; !ec && at != end; at.increment(ec)) {
    std::error_code of_file;
    const uint64_t bytes = at->is_regular_file(of_file) ? at->file_size(of_file) : 0;
    if (of_file) continue;
    out.bytes += bytes;
    if (at->path().filename().string().ends_with(kUnfinished)) out.incomplete_bytes += bytes;
  }
}

Stored look_at(const fs::path& cache, const RepoName& repo) {
  const fs::path folder = cache / folder_name(repo);
  Stored out{repo, {}, folder, {}, 0, 0};
  count_blobs(folder / "blobs", out);
  if (auto snapshot = snapshot_of(cache, repo)) {
    out.path = std::move(*snapshot);
    out.commit = out.path.filename().string();
    out.models = names_of_models(cache, out);
  }
  return out;
}

}  // namespace

Result<fs::path> publish(const fs::path& repo_folder, const std::string& commit, const std::vector<StoredFile>& files) {
  const fs::path snapshot = repo_folder / "snapshots" / commit;
  KVASIR_CHECK(make_folder(snapshot));
  for (const StoredFile& file : files) KVASIR_CHECK(link_file(snapshot, file));
  KVASIR_CHECK(make_folder(repo_folder / "refs"));
  KVASIR_CHECK(write_file_atomically(repo_folder / "refs" / "main", std::as_bytes(std::span(commit))));
  return snapshot;
}

Result<std::vector<Stored>> stored_models(const fs::path& cache) {
  std::vector<Stored> out;
  std::error_code ec;
  if (!fs::exists(cache, ec)) return out;
  fs::directory_iterator at(cache, ec);
  for (; !ec && at != fs::directory_iterator(); at.increment(ec)) {
    std::error_code of_entry;
    const auto repo = repo_of_folder(at->path().filename().string());
    if (repo && at->is_directory(of_entry)) out.push_back(look_at(cache, *repo));
  }
  if (ec) return fail_errno("read", cache, ec.value());
  std::ranges::sort(out, {}, [](const Stored& stored) { return stored.repo.text(); });
  return out;
}

// Removes refs first, since they mark a model as complete: an interrupted removal leaves nothing that looks like one.
Result<uint64_t> remove_model(const fs::path& cache, const RepoName& repo) {
  const fs::path folder = cache / folder_name(repo);
  std::error_code ec;
  if (fs::is_symlink(fs::symlink_status(folder, ec)))
    return fail(Error::bad_argument, "it is a link to another folder", folder.string(), "remove both by hand");
  if (!fs::is_directory(folder, ec))
    return fail(Error::not_found, fmt::format("has not been pulled into {}", cache.string()), repo.text(),
                "kvasir list");
  const auto lock = FileLock::try_take(repo_lock(cache, repo), FileLock::Mode::alone);
  if (!lock && lock.error().kind == Error::busy)
    return fail(Error::busy, "a pull of it is under way", repo.text(), "try again when it has ended");
  if (!lock) return tl::unexpected(lock.error());
  Stored counted;
  count_blobs(folder / "blobs", counted);
  for (const fs::path& part : {folder / "refs", folder / "snapshots", folder, lock_folder(cache, repo)}) {
    fs::remove_all(part, ec);
    if (ec) return fail_errno("remove", part, ec.value());
  }
  return counted.bytes;
}

}  // namespace kvasir::hub
