// The SIMD kernels, written once over V16 (16 float lanes) and compiled once per CPU target by kernels_*.cc, which
// first define KVASIR_SIMD_NS and the tile shape. Everything has internal linkage: the baseline must not share a symbol
// that was compiled for a wide CPU.
#pragma once

#include "math/functions.h"
#include "math/kernels.h"
#include "math/simd/kernels_attend_simd.h"
#include "math/simd/kernels_integer_simd.h"
#include "math/simd/kernels_matmul_simd.h"
#include "math/simd/weigh_simd.h"

namespace KVASIR_SIMD_NS {
namespace {

using kvasir::RopeArgs;

// ---- norms, rotations, activations ------------------------------------------------------------------------------

inline float inverse_root(float variance, float eps) { return first_lane(set1(1.0f) / sqrt(set1(variance + eps))); }

// fold(sum of (x - center)^2), by fma in lanes.
inline float square_sum(const float* x, float center, int64_t n) {
  V16 acc = zero();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const V16 d = load(x + i) - set1(center);
    acc = fma(d, d, acc);
  }
  if (const int m = static_cast<int>(n - i); m > 0) {
    const V16 d = load_n(x + i, m) - set1(center);
    acc = fma_n(d, d, acc, m);
  }
  return fold(acc);
}

void rms_norm(const float* x, const float* gain, float eps, float* y, int64_t n) {
  const float scale = inverse_root(square_sum(x, 0.0f, n) / static_cast<float>(n), eps);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, load(x + i) * set1(scale) * load(gain + i));
  if (const int m = static_cast<int>(n - i); m > 0)
    store_n(y + i, load_n(x + i, m) * set1(scale) * load_n(gain + i, m), m);
}

inline float plain_sum(const float* x, int64_t n) {
  V16 acc = zero();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) acc = fma(load(x + i), set1(1.0f), acc);
  if (const int m = static_cast<int>(n - i); m > 0) acc = fma_n(load_n(x + i, m), set1(1.0f), acc, m);
  return fold(acc);
}

void layer_norm(const float* x, const float* gain, const float* bias, float eps, float* y, int64_t n) {
  const float mean = plain_sum(x, n) / static_cast<float>(n);
  const float scale = inverse_root(square_sum(x, mean, n) / static_cast<float>(n), eps);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    store(y + i,
          fma((load(x + i) - set1(mean)) * set1(scale), load(gain + i), bias != nullptr ? load(bias + i) : zero()));
  if (const int m = static_cast<int>(n - i); m > 0)
    store_n(y + i,
            fma((load_n(x + i, m) - set1(mean)) * set1(scale), load_n(gain + i, m),
                bias != nullptr ? load_n(bias + i, m) : zero()),
            m);
}

// (a, b) -> (a cos - b sin, b cos + a sin)
inline void rotate_pair(float* a, float* b, float c, float s) {
  const float x = *a, y = *b;
  *a = __builtin_fmaf(x, c, -(y * s));
  *b = __builtin_fmaf(y, c, x * s);
}

void rope(const RopeArgs& args) {
  const int half = args.channels / 2;
  for (int h = 0; h < args.heads; ++h) {
    float* x = args.row + static_cast<int64_t>(h) * args.head_dim;
    if (args.interleaved) {
      for (int i = 0; i < half; ++i) rotate_pair(x + 2 * i, x + 2 * i + 1, args.cos[i], args.sin[i]);
      continue;
    }
    int i = 0;
    for (; i + 16 <= half; i += 16) {
      const V16 a = load(x + i), b = load(x + half + i), c = load(args.cos + i), s = load(args.sin + i);
      store(x + i, fma(a, c, negate(b * s)));
      store(x + half + i, fma(b, c, a * s));
    }
    for (; i < half; ++i) rotate_pair(x + i, x + half + i, args.cos[i], args.sin[i]);
  }
}

template <class F>
inline void map16(float* x, int64_t n, F f) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(x + i, f(load(x + i), i, 16));
  if (const int m = static_cast<int>(n - i); m > 0) store_n(x + i, f(load_n(x + i, m), i, m), m);
}

// gate = f(gate) * up, or f(gate).
template <class F>
inline void map_gate(float* gate, const float* up, int64_t n, F f) {
  if (up == nullptr)
    map16(gate, n, [f](V16 g, int64_t, int) { return f(g); });
  else
    map16(gate, n, [f, up](V16 g, int64_t i, int m) { return f(g) * load_n(up + i, m); });
}

