// The floating-point environment that the Law requires: round to nearest, no flush to zero; restored on the way out.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace kvasir {

/// Sets that environment while it lives. Held by every public entry point that computes and by every worker thread.
class FloatEnv {
 public:
  FloatEnv() : saved_(read()) { write(kDefault); }
  ~FloatEnv() { write(saved_); }
  FloatEnv(const FloatEnv&) = delete;
  FloatEnv& operator=(const FloatEnv&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr uint64_t kDefault = 0x1f80;  // all exceptions masked, nearest, FTZ and DAZ off
  static uint64_t read() { return _mm_getcsr(); }
  static void write(uint64_t v) { _mm_setcsr(static_cast<uint32_t>(v)); }
#elif defined(__aarch64__)
  static constexpr uint64_t kDefault = 0;  // FPCR: nearest, FZ off
  static uint64_t read() {
    uint64_t v;
    __asm__ volatile("mrs %0, fpcr" : "=r"(v));
    return v;
  }
  static void write(uint64_t v) { __asm__ volatile("msr fpcr, %0" : : "r"(v)); }
#endif
  uint64_t saved_;
};

}  // namespace kvasir
