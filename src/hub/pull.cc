// The steps of a pull: get the listing, choose files, check disk space, fetch the blobs one by one, link them.
#include "hub/pull.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "base/files.h"
#include "base/hub_cache.h"
#include "base/quote.h"
#include "hub/choose.h"
#include "hub/fetch.h"
#include "hub/file_lock.h"
#include "hub/store.h"

namespace kvasir::hub {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostListingBytes = size_t{64} << 20;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

// Files with secrets often end with a line break.
std::string token() {
  std::string text = variable("HF_TOKEN");
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

Connection connection_of(const PullOptions& options) {
  std::string endpoint = options.endpoint.empty() ? variable("HF_ENDPOINT") : options.endpoint;
  if (endpoint.empty()) endpoint = kDefaultEndpoint;
  return {endpoint, token(), options.timeout_s};
}

// Returns abc for `"abc"` and `W/"abc"`.
std::string plain_etag(std::string etag) {
  if (etag.starts_with("W/")) etag.erase(0, 2);
  std::erase(etag, '"');
  return etag;
}

/// One pull.
class Pull {
 public:
  Pull(const PullOptions& options, Wanted wanted, Client& client)
      : options_(options),
        wanted_(std::move(wanted)),
        client_(client),
        folder_(options.cache / folder_name(wanted_.repo)) {}

  Result<Pulled> run();

 private:
  Result<void> choose();
  Result<void> complete(RemoteFile& file);
  Result<void> check_room() const;
  Result<void> fetch(const RemoteFile& file);
  Result<void> fetch_blob(const RemoteFile& file);
  std::string url_of(const RemoteFile& file) const;
  void tell(const RemoteFile& file, uint64_t bytes) const;

  const PullOptions& options_;
  Wanted wanted_;
  Client& client_;
  fs::path folder_, blobs_ = folder_ / "blobs";
  std::string commit_;
  std::vector<RemoteFile> files_;
  uint64_t all_bytes_ = 0, done_bytes_ = 0, fetched_ = 0;
};

std::string Pull::url_of(const RemoteFile& file) const {
  return fmt::format("{}/{}/resolve/{}/{}", client_.connection().endpoint, wanted_.repo.text(), commit_,
                     url_path(file.name));
}

Result<void> Pull::choose() {
  const std::string url =
      fmt::format("{}/api/models/{}/revision/main?blobs=true", client_.connection().endpoint, wanted_.repo.text());
  KVASIR_TRY(const std::string json, client_.get(url, kMostListingBytes));
  KVASIR_TRY(const Listing listing, parse_listing(json, wanted_.repo.text()));
  commit_ = listing.commit;
  KVASIR_TRY(files_, choose_files(listing, wanted_));
  for (RemoteFile& file : files_) {
    KVASIR_CHECK(complete(file));
    all_bytes_ += *file.bytes;
  }
  return {};
}

// Takes size and checksum from the headers of the file itself if the listing lacks them.
Result<void> Pull::complete(RemoteFile& file) {
  if (file.bytes && !file.sum.empty()) return {};
  Answer answer;
  KVASIR_CHECK(client_.get(url_of(file), 0, &answer, true));
  std::string size = answer.header("x-linked-size");
  if (size.empty()) size = answer.header("content-length");
  std::string sum = plain_etag(answer.header("x-linked-etag"));
  if (sum.empty()) sum = plain_etag(answer.header("etag"));
  uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), bytes);
  const bool good = !size.empty() && error == std::errc() && end == size.data() + size.size();
  if (!file.bytes && good) file.bytes = bytes;
  if (file.sum.empty()) file.sum = sum;
  if (file.bytes && is_sum(file.sum)) return {};
  return fail(Error::unsupported, "the hub reports no size, or no checksum to verify its bytes", file.name,
              "another endpoint");
}

