// Experts read from a file: every wanted one is provided once with the file's bytes, those used most stay, memory is
// given back, failed reads are errors.
#include "format/expert_cache.h"

#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

using namespace format_test;
using testing::HasSubstr;

constexpr int kGroups = 3, kExperts = 12, kParts = 3, kUsed = 2;
constexpr size_t kBytes = 5000;

// A file whose bytes depend on their position; parts have odd offsets.
class Experts : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::string bytes(77 + size_t{kGroups * kExperts * kParts} * kBytes, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = value(i);
    put(path(), bytes);
    dir_ = std::make_shared<TensorDir>();
    dir_->files.push_back(*MappedFile::open(path()));
    for (size_t i = 0; i < size_t{kGroups * kExperts * kParts}; ++i) {
      TensorInfo info;
      info.name = fmt::format("t{}", i);
      info.offset = 77 + i * kBytes;
      info.bytes = kBytes;
      dir_->tensors.push_back(info);
    }
    // Part p of all experts of a group is one block of the file, as in GGUF.
    for (int g = 0; g < kGroups; ++g) {
      auto& group = parts_.emplace_back();
      for (int e = 0; e < kExperts; ++e) {
        auto& expert = group.emplace_back();
        for (int p = 0; p < kParts; ++p) expert.push_back(TensorPart::all_of(&dir_->tensors[number(g, e, p)]));
      }
    }
  }
  static size_t number(int group, int expert, int part) {
    return static_cast<size_t>((group * kParts + part) * kExperts + expert);
  }
  static char value(size_t i) { return static_cast<char>((i * 2654435761u) >> 13); }
  std::shared_ptr<ExpertCache> open(std::shared_ptr<Budget> budget = {}) {
    BackgroundReader::Options options;
    options.cached_too = GetParam();
    auto cache = ExpertCache::create(dir_, parts_, kUsed, 1 << 20, std::move(budget), options);
    EXPECT_TRUE(cache) << message_of(cache);
    return cache ? *cache : nullptr;
  }
  static bool is_right(int group, const ExpertCache::Loaded& loaded) {
    for (int p = 0; p < kParts; ++p)
      for (size_t i = 0; i < kBytes; ++i)
        if (static_cast<char>(loaded.parts[static_cast<size_t>(p)][i]) !=
            value(77 + number(group, loaded.expert, p) * kBytes + i))
          return false;
    return true;
  }
  // Wants the experts and returns them in the order in which they were provided.
  std::vector<int> take(ExpertCache& cache, int group, const std::vector<int>& wanted) {
    std::vector<int> got;
    cache.want(group, wanted);
    for (;;) {
      const auto loaded = cache.next(*pool_);
      EXPECT_TRUE(loaded) << message_of(loaded);
      if (!loaded || loaded->empty()) return got;
      for (const ExpertCache::Loaded& each : *loaded) {
        EXPECT_TRUE(is_right(group, each)) << group << " " << each.expert;
        got.push_back(each.expert);
      }
    }
  }
  fs::path path() const { return folder_ / "weights"; }

  TempFolder folder_;
  std::unique_ptr<ThreadPool> pool_ = *ThreadPool::create(2);
  std::shared_ptr<TensorDir> dir_;
  ExpertCache::Parts parts_;
};

INSTANTIATE_TEST_SUITE_P(Read, Experts, testing::Bool(),
                         [](const auto& disk) { return std::string(disk.param ? "FromDisk" : "Cached"); });

TEST_P(Experts, EachIsProvidedOnceWithTheFilesBytes) {
  const auto budget = Budget::create(1 << 20);
  const auto cache = open(budget);
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const int group = i % kGroups;
    std::vector<int> all(kExperts);
    for (int e = 0; e < kExperts; ++e) all[static_cast<size_t>(e)] = e;
    std::shuffle(all.begin(), all.end(), random);
    all.resize(1 + random() % kExperts);
    std::ranges::sort(all);
    EXPECT_THAT(take(*cache, group, all), testing::UnorderedElementsAreArray(all));
    if (i % 5 == 0) cache->give_back(random() % 100000);
    if (i % 3 == 0) cache->guess((group + 1) % kGroups, std::vector<int>{1, 5, 7});
  }
  const ExpertStats stats = cache->stats();
  EXPECT_GT(stats.used, stats.read);
  EXPECT_GT(stats.read, 0);
}

TEST_P(Experts, MoreThanTheMemoryHoldsComeInTurns) {
  const auto cache = open();
  const size_t fixed = cache->bytes();
  std::vector<int> all(kExperts);
  for (int e = 0; e < kExperts; ++e) all[static_cast<size_t>(e)] = e;
  EXPECT_EQ(take(*cache, 1, all).size(), size_t{kExperts});
  EXPECT_EQ(cache->bytes(), fixed) << "without a budget nothing more is held";
  EXPECT_EQ(cache->spare_bytes(), 0u);
}

TEST_P(Experts, ThoseUsedMostStay) {
  const auto cache = open();  // four slots
  for (int i = 0; i < 6; ++i) (void)take(*cache, 0, {3, 4});
  for (int e = 5; e < kExperts; ++e) (void)take(*cache, 0, {e});
  const int64_t read = cache->stats().read;
  (void)take(*cache, 0, {3, 4});
  EXPECT_EQ(cache->stats().read, read);
}

TEST_P(Experts, TheBudgetIsKeptAndGivenBack) {
  const auto budget = Budget::create(100000);
  const auto cache = open(budget);
  const size_t fixed = cache->bytes();
  for (int e = 0; e < kExperts; ++e) (void)take(*cache, 0, {e});
  EXPECT_EQ(budget->left(), 100000 - (cache->bytes() - fixed));
  EXPECT_GT(cache->bytes(), fixed);
  EXPECT_EQ(cache->spare_bytes(), cache->bytes() - fixed);
  EXPECT_TRUE(cache->give_back(1));
  EXPECT_TRUE(cache->give_back(SIZE_MAX));
  EXPECT_FALSE(cache->give_back(1));
  EXPECT_EQ(cache->bytes(), fixed);
  EXPECT_EQ(budget->left(), 100000u);
  EXPECT_EQ(take(*cache, 0, {0, 1, 2, 3, 4, 5}).size(), 6u);
}

TEST_P(Experts, AFailedReadNamesTheTensorAndTheNextWorks) {
  const auto cache = open();
  fs::resize_file(path(), dir_->tensors[number(2, 5, 1)].offset + 1000);
  const std::vector<int> wanted{5};
  cache->want(2, wanted);
  const auto cut = cache->next(*pool_);
  EXPECT_THAT(message_of(cut), HasSubstr(fmt::format("tensor \"t{}\"", number(2, 5, 1))));
  EXPECT_EQ(take(*cache, 1, {5, 6}).size(), 2u);
}

}  // namespace
}  // namespace kvasir
