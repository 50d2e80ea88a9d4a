// Sums of sizes; network.cc reserves by the same functions.
#include "arch/footprint.h"

#include <algorithm>

#include "arch/workspace.h"
#include "math/compute.h"
#include "math/tile.h"

namespace kvasir {
namespace {

// The most inputs of a matrix.
int64_t widest(const ModelConfig& c) { return std::max<int64_t>({c.hidden, int64_t{c.heads} * c.head_dim, c.ffn}); }

}  // namespace

size_t workspace_floats(const ModelConfig& c, int tokens) {
  const int64_t q = int64_t{c.heads} * c.head_dim;
  const int64_t layer = 4 * int64_t{c.hidden} + 2 * q + 2 * int64_t{c.kv_dim()} + 2 * int64_t{c.ffn} + q;
  const int64_t always = 3 * int64_t{c.hidden} + 2 * int64_t{c.head_dim};
  return Workspace::floats_for(tokens, layer + always) + 64 * 16;
}

int64_t scratch_floats(const ModelConfig& c) {
  const int64_t first_tile = 2 * int64_t{kTilePositions} * c.head_dim;
  return std::max(widest(c) * kPanelRows, first_tile + attend_scratch_floats(c.head_dim, c.group(), kMaxAttendTokens));
}

size_t activation_bytes(const ModelConfig& c, int tokens, int threads) {
  const auto acts = static_cast<size_t>(int64_t{tokens} * widest(c) / kActElems) * sizeof(ActBlock);
  return (workspace_floats(c, tokens) + static_cast<size_t>(scratch_floats(c) * threads)) * sizeof(float) + acts;
}

size_t sequence_bytes(const ModelConfig& c, int seen) {
  const int64_t tiles = int64_t{seen} / kTilePositions + 2;  // a window begins and ends within a tile
  return (size_t{3} * static_cast<size_t>(c.vocab) +
          Workspace::floats_for(static_cast<int>(tiles * c.heads), c.head_dim + 2)) *
         sizeof(float);
}

}  // namespace kvasir