Result<void> Pull::check_room() const {
  uint64_t needed = 0;
  std::set<std::string> seen;
  for (const RemoteFile& file : files_)
    if (seen.insert(file.sum).second) needed += *file.bytes - bytes_there(blobs_, file.sum, *file.bytes);
  std::error_code ec;
  fs::create_directories(blobs_, ec);
  if (ec) return fail_errno("create", blobs_, ec.value());
  const fs::space_info space = fs::space(blobs_, ec);
  if (ec || needed <= space.available) return {};
  return fail(Error::no_room, fmt::format("{} bytes are needed, {} are free", needed, space.available),
              options_.cache.string(), "kvasir rm OWNER/NAME, or another folder in HF_HUB_CACHE");
}

void Pull::tell(const RemoteFile& file, uint64_t bytes) const {
  if (options_.progress) options_.progress({file.name, done_bytes_ + bytes, all_bytes_});
}

// Bytes left by an earlier process may be wrong, for example after a power failure. If so, the file is fetched again
// from the start, once.
Result<void> Pull::fetch(const RemoteFile& file) {
  if (has_blob(blobs_, file.sum, *file.bytes)) return {};
  const fs::path path = lock_folder(options_.cache, wanted_.repo) / (file.sum + ".lock");
  const auto on_wait = [&] {
    if (options_.note) options_.note(fmt::format("another process is pulling {}; waiting for it", file.name));
  };
  KVASIR_TRY(const FileLock lock, FileLock::take(path, FileLock::Mode::alone, on_wait));
  if (has_blob(blobs_, file.sum, *file.bytes)) return {};
  const bool resumed = bytes_there(blobs_, file.sum, *file.bytes) > 0;
  auto done = fetch_blob(file);
  std::error_code ec;
  const bool thrown_away = !fs::exists(blobs_ / (file.sum + ".incomplete"), ec);
  if (!done && resumed && thrown_away && done.error().kind == Error::damaged) done = fetch_blob(file);
  if (!done && done.error().kind == Error::damaged && done.error().where.ends_with(file.sum))
    done.error().where = file.name;
  return done;
}

Result<void> Pull::fetch_blob(const RemoteFile& file) {
  KVASIR_TRY(BlobFile blob, BlobFile::open(blobs_, file.sum, *file.bytes));
  Fetch fetch(client_, {url_of(file), file.name, commit_, file.sum}, blob, options_.connections,
              [&](uint64_t bytes) { tell(file, bytes); });
  const auto came = fetch.run();
  fetched_ += blob.size() - blob.found();
  KVASIR_CHECK(came);
  return blob.commit();
}

Result<Pulled> Pull::run() {
  KVASIR_CHECK(choose());
  KVASIR_TRY(const FileLock lock, FileLock::take(repo_lock(options_.cache, wanted_.repo), FileLock::Mode::shared, [&] {
               if (options_.note)
                 options_.note(fmt::format("another process is removing {}; waiting for it", wanted_.repo.text()));
             }));
  KVASIR_CHECK(check_room());
  std::vector<StoredFile> stored;
  for (const RemoteFile& file : files_) {
    tell(file, 0);
    KVASIR_CHECK(fetch(file));
    done_bytes_ += *file.bytes;
    stored.push_back({file.name, file.sum});
  }
  KVASIR_TRY(const fs::path snapshot, publish(folder_, commit_, stored));
  const auto found = pulled_model(options_.cache, wanted_);
  return Pulled{wanted_.text(), commit_, found ? *found : snapshot.string(), all_bytes_, fetched_, files_.size()};
}

}  // namespace

Result<Pulled> pull(const PullOptions& options) {
  const auto wanted = parse_wanted(options.model);
  if (!wanted)
    return fail(Error::bad_argument, fmt::format("{} is not a name of the hub", in_quotes(options.model)),
                "PullOptions::model", "OWNER/NAME, OWNER/NAME:Q4_K_M or OWNER/NAME:FILE");
  KVASIR_TRY(const auto client, Client::open(connection_of(options)));
  return Pull(options, *wanted, *client).run();
}

}  // namespace kvasir::hub
