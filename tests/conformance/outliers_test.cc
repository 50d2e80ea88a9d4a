// Tests the purpose of the rotation in q4_0h: keys with a few channels far larger than the rest.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "cache/kv_type.h"
#include "math/hadamard.h"

namespace kvasir {
namespace {

constexpr int kHeadDim = 64, kKeys = 500;

// Root mean square error of the scores q k with stored keys of this type (rotated if the type is), against exact keys.
double score_error(const KvType& type, const std::vector<std::vector<float>>& keys,
                   const std::vector<std::vector<float>>& queries) {
  double squares = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    std::vector<float> k = keys[i], q = queries[i], stored(kHeadDim);
    double exact = 0, got = 0;
    for (size_t d = 0; d < kHeadDim; ++d) exact += static_cast<double>(q[d]) * static_cast<double>(k[d]);
    if (type.rotated) rotate_heads(k.data(), 1, kHeadDim), rotate_heads(q.data(), 1, kHeadDim);
    std::vector<std::byte> row(type.codec->row_bytes(kHeadDim));
    type.codec->encode_kv(k.data(), row.data(), kHeadDim);
    type.codec->decode(row.data(), stored.data(), kHeadDim);
    for (size_t d = 0; d < kHeadDim; ++d) got += static_cast<double>(q[d]) * static_cast<double>(stored[d]);
    squares += (got - exact) * (got - exact);
  }
  return std::sqrt(squares / kKeys);
}

TEST(Outliers, RotationHalvesTheErrorOfFourBits) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> keys(kKeys), queries(kKeys);
  for (size_t i = 0; i < kKeys; ++i)
    for (int d = 0; d < kHeadDim; ++d) {
      const bool outlier = d == 3 || d == 20 || d == 41 || d == 62;  // two in each block of 32
      keys[i].push_back(normal(random) * (outlier ? 10.0f : 1.0f));
      queries[i].push_back(normal(random));
    }
  const double plain = score_error(**find_kv_type("q4_0"), keys, queries),
               rotated = score_error(**find_kv_type("q4_0h"), keys, queries);
  RecordProperty("q4_0", std::to_string(plain));
  RecordProperty("q4_0h", std::to_string(rotated));
  EXPECT_LE(rotated * 2, plain) << rotated << " of " << plain;
}

}  // namespace
}  // namespace kvasir
