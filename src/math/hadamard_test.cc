// Compares rotate_heads() with the matrix itself, in double.
#include "math/hadamard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace kvasir {
namespace {

// Entry (i, j) of Sylvester's matrix of order n.
double entry(int i, int j, int n) {
  return (std::popcount(static_cast<unsigned>(i & j)) % 2 == 0 ? 1.0 : -1.0) / std::sqrt(n);
}

TEST(Hadamard, EveryRunOfAHeadIsMultipliedByTheMatrix) {
  for (const auto& [head_dim, order] : {std::pair{64, 64}, {80, 16}, {96, 32}, {24, 8}, {6, 2}, {5, 1}, {128, 128}}) {
    constexpr int kHeads = 3;
    std::vector<float> row;
    for (int i = 0; i < kHeads * head_dim; ++i) row.push_back(static_cast<float>(i * i % 101 - 50) / 7.0f);
    const std::vector<float> before = row;
    rotate_heads(row.data(), kHeads, head_dim);
    for (int i = 0; i < kHeads * head_dim; ++i) {
      const int begin = i / order * order;
      double expected = 0;
      for (int j = 0; j < order; ++j)
        expected += entry(i - begin, j, order) * static_cast<double>(before[static_cast<size_t>(begin + j)]);
      ASSERT_NEAR(row[static_cast<size_t>(i)], expected, 1e-5) << head_dim << " " << i;
    }
    rotate_heads(row.data(), kHeads, head_dim);
    for (size_t i = 0; i < row.size(); ++i) ASSERT_NEAR(row[i], before[i], 1e-5) << "its own inverse";
  }
}

}  // namespace
}  // namespace kvasir
