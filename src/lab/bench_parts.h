// What the benchmarks share.
#pragma once

#include <vector>

namespace kvasir {

/// Ids that are all over the vocabulary and the same every time.
std::vector<int> bench_ids(int n, int vocab, int salt);
double median(std::vector<double> values);

}  // namespace kvasir
