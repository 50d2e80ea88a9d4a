// Prints a benchmark line for every kernel of every CPU target of this machine, at the shapes of SmolLM2-135M:
// operations or bytes a second of one thread. The weights fit the CPU's cache or, for one token, are far larger, with
// rows of several lengths; there `of_read` is the fraction of the speed of only reading the same memory.
//   cmake --build build-dev --target kvasir_bench_kernels && build-dev/kvasir_bench_kernels
//   --benchmark_filter=avx512_vnni/
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <kvasir/sampling.h>

#include "base/buffer.h"
#include "base/system.h"
#include "dtype/codec.h"
#include "math/targets.h"

namespace kvasir {
namespace {

constexpr int kHidden = 576, kFfn = 1536, kHeadDim = 64, kGroup = 3, kKvHeads = 3;
constexpr size_t kFarBytes = size_t{128} << 20;  // larger than any cache

std::vector<float> numbers(int64_t n) {
  std::vector<float> out(static_cast<size_t>(n));
  uint32_t state = 1;
  for (float& x : out) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return out;
}

Buffer rows_of(const Codec& codec, int64_t rows, int64_t cols, bool huge = true) {
  const std::vector<float> row = numbers(cols);
  Buffer out = Buffer::allocate(static_cast<size_t>(rows) * codec.row_bytes(cols), Owner::activations, huge).value();
  const size_t bytes = codec.row_bytes(cols);
  codec.encode(row.data(), out.data(), cols);
  for (int64_t r = 1; r < rows; ++r) std::memcpy(out.data() + static_cast<size_t>(r) * bytes, out.data(), bytes);
  return out;
}

struct MatmulShape {
  int tokens;
  int64_t rows = 128, cols = kFfn;  // they determine whether the weights fit a cache
  bool conv1d = false;
};

// Returns the bytes a second of only reading: the best of five.
double read_rate(const Kernels& kernels, const Buffer& memory) {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(
        kernels.read_all(reinterpret_cast<const float*>(memory.data()), static_cast<int64_t>(memory.bytes() / 4)));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(memory.bytes()) / seconds.count());
  }
  return best;
}

// Weights [rows][cols].
void matmul(benchmark::State& state, const Kernels& kernels, const Codec& codec, const MatmulShape& s) {
  const auto [tokens, rows, cols, conv1d] = s;
  const Buffer w = conv1d ? rows_of(codec, cols, rows) : rows_of(codec, rows, cols);
  const std::vector<float> x = numbers(cols * tokens);
  std::vector<ActBlock> act(x.size() / kActElems);
  encode_act(x.data(), act.data(), static_cast<int64_t>(x.size()));
  std::vector<float> y(static_cast<size_t>(rows * tokens)), panel(static_cast<size_t>(kPanelRows * cols));
  MatmulArgs a{.w = w.data(),
               .row_bytes = codec.row_bytes(conv1d ? rows : cols),
               .form = codec.form,
               .conv1d = conv1d,
               .decode = codec.decode,
               .dot = codec.dot,
               .block_elems = codec.block_elems,
               .block_bytes = codec.block_bytes,
               .rows = rows,
               .cols = cols,
               .x = x.data(),
               .x_stride = cols,
               .act = act.data(),
               .y = y.data(),
               .y_stride = rows,
               .tokens = tokens,
               .panel = panel.data()};
  const bool integer = codec.act == Act::q8;
  const auto kernel = integer ? kernels.integer.matmul : kernels.matmul;
  std::vector<std::byte> arranged(static_cast<size_t>(tokens * arranged_bytes(cols)) + 64);
  auto* const aligned = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(arranged.data()) + 63) / 64 * 64);
  if (tokens <= kFewIntegerTokens) a.arranged = aligned;
  for (int t = 0; integer && t < tokens; ++t)
    kernels.integer.arrange(arrangement_of(a.form), act.data() + t * (cols / kActElems), cols / kActElems,
                            aligned + t * arranged_bytes(cols));
  // The engine's chunk: a panel for many tokens, a megabyte for few.
  const int64_t chunk = tokens > kFewIntegerTokens
                            ? kPanelRows
                            : std::max<int64_t>(16, (int64_t{1} << 20) / static_cast<int64_t>(a.row_bytes) / 16 * 16);
  for (auto _ : state)
    for (a.row_begin = 0; a.row_begin < rows; a.row_begin = a.row_end) {
      a.row_end = std::min(rows, a.row_begin + chunk);
      kernel(a);
    }
  using benchmark::Counter;
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(w.bytes()));
  state.counters["ops"] = Counter(2.0 * static_cast<double>(rows * cols * tokens), Counter::kIsIterationInvariantRate);
  if (w.bytes() >= kFarBytes)
    state.counters["of_read"] =
        Counter(static_cast<double>(w.bytes()) / read_rate(kernels, w), Counter::kIsIterationInvariantRate);
}

