// A benchmark line for every kernel of every CPU target that this machine has, at the shapes of SmolLM2-135M:
// operations or bytes a second of one thread, with the weights in the cache or, for one token, far larger than it.
//   cmake --build build-dev --target kvasir_bench_kernels && build-dev/kvasir_bench_kernels --benchmark_filter=avx512
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/buffer.h"
#include "base/system.h"
#include "dtype/codec.h"
#include "math/compute.h"

namespace kvasir {
namespace {

constexpr int kHidden = 576, kFfn = 1536, kHeadDim = 64, kGroup = 3, kKvHeads = 3;

std::vector<float> numbers(int64_t n) {
  std::vector<float> out(static_cast<size_t>(n));
  uint32_t state = 1;
  for (float& x : out) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return out;
}

Buffer rows_of(const Codec& codec, int64_t rows, int64_t cols) {
  const std::vector<float> row = numbers(cols);
  Buffer out = Buffer::allocate(static_cast<size_t>(rows) * codec.row_bytes(cols), Owner::activations, true).value();
  for (int64_t r = 0; r < rows; ++r)
    codec.encode(row.data(), out.data() + static_cast<size_t>(r) * codec.row_bytes(cols), cols);
  return out;
}

// Weights [rows][1536], whole blocks of every type; `rows` decides whether they fit a cache.
void matmul(benchmark::State& state, const Kernels& kernels, const Codec& codec, int tokens, int64_t rows,
            bool conv1d = false) {
  const int64_t cols = kFfn;
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
  const auto kernel = codec.act == Act::q8 ? kernels.matmul_integer : kernels.matmul;
  for (auto _ : state)
    for (a.row_begin = 0; a.row_begin < rows; a.row_begin = a.row_end) {
      a.row_end = std::min(rows, a.row_begin + kPanelRows);
      kernel(a);
    }
  using benchmark::Counter;
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(w.bytes()));
  state.counters["ops"] = Counter(2.0 * static_cast<double>(rows * cols * tokens), Counter::kIsIterationInvariantRate);
}

void attend_by_tile(const Kernels& kernels, AttendArgs a, const std::vector<Tile>& tiles, std::vector<float>& states) {
  for (size_t j = 0; j < tiles.size(); ++j) {
    a.tiles = &tiles[j];
    a.tile_count = static_cast<int>(tiles.size() - j);
    kernels.attend_tile(a, states.data() + j * kGroup * (kHeadDim + 2));
  }
  kernels.merge_tiles({states.data(), static_cast<int>(tiles.size()), kGroup, kHeadDim, a.out});
}

// One KV head's group of queries over `positions`, of which the tokens are the last; or one token tile by tile.
void attend(benchmark::State& state, const Kernels& kernels, const Codec& codec, int tokens, int positions,
            bool by_tile = false) {
  const size_t stride = codec.row_bytes(kHeadDim) * kKvHeads;
  const Buffer k = rows_of(codec, int64_t{positions} * kKvHeads, kHeadDim);
  const Buffer v = rows_of(codec, int64_t{positions} * kKvHeads, kHeadDim);
  std::vector<Tile> tiles;
  for (int first = 0; first < positions; first += kTilePositions) {
    const size_t at = static_cast<size_t>(first) * stride;
    tiles.push_back({first, live_below(first, positions), k.data() + at, v.data() + at, stride, stride});
  }
  const std::vector<float> q = numbers(int64_t{tokens} * kGroup * kHeadDim);
  std::vector<float> out(q.size());
  std::vector<float> scratch(static_cast<size_t>(attend_scratch_floats(kHeadDim, kGroup, tokens)));
  AttendArgs a{.tiles = tiles.data(),
               .tile_count = static_cast<int>(tiles.size()),
               .head_dim = kHeadDim,
               .group = kGroup,
               .tokens = tokens,
               .first_pos = positions - tokens,
               .scale = 0.125f,
               .k_form = codec.form,
               .v_form = codec.form,
               .decode_k = codec.decode,
               .decode_v = codec.decode,
               .q = q.data(),
               .out = out.data(),
               .q_stride = kGroup * kHeadDim,
               .out_stride = kGroup * kHeadDim,
               .scratch = scratch.data()};
  std::vector<float> states(tiles.size() * kGroup * (kHeadDim + 2));
  for (auto _ : state)
    for (int head = 0; head < kKvHeads; ++head) {
      a.k_offset = a.v_offset = static_cast<size_t>(head) * codec.row_bytes(kHeadDim);
      if (by_tile)
        attend_by_tile(kernels, a, tiles, states);
      else
        kernels.attend(a);
    }
  using benchmark::Counter;
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(2 * stride) * positions);
  state.counters["ops"] =
      Counter(4.0 * kKvHeads * kGroup * kHeadDim * tokens * positions, Counter::kIsIterationInvariantRate);
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
  add("silu_mul", kFfn, [&k](float* x) { k.silu_mul(x, other.data(), kFfn); });
  add("gelu", kFfn, [&k](float* x) { k.gelu(x, kFfn); });
  add("add", kHidden, [&k](float* x) { k.add(x, other.data(), kHidden); });
  add("encode_act", kFfn, [&k](float* x) { k.encode_act(x, act.data(), kFfn); });
  add("rope", kHidden, [&k](float* x) {
    k.rope({x, kHidden / kHeadDim, kHeadDim, angles.data(), angles.data() + kHeadDim / 2, false});
  });
}

void register_all(const Kernels& k) {
  const bool slow = std::string_view(k.name) == kScalarKernels.name;
  for (const Codec* codec : codecs())
    for (const int tokens : {1, 4, 128}) {
      const auto add = [&](const char* where, int64_t rows) {
        benchmark::RegisterBenchmark(
            fmt::format("{}/matmul/{}/tokens:{}{}", k.name, codec->name, tokens, where).c_str(),
            [&k, codec, tokens, rows](benchmark::State& state) { matmul(state, k, *codec, tokens, rows); });
      };
      add("", 128);
      if (codec->act == Act::f32)
        benchmark::RegisterBenchmark(
            fmt::format("{}/conv1d/{}/tokens:{}", k.name, codec->name, tokens).c_str(),
            [&k, codec, tokens](benchmark::State& state) { matmul(state, k, *codec, tokens, 128, true); });
      if (tokens == 1 && !slow) add("/far", 40000);
    }
  for (const Codec* codec : {&codec_f32(), &codec_f16(), &codec_bf16()}) {
    benchmark::RegisterBenchmark(fmt::format("{}/attend_tile/{}/positions:512", k.name, codec->name).c_str(),
                                 [&k, codec](benchmark::State& state) { attend(state, k, *codec, 1, 512, true); });
    for (const auto& [tokens, positions] : {std::pair{1, 512}, {1, 131072}, {16, 512}})
      if (!slow || positions == 512)
        benchmark::RegisterBenchmark(
            fmt::format("{}/attend/{}/tokens:{}/positions:{}", k.name, codec->name, tokens, positions).c_str(),
            [&k, codec, tokens = tokens, positions = positions](benchmark::State& state) {
              attend(state, k, *codec, tokens, positions);
            });
  }
  register_rows(k);
}

}  // namespace
}  // namespace kvasir

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const char* name : {"avx512", "avx2", "neon", "scalar"}) {
    setenv("KVASIR_CPU", name, 1);
    if (const auto target = kvasir::choose_cpu_target()) kvasir::register_all(kvasir::kernels_for(*target));
  }
  benchmark::RunSpecifiedBenchmarks();
}
