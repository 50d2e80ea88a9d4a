// Declarations that every vec16 header uses for its functions. No arithmetic here.
#pragma once

// Internal linkage and always inlined: code compiled with wide-vector flags must never become a weak symbol that the
// linker could pick for the baseline program.
#define KVASIR_SIMD_FN static inline __attribute__((always_inline))
#define KVASIR_SIMD_MEMBER inline __attribute__((always_inline))
// Loops over accumulators must unroll completely, or the accumulators live in memory; by default GCC stops at 16.
#define KVASIR_UNROLL _Pragma("GCC unroll 32")
