// The two sums that the hub names contents by: SHA-256 of large files, git's SHA-1 of small ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <nettle/sha1.h>
#include <nettle/sha2.h>

namespace kvasir::hub {

/// Whether a text can be such a sum: 40 or 64 hexadecimal digits in lower case.
bool is_sum(std::string_view text);

/// A sum over bytes that come in pieces.
class Digest {
 public:
  /// For what a file of `bytes` bytes named by `sum` has to give: by the sum's length, SHA-256 or git's SHA-1, which
  /// begins with "blob BYTES" and a zero. Requires: is_sum(sum).
  Digest(std::string_view sum, uint64_t bytes);
  void add(std::span<const std::byte> bytes);
  /// The sum as hexadecimal digits. Nothing may be added afterwards.
  std::string finish();

 private:
  bool sha256_ = false;
  ::sha256_ctx of_256_{};
  ::sha1_ctx of_1_{};
};

}  // namespace kvasir::hub
