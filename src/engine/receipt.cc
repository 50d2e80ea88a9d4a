// The receipt: a 128-bit hash chain over what a generation computed.
#include <xxhash.h>

#include <fmt/format.h>

#include <kvasir/generate.h>
#include <kvasir/version.h>

namespace kvasir {
namespace {

// The next link of the chain: a hash over the previous state and the hash of `bytes`.
XXH128_hash_t link(XXH128_hash_t before, std::span<const std::byte> bytes) {
  const XXH128_hash_t content = XXH3_128bits(bytes.data(), bytes.size());
  const uint64_t both[4] = {before.low64, before.high64, content.low64, content.high64};
  return XXH3_128bits(both, sizeof both);
}

}  // namespace

Result<Receipt> Receipt::start(const Model& model, const CacheStats& cache, std::span<const int> prompt) {
  KVASIR_TRY(const std::string fingerprint, model.fingerprint());
  const std::string setting =
      fmt::format("kvasir receipt\nnumerics {}\nmodel {}\nkv {} {}\nwindow {}\nprompt {}\n", kNumericsVersion,
                  fingerprint, cache.kv_type_k, cache.kv_type_v, cache.window, prompt.size());
  Receipt receipt;
  receipt.extend(std::as_bytes(std::span(setting)));
  receipt.extend(std::as_bytes(prompt));
  return receipt;
}

void Receipt::add(std::span<const float> logits, int id) {
  extend(std::as_bytes(logits));
  extend(std::as_bytes(std::span(&id, 1)));
}

void Receipt::extend(std::span<const std::byte> bytes) {
  const XXH128_hash_t next = link({low_, high_}, bytes);
  low_ = next.low64;
  high_ = next.high64;
}

std::string Receipt::hex() const { return fmt::format("{:016x}{:016x}", high_, low_); }

}  // namespace kvasir
