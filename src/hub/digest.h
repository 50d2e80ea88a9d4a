// The two checksums by which the hub names file contents: SHA-256 for large files, git's SHA-1 for small ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <nettle/sha1.h>
#include <nettle/sha2.h>

namespace kvasir::hub {

/// Whether a text can be such a checksum: 40 or 64 hexadecimal digits in lower case.
bool is_sum(std::string_view text);

/// A checksum over bytes that arrive in pieces.
class Digest {
 public:
  /// Prepares to verify a file of `bytes` bytes against `sum`, whose length selects SHA-256 or git's SHA-1. Git hashes
  /// "blob BYTES" and a zero byte before the contents. Requires: is_sum(sum).
  Digest(std::string_view sum, uint64_t bytes);
  void add(std::span<const std::byte> bytes);
  /// Returns the checksum as hexadecimal digits. Nothing may be added afterwards.
  std::string finish();

 private:
  bool sha256_ = false;
  ::sha256_ctx of_256_{};
  ::sha1_ctx of_1_{};
};

}  // namespace kvasir::hub
