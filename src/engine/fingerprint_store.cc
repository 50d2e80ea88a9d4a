// One small file per key in $XDG_CACHE_HOME/kvasir or ~/.cache/kvasir; its first line is the key, its second the value.
#include "engine/fingerprint_store.h"

#include <sys/stat.h>
#include <xxhash.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>

#include <fmt/format.h>

#include <kvasir/version.h>

#include "base/files.h"

namespace kvasir {
namespace fs = std::filesystem;

namespace {

fs::path store_folder() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != '\0') return fs::path(xdg) / "kvasir";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return fs::path(home) / ".cache/kvasir";
  return {};
}

fs::path store_file(const std::string& key) {
  return store_folder() / fmt::format("fingerprint-{:016x}", XXH3_64bits(key.data(), key.size()));
}

}  // namespace

std::string fingerprint_key(const std::vector<std::string>& files, const std::string& config) {
  std::string key = fmt::format("v{} {:016x}", kNumericsVersion, XXH3_64bits(config.data(), config.size()));
  for (const std::string& file : files) {
    struct stat info {};
    std::error_code ec;
    if (stat(file.c_str(), &info) != 0) return {};
    key += fmt::format(" | {} {} {}.{:09} {}", fs::weakly_canonical(file, ec).string(), info.st_size,
                       info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ino);
  }
  return key;
}

std::optional<std::string> remembered_fingerprint(const std::string& key) {
  if (key.empty() || store_folder().empty()) return std::nullopt;
  std::ifstream in(store_file(key));
  std::string stored_key, value;
  if (!std::getline(in, stored_key) || !std::getline(in, value)) return std::nullopt;
  if (stored_key != key || value.size() != 32) return std::nullopt;
  return value;
}

void remember_fingerprint(const std::string& key, const std::string& fingerprint) {
  if (key.empty() || store_folder().empty()) return;
  std::error_code ec;
  fs::create_directories(store_folder(), ec);
  const std::string text = key + "\n" + fingerprint + "\n";
  (void)write_file_atomically(store_file(key), std::as_bytes(std::span(text)));
}

}  // namespace kvasir