void activate(kvasir::Activation f, float* gate, const float* up, int64_t n) {
  using kvasir::Activation;
  switch (f) {
    case Activation::silu:
      return map_gate(gate, up, n, [](V16 g) { return kvasir::silu_v(g); });
    case Activation::gelu_tanh:
      return map_gate(gate, up, n, [](V16 g) { return kvasir::gelu_tanh_v(g); });
    case Activation::gelu_erf:
      return map_gate(gate, up, n, [](V16 g) { return kvasir::gelu_erf_v(g); });
    case Activation::relu_squared:
      return map_gate(gate, up, n, [](V16 g) { return kvasir::relu_squared_v(g); });
    case Activation::sigmoid:
      return map_gate(gate, up, n, [](V16 g) { return kvasir::sigmoid_v(g); });
    case Activation::clamped_swiglu:
      return map16(gate, n, [up](V16 g, int64_t i, int m) { return kvasir::clamped_swiglu_v(g, load_n(up + i, m)); });
  }
}

void add(float* x, const float* y, int64_t n) {
  map16(x, n, [y](V16 v, int64_t i, int m) { return v + load_n(y + i, m); });
}

void add_scaled(float* x, float s, const float* y, int64_t n) {
  map16(x, n, [s, y](V16 v, int64_t i, int m) { return fma(set1(s), load_n(y + i, m), v); });
}

void scale(float* x, float s, int64_t n) {
  map16(x, n, [s](V16 v, int64_t, int) { return v * set1(s); });
}

void soft_cap(float* x, float cap, int64_t n) {
  map16(x, n, [cap](V16 v, int64_t, int) { return soft_cap_v(v, cap); });
}

void softmax(float* x, int64_t n) {
  V16 most = set1(x[0]), sum = zero();
  map16(x, n, [&most](V16 v, int64_t, int m) {
    most = max(m == 16 ? v : select(mask_bits((1u << m) - 1), v, most), most);
    return v;
  });
  const float top = largest_lane(most);
  map16(x, n, [&sum, top](V16 v, int64_t, int m) {
    const V16 e = kvasir::exp_v(v - set1(top));
    sum = sum + (m == 16 ? e : select(mask_bits((1u << m) - 1), e, zero()));
    return e;
  });
  const float total = fold(sum);
  map16(x, n, [total](V16 v, int64_t, int) { return v / set1(total); });
}

// As many independent chains as a tile has.
double fma_flops(int64_t rounds) {
  constexpr int kChains = kTileRows * kTileTokens;
  float starts[kChains + 16], lanes[16];
  for (int i = 0; i < kChains + 16; ++i) starts[i] = 0.1f * static_cast<float>(i);
  store(lanes, set1(1.0001f));
  const Reg x = load_reg(lanes);
  store(lanes, set1(1e-6f));
  const Reg y = load_reg(lanes);
  Reg acc[kChains];
  KVASIR_UNROLL
  for (int i = 0; i < kChains; ++i) acc[i] = load_reg(starts + i);
  for (int64_t r = 0; r < rounds; ++r) KVASIR_UNROLL
  for (int i = 0; i < kChains; ++i) acc[i] = fma(acc[i], x, y);
  V16 sum = zero();
  KVASIR_UNROLL
  for (int i = 0; i < kChains; i += kRegs) sum = sum + join(acc + i, 1);
  store(lanes, sum);
  const double operations = static_cast<double>(rounds) * kChains * 2 * kRegLanes;
  return lanes[0] != 123.0f ? operations : 0;  // uses the result, so that it is computed
}

// Reads several streams at once: hardware prefetching works within a page.
float read_all(const float* x, int64_t n) {
  constexpr int kStreams = 4;
  const int64_t part = n / kStreams / 32 * 32;
  V16 acc[2 * kStreams];
  KVASIR_UNROLL
  for (int j = 0; j < 2 * kStreams; ++j) acc[j] = zero();
  for (int64_t i = 0; i < part; i += 32) KVASIR_UNROLL
  for (int j = 0; j < 2 * kStreams; ++j) acc[j] = acc[j] + load(x + j / 2 * part + i + 16 * (j % 2));
  for (int j = 1; j < 2 * kStreams; ++j) acc[0] = acc[0] + acc[j];
  return fold(acc[0]);
}

}  // namespace

constexpr kvasir::Kernels make_kernels(const char* name) {
  return {name,        make_integer_kernels(),
          matmul,      attend,
          attend_tile, merge_tiles,
          rope,        rms_norm,
          layer_norm,  activate,
          add,         add_scaled,
          scale,       soft_cap,
          softmax,     weigh_logits,
          fma_flops,   read_all};
}

}  // namespace KVASIR_SIMD_NS
