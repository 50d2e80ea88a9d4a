// Queries to the operating system and to cpuid.
#include "base/system.h"

#include <sched.h>
#include <sys/resource.h>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kvasir {
namespace {

std::string first_line(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// The cgroup's CPU quota in CPUs; 0: no limit. v2 has "max 100000" or "150000 100000"; v1 has the two numbers in two
// files.
double cgroup_cpus() {
  const std::string v2 = first_line("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (!v2.empty()) {
    if (std::sscanf(v2.c_str(), "%lf %lf", &quota, &period) == 2 && period > 0) return quota / period;
    return 0;
  }
  quota = std::atof(first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").c_str());
  period = std::atof(first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us").c_str());
  return quota > 0 && period > 0 ? quota / period : 0;
}

// The number after `wanted` in a file with one key and number per line; 0 if it cannot be read.
size_t value_in(const char* path, std::string_view wanted) {
  std::ifstream in(path);
  std::string key, rest;
  size_t value = 0;
  while (in >> key >> value) {
    std::getline(in, rest);
    if (key == wanted) return value;
  }
  return 0;
}

struct MemoryGroup {
  std::string folder;
  const char *most, *used;  // file names
};

// The process's memory cgroup and those around it, of v2 and v1. In a container, paths outside do not exist.
std::vector<MemoryGroup> memory_groups() {
  std::vector<MemoryGroup> groups;
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {  // "0::/system.slice/x.service", "7:memory:/user/1000"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && controllers != "memory") continue;
    std::string path = line.substr(second + 1);
    for (;; path.resize(path.rfind('/'))) {
      while (path.ends_with('/')) path.pop_back();
      groups.push_back(
          v2 ? MemoryGroup{"/sys/fs/cgroup" + path, "/memory.max", "/memory.current"}
             : MemoryGroup{"/sys/fs/cgroup/memory" + path, "/memory.limit_in_bytes", "/memory.usage_in_bytes"});
      if (path.find('/') == std::string::npos) break;
    }
  }
  return groups;
}

// Bytes that the process's cgroups can still allocate, with or without what they would free of the file cache, which
// the kernel drops first; the largest number if there is no limit.
size_t cgroup_memory_left(bool with_file_cache) {
  size_t left = SIZE_MAX;
  for (const auto& [folder, most_file, used_file] : memory_groups()) {
    const std::string most = first_line((folder + most_file).c_str()), used = first_line((folder + used_file).c_str());
    if (most.empty() || most == "max" || used.empty()) continue;
    const size_t files = with_file_cache ? value_in((folder + "/memory.stat").c_str(), "inactive_file") : 0;
    const size_t limit = std::strtoull(most.c_str(), nullptr, 10) + files;
    const size_t taken = std::strtoull(used.c_str(), nullptr, 10);
    left = std::min(left, limit > taken ? limit - taken : 0);
  }
  return left;
}

int physical_cores() {
  std::set<std::pair<std::string, std::string>> cores;
  for (int cpu = 0;; ++cpu) {
    const std::string base = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
    const std::string core = first_line((base + "core_id").c_str());
    if (core.empty()) break;
    cores.emplace(first_line((base + "physical_package_id").c_str()), core);
  }
  return static_cast<int>(cores.size());
}

#if defined(__x86_64__)
// Asks cpuid directly, since g++ and clang name this feature differently or not at all.
bool has_avx_vnni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax >> 4 & 1) != 0;
}
#endif

}  // namespace

std::vector<CpuTarget> supported_targets() {
  std::vector<CpuTarget> targets{CpuTarget::scalar};
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (!v3) return {};
  targets.push_back(CpuTarget::avx2);
  if (has_avx_vnni()) targets.push_back(CpuTarget::avx2_vnni);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    targets.push_back(CpuTarget::avx512);
    if (__builtin_cpu_supports("avx512vnni")) targets.push_back(CpuTarget::avx512_vnni);
  }
#elif defined(__aarch64__)
  targets.push_back(CpuTarget::neon);  // every 64-bit Arm CPU has it
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0) targets.push_back(CpuTarget::neon_dotprod);
#endif
  return targets;
}

const char* cpu_target_name(CpuTarget target) {
  switch (target) {
    case CpuTarget::scalar:
      return "scalar";
    case CpuTarget::avx2:
      return "avx2";
    case CpuTarget::avx2_vnni:
      return "avx2_vnni";
    case CpuTarget::avx512:
      return "avx512";
    case CpuTarget::avx512_vnni:
      return "avx512_vnni";
    case CpuTarget::neon:
      return "neon";
    case CpuTarget::neon_dotprod:
      return "neon_dotprod";
  }
  return "";
}

Result<CpuTarget> choose_cpu_target() {
  const std::vector<CpuTarget> targets = supported_targets();
  if (targets.empty())
    return fail(Error::unsupported, "this CPU lacks AVX2 and FMA; Kvasir needs at least x86-64-v3", "cpu",
                "a CPU of 2015 or later");
  const char* asked = std::getenv("KVASIR_CPU");
  if (asked == nullptr || *asked == '\0') return targets.back();
  std::vector<std::string_view> names;
  for (CpuTarget target : targets) {
    if (std::string_view(asked) == cpu_target_name(target)) return target;
    names.push_back(cpu_target_name(target));
  }
  return fail(Error::bad_argument, fmt::format("\"{}\" is not a CPU target of this machine", asked), "KVASIR_CPU",
              fmt::format("{}", fmt::join(names, ", ")));
}

int available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

int default_threads() {
  int threads = available_cpus();
  if (const double quota = cgroup_cpus(); quota > 0) threads = std::min(threads, static_cast<int>(std::ceil(quota)));
  if (const int cores = physical_cores(); cores > 0) threads = std::min(threads, cores);
  return std::max(1, threads);
}

size_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

size_t available_memory_bytes() {
  return std::min(value_in("/proc/meminfo", "MemAvailable:") * 1024, cgroup_memory_left(true));
}
size_t unused_memory_bytes() {
  return std::min(value_in("/proc/meminfo", "MemFree:") * 1024, cgroup_memory_left(false));
}

std::string cpu_model_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return {};
}

CacheSizes cache_sizes() {
  const auto bytes = [](int name) { return static_cast<size_t>(std::max(0L, sysconf(name))); };
  return {bytes(_SC_LEVEL1_DCACHE_SIZE), bytes(_SC_LEVEL2_CACHE_SIZE), bytes(_SC_LEVEL3_CACHE_SIZE)};
}

}  // namespace kvasir
