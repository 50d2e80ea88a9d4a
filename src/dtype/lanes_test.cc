// The worked example of docs/numerics.md, to keep that page true.
#include "dtype/lanes.h"

#include <gtest/gtest.h>

namespace kvasir {
namespace {

TEST(NumericsExample, SeventeenElements) {
  float a[17];
  for (float& x : a) x = 1.0f;
  a[0] = 16777216.0f;
  const auto one = [](int64_t) { return 1.0f; };
  EXPECT_EQ(dot_lanes(
                17, [&](int64_t i) { return a[i]; }, one),
            16777230.0f);
  float left_to_right = 0;
  for (float x : a) left_to_right += x;
  EXPECT_EQ(left_to_right, 16777216.0f);
}

}  // namespace
}  // namespace kvasir