// K and V of one layer, in tiles of the KV caches' size.
struct LayerRows {
  LayerRows(const Codec& codec, int positions)
      : k(rows_of(codec, int64_t{positions} * kKvHeads, kHeadDim, false)),
        v(rows_of(codec, int64_t{positions} * kKvHeads, kHeadDim, false)) {
    const size_t stride = codec.row_bytes(kHeadDim) * kKvHeads;
    for (int first = 0; first < positions; first += kTilePositions) {
      const size_t at = static_cast<size_t>(first) * stride;
      tiles.push_back({first, live_below(first, positions), k.data() + at, v.data() + at, stride, stride});
    }
  }
  Buffer k, v;
  std::vector<Tile> tiles;
};

struct AttendShape {
  int tokens, positions;
  bool by_tile = false;  // one token, tile by tile
  int layers = 1;        // layers between two reads of a row: they determine which CPU cache it is in
};

AttendArgs attend_args(const Codec& codec, const AttendShape& s) {
  return {.head_dim = kHeadDim,
          .group = kGroup,
          .tokens = s.tokens,
          .first_pos = s.positions - s.tokens,
          .scale = 0.125f,
          .k_form = codec.form,
          .v_form = codec.form,
          .decode_k = codec.decode,
          .decode_v = codec.decode,
          .q_stride = kGroup * kHeadDim,
          .out_stride = kGroup * kHeadDim};
}

// Computes all KV heads of one layer as arch/attention.cc does: one after the other, or tile by tile.
struct LayerCall {
  const Kernels& kernels;
  AttendArgs a;
  size_t head_bytes;
  std::vector<float> states{};  // [tiles][heads][2 + head_dim]

  void set_head(int head) { a.k_offset = a.v_offset = static_cast<size_t>(head) * head_bytes; }
  void whole(const LayerRows& layer) {
    a.tiles = layer.tiles.data();
    a.tile_count = static_cast<int>(layer.tiles.size());
    for (int head = 0; head < kKvHeads; ++head) {
      set_head(head);
      kernels.attend(a);
    }
  }
  void by_tile(const LayerRows& layer) {
    constexpr size_t kState = kGroup * (kHeadDim + 2);
    const size_t n = layer.tiles.size();
    states.resize(n * kKvHeads * kState);
    for (size_t j = 0; j < n; ++j)
      for (int head = 0; head < kKvHeads; ++head) {
        set_head(head);
        a.tiles = &layer.tiles[j];
        a.tile_count = static_cast<int>(n - j);
        kernels.attend_tile(a, states.data() + (j * kKvHeads + static_cast<size_t>(head)) * kState);
      }
    kernels.merge_tiles({states.data(), static_cast<int>(n), kKvHeads * kGroup, kHeadDim, a.out});
  }
};

// Runs every layer over `positions`; the tokens are the last of them.
void attend(benchmark::State& state, const Kernels& kernels, const Codec& codec, const AttendShape& s) {
  std::vector<LayerRows> layers;
  for (int i = 0; i < s.layers; ++i) layers.emplace_back(codec, s.positions);
  const std::vector<float> q = numbers(int64_t{s.tokens} * kGroup * kHeadDim);
  std::vector<float> out(static_cast<size_t>(s.tokens * kKvHeads * kGroup * kHeadDim));
  std::vector<float> scratch(static_cast<size_t>(attend_scratch_floats(kHeadDim, kGroup, s.tokens)));
  LayerCall call{kernels, attend_args(codec, s), codec.row_bytes(kHeadDim)};
  call.a.q = q.data();
  call.a.out = out.data();
  call.a.scratch = scratch.data();
  for (auto _ : state)
    for (const LayerRows& layer : layers) s.by_tile ? call.by_tile(layer) : call.whole(layer);
  using benchmark::Counter;
  const double positions = static_cast<double>(s.layers) * s.positions;
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(layers[0].k.bytes() + layers[0].v.bytes()) *
                          s.layers);
  state.counters["ops"] =
      Counter(4.0 * kKvHeads * kGroup * kHeadDim * s.tokens * positions, Counter::kIsIterationInvariantRate);
  state.counters["per_position"] = Counter(positions, Counter::kIsIterationInvariantRate | Counter::kInvert);
}

