// A whole file of a tokenizer as bytes.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <kvasir/result.h>

namespace kvasir {

/// Errors name no path: the caller knows it.
inline Result<std::string> read_file(const std::filesystem::path& path) {
  constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{512} << 20;  // the largest tokenizer.json is about 35 MB
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return fail("cannot be read: " + error.message(), {}, "check the path");
  if (size > kMaxFileBytes) return fail(fmt::format("{} bytes are over the limit of {}", size, kMaxFileBytes));
  std::string bytes(static_cast<std::size_t>(size), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  if (!file) return fail(fmt::format("only {} of {} bytes can be read", file.gcount(), size));
  return bytes;
}

}  // namespace kvasir
