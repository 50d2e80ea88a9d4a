// One small file per model in $XDG_CACHE_HOME/kvasir or ~/.cache/kvasir, four lines: the key, the value, when its
// computation began, and a checksum over these. Any other contents count as no value.
#include "engine/fingerprint_store.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <kvasir/version.h>

#include "base/files.h"

namespace kvasir {
namespace fs = std::filesystem;

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr size_t kHexDigits = 32;
// Two changes may have one time: some file systems store whole seconds, others the ticks of the clock.
constexpr int64_t kSameTime = 2 * kSecond;

fs::path store_folder() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != '\0') return fs::path(xdg) / "kvasir";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return fs::path(home) / ".cache/kvasir";
  return {};
}

uint64_t hash_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

fs::path store_file(const FingerprintKey& key) {
  return store_folder() / fmt::format("fingerprint-{:016x}", hash_of(key.place));
}

std::string text_of(const FileStamp& s) {
  return fmt::format("{} {:x}.{} {} {}", s.bytes, s.device, s.inode, s.modified_ns, s.changed_ns);
}

bool is_hex(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == text.npos; }

std::string entry_of(const FingerprintKey& key, std::string_view fingerprint, int64_t begun_ns) {
  const std::string entry = fmt::format("{}\n{}\n{}\n", key.text, fingerprint, begun_ns);
  return entry + fmt::format("{:016x}\n", hash_of(entry));
}

// A hash of samples of a file: its head, its tail and 16 places between them.
Result<uint64_t> sample_of(const InputFile& file) {
  constexpr size_t kPiece = 4096, kEnd = 16 * kPiece, kPieces = 16;
  std::string bytes;
  const auto add = [&](uint64_t at, size_t most) -> Result<void> {
    std::string piece(std::min<uint64_t>(most, file.size() - at), '\0');
    KVASIR_CHECK(file.read_at(at, std::as_writable_bytes(std::span(piece))));
    bytes += piece;
    return {};
  };
  KVASIR_CHECK(add(0, kEnd));
  for (uint64_t i = 1; i <= kPieces; ++i) KVASIR_CHECK(add(file.size() / (kPieces + 1) * i, kPiece));
  KVASIR_CHECK(add(file.size() - std::min<uint64_t>(file.size(), kEnd), kEnd));
  return hash_of(bytes);
}

}  // namespace

int64_t file_clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

std::string stamps_opened(const TensorDir& dir) {
  std::string all;
  for (const auto& file : dir.files) all += text_of(file->file().opened_as());
  return all;
}

Result<std::string> stamps_now(const TensorDir& dir) {
  std::string all;
  for (const auto& file : dir.files) {
    KVASIR_TRY(const FileStamp stamp, file->file().stamp());
    all += text_of(stamp);
  }
  return all;
}

FingerprintKey fingerprint_key(const TensorDir& dir, const std::string& config) {
  FingerprintKey key;
  key.place = fmt::format("v{} {:016x}", kNumericsVersion, hash_of(config));
  key.text = key.place;
  key.good = true;
  for (const auto& mapped : dir.files) {
    const InputFile& file = mapped->file();
    const FileStamp& stamp = file.opened_as();
    std::error_code ec;
    const std::string path = fs::weakly_canonical(file.path(), ec).string();
    const auto sample = sample_of(file);
    key.place += " | " + path;
    key.text += fmt::format(" | {} {} {:016x}", path, text_of(stamp), sample.value_or(0));
    key.changed_ns = std::max({key.changed_ns, stamp.changed_ns, stamp.modified_ns});
    key.good = key.good && sample && file.keeps_change_time();
  }
  std::replace(key.text.begin(), key.text.end(), '\n', ' ');
  return key;
}

std::optional<std::string> remembered_fingerprint(const FingerprintKey& key) {
  if (!key.good || store_folder().empty()) return std::nullopt;
  constexpr size_t kMostLater = 128;  // upper bound of bytes after the key
  const auto text = read_text_file(store_file(key), key.text.size() + kMostLater);
  if (!text || !text->starts_with(key.text + "\n")) return std::nullopt;
  const std::string_view after = std::string_view(*text).substr(key.text.size() + 1);
  const std::string_view value = after.substr(0, kHexDigits);
  if (value.size() != kHexDigits || !is_hex(value) || after.size() <= kHexDigits) return std::nullopt;
  int64_t begun_ns = 0;
  (void)std::from_chars(after.data() + kHexDigits + 1, after.data() + after.size(), begun_ns);
  if (*text != entry_of(key, value, begun_ns) || begun_ns <= key.changed_ns + kSameTime) return std::nullopt;
  return std::string(value);
}

void remember_fingerprint(const FingerprintKey& key, const std::string& fingerprint, int64_t begun_ns) {
  if (!key.good || store_folder().empty()) return;
  std::error_code ec;
  fs::create_directories(store_folder(), ec);
  if (is_there(store_file(key)) && !fs::is_regular_file(store_file(key), ec)) return;  // opening a pipe would block
  const std::string text = entry_of(key, fingerprint, begun_ns);
  (void)write_file_atomically(store_file(key), std::as_bytes(std::span(text)));
}

}  // namespace kvasir
