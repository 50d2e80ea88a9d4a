// Facts about this machine, from /proc, /sys and cpuid: CPU targets, cores that this process may use, memory.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <kvasir/result.h>

namespace kvasir {

/// Instruction sets that have a kernel table. VNNI and dotprod are the byte products: AVX-VNNI, AVX512_VNNI,
/// Armv8.2-A's FEAT_DotProd.
enum class CpuTarget { scalar, avx2, avx2_vnni, avx512, avx512_vnni, neon, neon_dotprod };

const char* cpu_target_name(CpuTarget target);
/// The targets that this machine supports, each faster than the one before; empty if the CPU is below x86-64-v3.
std::vector<CpuTarget> supported_targets();

/// The best target of this machine, or the one that the environment variable KVASIR_CPU names. Errors: a CPU below
/// x86-64-v3, an unknown name, a target that this machine lacks.
Result<CpuTarget> choose_cpu_target();

/// min(CPU affinity, cgroup quota, physical cores), at least 1.
int default_threads();
/// Number of CPUs that this process may run on.
int available_cpus();

/// Peak resident memory of this process, in bytes (the kernel's ru_maxrss, as /usr/bin/time prints it).
size_t peak_rss_bytes();
/// Memory that this process can still allocate, in bytes: the smaller of MemAvailable and what its cgroup leaves.
size_t available_memory_bytes();
/// Memory that is completely unused, not even as file cache, in bytes (MemFree).
size_t unused_memory_bytes();
/// For example "AMD EPYC", from /proc/cpuinfo; empty if it cannot be read.
std::string cpu_model_name();

/// Sizes of the CPU's data caches in bytes, from the C library; 0 if unknown.
struct CacheSizes {
  size_t l1 = 0, l2 = 0, l3 = 0;
};
CacheSizes cache_sizes();

}  // namespace kvasir
