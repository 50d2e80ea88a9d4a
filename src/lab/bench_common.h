// Helpers that the benchmarks share.
#pragma once

#include <vector>

namespace kvasir {

/// `n` pseudo-random ids over the vocabulary; the same arguments give the same ids. A shorter list is a prefix of a
/// longer one with the same salt.
std::vector<int> bench_ids(int n, int vocab, int salt);
double median(std::vector<double> values);

}  // namespace kvasir
