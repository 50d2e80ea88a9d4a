// Shared by the kernel tests: the kernel tables that this machine runs, random values, comparison in bits, and memory
// that ends at an unmapped page. Tests only.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "dtype/codec.h"
#include "math/targets.h"

namespace kvasir::math_test {

/// The SIMD tables of this CPU, which must equal kScalarKernels.
inline std::vector<const Kernels*> simd_tables() {
  std::vector<const Kernels*> tables;
  for (const CpuTarget target : supported_targets())
    if (target != CpuTarget::scalar) tables.push_back(&kernels_for(target));
  return tables;
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  /// low..high, both included.
  int between(int low, int high) { return low + static_cast<int>(next() % static_cast<uint64_t>(high - low + 1)); }
  bool one_in(int n) { return between(1, n) == 1; }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[between(0, static_cast<int>(values.size()) - 1)];
  }
  /// In [-2, 2).
  float plain() { return static_cast<float>(static_cast<int32_t>(next() >> 40) - (1 << 23)) * 0x1p-22f; }
  /// Zeros of both signs, denormals of f32 and f16, values near the ends of f16, bf16 and f32.
  float extreme() {
    return pick({0.0f, -0.0f, 0x1p-149f, -0x1p-149f, 1e-40f, -3e-39f, 0x1p-126f, 0x1p-24f, -0x1p-24f, 6.1e-5f, 3e-6f,
                 65504.0f, -65504.0f, 1e30f, -1e30f, 3.4e38f, -3.4e38f, 1.0f, -1.0f});
  }
  std::vector<float> floats(size_t n, bool extremes = false) {
    std::vector<float> out(n);
    for (float& x : out) x = extremes && one_in(6) ? extreme() : plain();
    return out;
  }

 private:
  uint64_t state_;
};

/// Bytes that end at an unmapped page (or `slack` bytes before it), so that a read past the end crashes.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t bytes, size_t slack = 0) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t body = (bytes + slack + page - 1) / page * page;
    size_ = body + page;
    base_ = static_cast<std::byte*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + body, page, PROT_NONE);
    data_ = base_ + body - bytes - slack;
  }
  explicit GuardedBytes(const std::vector<float>& values, size_t slack = 0)
      : GuardedBytes(values.size() * sizeof(float), slack) {
    std::memcpy(data_, values.data(), values.size() * sizeof(float));
  }
  ~GuardedBytes() { munmap(base_, size_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  std::byte* data() const { return data_; }
  float* floats() const { return reinterpret_cast<float*>(data_); }

 private:
  std::byte* base_;
  std::byte* data_;
  size_t size_;
};

/// The activations of a matrix product with few tokens, arranged as this table's kernel reads them, ending at an
/// unmapped page.
class Arranged {
 public:
  Arranged(const Kernels& kernels, const MatmulArgs& args)
      : few_(args.tokens <= kFewIntegerTokens),
        bytes_(few_ ? static_cast<size_t>(args.tokens * arranged_bytes(args.cols)) : 0) {
    if (!few_) return;
    const int64_t parts = args.cols / kActElems;
    for (int t = 0; t < args.tokens; ++t)
      kernels.integer.arrange(arrangement_of(args.form), args.act + t * parts, parts,
                              bytes_.data() + t * arranged_bytes(args.cols));
  }
  /// Null if there are more tokens: then nothing is arranged.
  const std::byte* data() const { return few_ ? bytes_.data() : nullptr; }

 private:
  bool few_;
  GuardedBytes bytes_;
};

/// True if equal in bits. Two NaNs are equal whatever their payload, which never leaves a forward pass.
inline bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

inline testing::AssertionResult same_floats(const float* a, const float* b, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (!same(a[i], b[i]))
      return testing::AssertionFailure() << "element " << i << " of " << n << ": " << testing::PrintToString(a[i])
                                         << " is not " << testing::PrintToString(b[i]);
  return testing::AssertionSuccess();
}
inline testing::AssertionResult same_floats(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " values, " << b.size() << " expected";
  return same_floats(a.data(), b.data(), a.size());
}

/// Succeeds if |a - b| <= tolerance.
inline testing::AssertionResult close(float a, double b, double tolerance) {
  if (std::fabs(static_cast<double>(a) - b) <= tolerance) return testing::AssertionSuccess();
  return testing::AssertionFailure() << a << " is not " << b << " within " << tolerance;
}

}  // namespace kvasir::math_test
