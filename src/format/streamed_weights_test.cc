// Streaming with every way of reading, with several threads, and with failed reads.
#include "format/streamed_weights.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <fmt/format.h>

#include <fstream>
#include <thread>

#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

using namespace format_test;
using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kTensors = 6, kBytes = (size_t{1} << 20) + 333;

// A file of several tensors; each byte depends on its position. Offsets and sizes are odd.
class ThreadsStreamed : public testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  void SetUp() override {
    std::string bytes(77 + kTensors * kBytes, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = value(i);
    put(path(), bytes);
    dir_ = std::make_shared<TensorDir>();
    dir_->files.push_back(*MappedFile::open(path()));
    for (size_t i = 0; i < kTensors; ++i) {
      TensorInfo info;
      info.name = fmt::format("t{}", i);
      info.offset = 77 + i * kBytes;
      info.bytes = kBytes;
      dir_->tensors.push_back(info);
    }
    for (const TensorInfo& info : dir_->tensors) use_.groups.push_back({TensorPart::all_of(&info)});
  }
  static char value(size_t i) { return static_cast<char>((i * 2654435761u) >> 13); }
  static BackgroundReader::Options options() { return {std::get<0>(GetParam()), std::get<1>(GetParam())}; }
  std::unique_ptr<WeightSource> open() {
    auto source = StreamedWeights::open(dir_, use_, kTensors * kBytes, {}, options());
    EXPECT_TRUE(source) << message_of(source);
    return source ? std::move(*source) : nullptr;
  }
  void drop_cache() const {
    const int fd = ::open(path().c_str(), O_RDONLY);
    ::fsync(fd);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
  // The first wrong byte of the group, -1 for none.
  static int64_t wrong(const std::byte* got, size_t group) {
    for (size_t i = 0; i < kBytes; ++i)
      if (static_cast<char>(got[i]) != value(77 + group * kBytes + i)) return static_cast<int64_t>(i);
    return -1;
  }
  fs::path path() const { return folder_ / "weights"; }

  TempFolder folder_;
  std::unique_ptr<ThreadPool> pool_ = *ThreadPool::create(2);
  std::shared_ptr<TensorDir> dir_;
  WeightUse use_;
};

TEST_P(ThreadsStreamed, GivesTheFilesBytes) {
  const auto source = open();
  for (int pass = 0; pass < 3; ++pass) {
    drop_cache();
    for (int g = 0; g < static_cast<int>(kTensors); ++g) {
      const auto got = source->acquire(g, (g + 1) % static_cast<int>(kTensors), *pool_);
      ASSERT_TRUE(got) << message_of(got);
      EXPECT_EQ(wrong((*got)[0], static_cast<size_t>(g)), -1) << "group " << g;
      source->release(g);
    }
  }
  EXPECT_LE(source->resident_bytes(), 2 * (kBytes + 2 * 4096));
}

TEST_P(ThreadsStreamed, PassesOfSeveralThreadsTakeTurns) {
  const auto source = open();
  const auto pass = [&](int* errors) {
    const auto pool = *ThreadPool::create(2);
    for (int i = 0; i < 3; ++i) {
      const auto lock = source->begin_pass();
      for (int g = 0; g < static_cast<int>(kTensors); ++g) {
        const auto got = source->acquire(g, g + 1, *pool);
        *errors += !got || wrong((*got)[0], static_cast<size_t>(g)) != -1;
        source->release(g);
      }
    }
  };
  int errors[2] = {};
  std::thread other(pass, &errors[0]);
  pass(&errors[1]);
  other.join();
  EXPECT_EQ(errors[0] + errors[1], 0);
}

TEST_P(ThreadsStreamed, AFailedReadNamesTheTensorAndTheNextWorks) {
  const auto source = open();
  ASSERT_TRUE(source->acquire(0, 5, *pool_));  // group 5 may be read ahead now
  source->release(0);
  fs::resize_file(path(), dir_->tensors[4].offset + 1000);
  const auto cut = source->acquire(4, 5, *pool_);
  EXPECT_THAT(message_of(cut), AllOf(HasSubstr("tensor \"t4\""), HasSubstr("1000 of"), HasSubstr(path().string())));
  const auto whole = source->acquire(2, -1, *pool_);
  ASSERT_TRUE(whole) << message_of(whole);
  EXPECT_EQ(wrong((*whole)[0], 2), -1);
}

INSTANTIATE_TEST_SUITE_P(ThreadsRead, ThreadsStreamed, testing::Combine(testing::Bool(), testing::Bool()),
                         [](const auto& ways) {
                           return std::string(std::get<0>(ways.param) ? "IoUring" : "Plain") +
                                  (std::get<1>(ways.param) ? "Cached" : "Direct");
                         });

// Bytes of the file that the page cache holds.
size_t cached_bytes(const MappedFile& file) {
  size_t cached = 0;
  constexpr size_t kPage = 4096;
  for (size_t at = 0; at + kPage <= file.bytes().size(); at += kPage)
    if (file.cached(at)) cached += kPage;
  return cached;
}

using PageCache = ThreadsStreamed;
INSTANTIATE_TEST_SUITE_P(Kept, PageCache, testing::Combine(testing::Bool(), testing::Values(false)));

// If read bytes may not stay cached, a pass leaves the page cache almost as it was.
TEST_P(PageCache, IsLeftAsItWas) {
  if (dir_->files[0]->direct_fd() < 0) GTEST_SKIP() << "this file system has no O_DIRECT";
  drop_cache();
  if (cached_bytes(*dir_->files[0]) > 0) GTEST_SKIP() << "this file system keeps files in memory";
  const auto source = open();
  for (int g = 0; g < static_cast<int>(kTensors); ++g) {
    ASSERT_TRUE(source->acquire(g, g + 1, *pool_));
    source->release(g);
  }
  EXPECT_LT(cached_bytes(*dir_->files[0]), kBytes);
}

}  // namespace
}  // namespace kvasir
