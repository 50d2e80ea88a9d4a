// What this machine is: CPU targets, cores that this process may use, memory. Reads /proc and /sys, computes nothing.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <kvasir/result.h>

namespace kvasir {

/// Instruction sets that a kernel table exists for. VNNI and dotprod are the products of bytes: AVX-VNNI,
/// AVX512_VNNI, Armv8.2-A's FEAT_DotProd.
enum class CpuTarget { scalar, avx2, avx2_vnni, avx512, avx512_vnni, neon, neon_dotprod };

const char* cpu_target_name(CpuTarget target);
/// The targets that this machine runs, each faster than the one before; none if it is below x86-64-v3.
std::vector<CpuTarget> supported_targets();

/// The best target of this machine, or the one that the environment variable KVASIR_CPU names.
/// Errors: a CPU below x86-64-v3, an unknown name, a target that this machine lacks.
Result<CpuTarget> choose_cpu_target();

/// min(CPU affinity, cgroup quota, physical cores), at least 1.
int default_threads();
/// CPUs that this process may run on.
int available_cpus();

/// The most memory this process has held so far, in bytes (the kernel's ru_maxrss, as /usr/bin/time prints it).
size_t peak_rss_bytes();
/// Memory that the system could hand out to this process now, in bytes: MemAvailable, or what its cgroup leaves it.
size_t available_memory_bytes();
/// Memory that nobody uses now, not even as a cache of files, in bytes (MemFree).
size_t unused_memory_bytes();
/// "AMD EPYC", from /proc/cpuinfo; empty when it cannot be read.
std::string cpu_model_name();

/// Bytes of the caches that a CPU reads data through, as the C library finds them; 0 where it does not.
struct CacheSizes {
  size_t l1 = 0, l2 = 0, l3 = 0;
};
CacheSizes cache_sizes();

}  // namespace kvasir
