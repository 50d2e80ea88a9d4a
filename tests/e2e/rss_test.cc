// The program's report of its resident set by owner; the sum must agree with the kernel's count.
#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/rss.h"
#include "tests/support/program.h"

namespace kvasir::e2e {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::json;

constexpr size_t kMiB = size_t{1} << 20;

size_t page() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

/// Returns the stats of a short run, after checking what must hold for every split.
Json stats_of(const Arguments& more, const std::string& model = "tales") {
  Arguments arguments{"run", model, "-p", "Hello", "-n", "8", "--greedy", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Json stats = Json::parse(expect_ok(run_program(arguments)), nullptr, false)["stats"];
  SCOPED_TRACE(testing::PrintToString(more) + stats.dump());
  const Json& rss = stats["rss_bytes"];
  size_t sum = 0;
  for (const char* owner : {"weights", "kv", "activations", "tokenizer", "code", "other"}) {
    const size_t bytes = rss[owner];
    sum += bytes;
    EXPECT_TRUE(bytes > 0 || (std::string(owner) == "tokenizer" && heap_bytes() == 0)) << owner;
  }
  const size_t kernel = rss["kernel"];
  EXPECT_EQ(rss["total"], sum);
  EXPECT_LE(std::max(sum, kernel) - std::min(sum, kernel), std::max(2 * kMiB, kernel / 100 * 3));
  EXPECT_LE(sum, stats["peak_rss_bytes"].get<size_t>() + 2 * kMiB);
  return stats;
}

TEST(E2eRss, DenseHoldsItsWholeStore) {
  for (const char* type : {"f32", "bf16"}) {
    const Json stats = stats_of({"--cache", "dense", "--ctx", "512", "--kv-type", type});
    const size_t kv = stats["kv_bytes"], held = stats["rss_bytes"]["kv"];
    EXPECT_GE(held, kv) << type;
    EXPECT_LE(held, kv + 2 * page()) << type << ": one buffer for K, one for V";
  }
}

TEST(E2eRss, GrowHoldsWhatItWrote) {
  const Json stats = stats_of({});
  const size_t kv = stats["kv_bytes"], held = stats["rss_bytes"]["kv"];
  EXPECT_LE(held, kv + 2 * page());
  EXPECT_GE(held, stats["kv_capacity"].get<size_t>() > 0 ? 2 * page() : 0);
}

TEST(E2eRss, WeightsAreOurOwnMemoryOrPagesOfTheFile) {
  const Json resident = stats_of({"--weights", "resident"}), mapped = stats_of({"--weights", "mapped"});
  const size_t bytes = resident["weights_bytes"];
  // Resident: norms are decoded on the heap, the last huge page may be whole.
  EXPECT_GE(resident["rss_bytes"]["weights"], bytes / 100 * 99);
  EXPECT_LE(resident["rss_bytes"]["weights"], bytes + 3 * kMiB);
  // Mapped: rows of the embedding that no token needed may be missing.
  EXPECT_GE(mapped["rss_bytes"]["weights"], bytes / 2);
  EXPECT_LE(mapped["rss_bytes"]["weights"], bytes + kMiB / 4);
  for (const char* owner : {"kv", "tokenizer"}) {
    const size_t a = resident["rss_bytes"][owner], b = mapped["rss_bytes"][owner];
    EXPECT_LE(std::max(a, b) - std::min(a, b), kMiB / 4) << owner;
  }
}

TEST(E2eRss, StatsPrintTheSplit) {
  const Outcome outcome = run_program({"run", "tales", "-p", "Hello", "-n", "4", "--greedy", "--stats"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err,
              testing::ContainsRegex("\nRSS         [0-9.]+ MiB at the end: weights [0-9.]+, KV [0-9.]+, activations "
                                     "[0-9.]+, tokenizer [0-9.]+, code [0-9.]+, other [0-9.]+; the kernel counts "
                                     "[0-9.]+\n"));
}

}  // namespace
}  // namespace kvasir::e2e
