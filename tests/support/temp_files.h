// Shared by many tests: a temporary folder, files built byte by byte, the outside data. Tests only.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <kvasir/result.h>

namespace kvasir::format_test {

namespace fs = std::filesystem;

/// A folder that is removed after the test.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = testing::TempDir() + "kvasir-format-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempFolder() { fs::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  fs::path operator/(std::string_view name) const { return path_ / name; }
  const fs::path& path() const { return path_; }
  size_t count() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator{}));
  }

 private:
  fs::path path_;
};

inline void put(const fs::path& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

inline std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline std::span<const std::byte> as_span(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Floats that all differ: start, start + 0.25, ...
inline std::vector<float> distinct_floats(size_t n, float start) {
  std::vector<float> out;
  for (size_t i = 0; i < n; ++i) out.push_back(start + 0.25f * static_cast<float>(i));
  return out;
}

/// The 8-byte length, the header, the data.
inline std::string safetensors_file(std::string_view header, std::string_view data) {
  const uint64_t length = header.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out.append(header).append(data);
}

/// The outside data folder, or an empty path.
inline fs::path outside_data() {
  const char* set = std::getenv("KVASIR_DATA");
  const fs::path path = set != nullptr ? fs::path(set) : fs::path(KVASIR_SOURCE_DIR) / "../shared/data";
  return fs::exists(path) ? path : fs::path();
}

template <class T>
std::string message_of(const Result<T>& result) {
  return result ? std::string("no error") : result.error().message();
}

/// n bytes without a visible pattern.
inline std::string pattern(size_t n) {
  std::string out(n, '\0');
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<char>((i * 2654435761u) >> 13);
  return out;
}

}  // namespace kvasir::format_test