template <class F>
void over_floats(benchmark::State& state, int64_t n, F&& kernel) {
  std::vector<float> x = numbers(n);
  for (auto _ : state) {
    kernel(x.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * n);
}

void register_rows(const Kernels& k) {
  const auto add = [&k](const char* name, int64_t n, auto kernel) {
    benchmark::RegisterBenchmark(fmt::format("{}/{}/{}", k.name, name, n).c_str(),
                                 [n, kernel](benchmark::State& state) { over_floats(state, n, kernel); });
  };
  static const std::vector<float> other = numbers(kFfn), angles = numbers(kHeadDim);
  static std::vector<float> y(kFfn);
  static std::vector<ActBlock> act(kFfn / kActElems);
  add("rms_norm", kHidden, [&k](float* x) { k.rms_norm(x, other.data(), 1e-5f, y.data(), kHidden); });
  add("layer_norm", kHidden, [&k](float* x) { k.layer_norm(x, other.data(), other.data(), 1e-5f, y.data(), kHidden); });
  add("silu_mul", kFfn, [&k](float* x) { k.activate(Activation::silu, x, other.data(), kFfn); });
  add("gelu", kFfn, [&k](float* x) { k.activate(Activation::gelu_tanh, x, nullptr, kFfn); });
  add("add", kHidden, [&k](float* x) { k.add(x, other.data(), kHidden); });
  add("encode_act", kFfn, [&k](float* x) { k.integer.encode_act(x, act.data(), kFfn); });
  add("rope", kHidden, [&k](float* x) {
    k.rope({x, kHidden / kHeadDim, kHeadDim, kHeadDim, angles.data(), angles.data() + kHeadDim / 2, false});
  });
}

// Stores K or V of one layer; the code is the same on every CPU.
void register_encoding() {
  for (const Codec* codec : codecs()) {
    if (codec->encode_kv == nullptr) continue;
    constexpr int kRow = kKvHeads * kHeadDim;
    benchmark::RegisterBenchmark(fmt::format("encode_kv/{}/{}", codec->name, kRow).c_str(),
                                 [codec](benchmark::State& state) {
                                   std::vector<std::byte> row(codec->row_bytes(kRow));
                                   over_floats(state, kRow, [&](float* x) { codec->encode_kv(x, row.data(), kRow); });
                                 });
  }
}

// Samples a token from a row as long as Qwen's vocabulary, without top-k: flat, and with few likely tokens as from a
// model.
void register_sampling() {
  constexpr int kVocabulary = 152064;
  for (const bool peaked : {false, true})
    for (const double min_p : {0.0, 0.05})
      benchmark::RegisterBenchmark(
          fmt::format("sample/top_p:0.95/min_p:{}/{}", min_p, peaked ? "peaked" : "flat").c_str(),
          [peaked, min_p](benchmark::State& state) {
            std::mt19937 random(1);
            std::normal_distribution<float> normal(0, peaked ? 2.5f : 1.0f);
            std::vector<float> row(kVocabulary);
            for (float& x : row) x = normal(random);
            for (size_t i = 0; peaked && i < 30; ++i) row[i * 5003] = 21 - 0.7f * static_cast<float>(i);
            const SamplingParams params{.temperature = 0.8, .top_k = 0, .top_p = 0.95, .min_p = min_p};
            int position = 0;
            for (auto _ : state) benchmark::DoNotOptimize(sample(row, params, {.position = position++}));
          });
}

void register_all(const Kernels& k) {
  const bool slow = std::string_view(k.name) == kScalarKernels.name;
  for (const Codec* codec : codecs())
    for (const int tokens : {1, 4, 128}) {
      const auto add = [&](const std::string& name, const MatmulShape& s) {
        benchmark::RegisterBenchmark(fmt::format("{}/{}", k.name, name).c_str(),
                                     [&k, codec, s](benchmark::State& state) { matmul(state, k, *codec, s); });
      };
      add(fmt::format("matmul/{}/tokens:{}", codec->name, tokens), {tokens});
      if (codec->act == Act::f32)
        add(fmt::format("conv1d/{}/tokens:{}", codec->name, tokens), {.tokens = tokens, .conv1d = true});
      if (tokens != 1 || slow) continue;
      for (const int64_t cols : {576, 2048, 4096, 14336}) {
        if (cols % codec->block_elems != 0) continue;
        const auto rows = static_cast<int64_t>(kFarBytes / codec->row_bytes(cols)) / 16 * 16 + 16;
        add(fmt::format("matmul/{}/tokens:1/far/cols:{}", codec->name, cols), {1, rows, cols});
      }
    }
  for (const char* type : {"f32", "f16", "bf16", "q8_0", "q4_0"})
    for (const AttendShape& s :
         {AttendShape{1, 512}, {1, 131072}, {16, 512}, {1, 512, true}, {1, 4096, false, 30}, {1, 4096, true, 30}})
      if (!slow || s.positions == 512)
        benchmark::RegisterBenchmark(
            fmt::format("{}/{}/{}/tokens:{}/positions:{}/layers:{}", k.name, s.by_tile ? "attend_tile" : "attend", type,
                        s.tokens, s.positions, s.layers)
                .c_str(),
            [&k, type, s](benchmark::State& state) { attend(state, k, *find_codec(type), s); });
  register_rows(k);
}

}  // namespace
}  // namespace kvasir

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const kvasir::CpuTarget target : kvasir::supported_targets()) kvasir::register_all(kvasir::kernels_for(target));
  kvasir::register_encoding();
  kvasir::register_sampling();
  benchmark::RunSpecifiedBenchmarks();
}
