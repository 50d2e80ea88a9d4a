// SHA-1 and SHA-256 from Nettle, which uses the CPU's SHA instructions where available.
#include "hub/digest.h"

#include <array>

#include <fmt/format.h>

namespace kvasir::hub {
namespace {

constexpr size_t kDigitsOf1 = 40, kDigitsOf256 = 64;

std::string in_digits(std::span<const uint8_t> bytes) {
  std::string out;
  for (const uint8_t byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

}  // namespace

bool is_sum(std::string_view text) {
  return (text.size() == kDigitsOf1 || text.size() == kDigitsOf256) &&
         text.find_first_not_of("0123456789abcdef") == text.npos;
}

Digest::Digest(std::string_view sum, uint64_t bytes) : sha256_(sum.size() == kDigitsOf256) {
  nettle_sha256_init(&of_256_);
  nettle_sha1_init(&of_1_);
  if (sha256_) return;
  const std::string head = fmt::format("blob {}", bytes);
  add(std::as_bytes(std::span(head.c_str(), head.size() + 1)));
}

void Digest::add(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  if (sha256_)
    nettle_sha256_update(&of_256_, bytes.size(), data);
  else
    nettle_sha1_update(&of_1_, bytes.size(), data);
}

std::string Digest::finish() {
  std::array<uint8_t, SHA256_DIGEST_SIZE> out{};
  const size_t size = sha256_ ? SHA256_DIGEST_SIZE : SHA1_DIGEST_SIZE;
  if (sha256_)
    nettle_sha256_digest(&of_256_, size, out.data());
  else
    nettle_sha1_digest(&of_1_, size, out.data());
  return in_digits(std::span(out).first(size));
}

}  // namespace kvasir::hub
