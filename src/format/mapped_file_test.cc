// Mapped files against the bytes written.
#include "format/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include <gmock/gmock.h>

#include "base/rss.h"
#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

using namespace format_test;
using testing::AllOf;
using testing::HasSubstr;

TEST(MappedFile, BytesAreTheFiles) {
  TempFolder folder;
  const std::string text = pattern(10'007);
  put(folder / "a", text);
  const auto file = MappedFile::open(folder / "a");
  ASSERT_TRUE(file) << message_of(file);
  const auto bytes = (*file)->bytes();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), text);
  EXPECT_EQ((*file)->path(), folder / "a");
}

TEST(MappedFile, ReadAtGivesTheRangeOrAnError) {
  TempFolder folder;
  put(folder / "a", pattern(5000));
  const auto file = MappedFile::open(folder / "a");
  ASSERT_TRUE(file);
  std::string out(300, '\0');
  ASSERT_TRUE((*file)->read_at(4700, std::as_writable_bytes(std::span(out))));
  EXPECT_EQ(out, pattern(5000).substr(4700));
  EXPECT_THAT(message_of((*file)->read_at(4701, std::as_writable_bytes(std::span(out)))), HasSubstr("past the end"));
  EXPECT_THAT(message_of((*file)->read_at(UINT64_MAX, std::as_writable_bytes(std::span(out)))),
              HasSubstr("past the end"));
  fs::resize_file(folder / "a", 4800);
  EXPECT_THAT(message_of((*file)->read_at(4700, std::as_writable_bytes(std::span(out)))),
              HasSubstr("short read: 100 of 300 bytes at offset 4700"));
}

size_t resident_weights() {
  const auto rss = rss_by_owner(0);
  EXPECT_TRUE(rss);
  return rss.value_or(RssByOwner{}).weights;
}

TEST(MappedFile, ItsResidentPagesCountAsWeights) {
  constexpr size_t kPages = 1024, kRead = 7, kDropped = 300;
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE)), before = resident_weights();
  TempFolder folder;
  const std::string text = pattern(kPages * page - 5);
  put(folder / "a", text);
  {
    const auto file = MappedFile::open(folder / "a");
    ASSERT_TRUE(file);
    const auto bytes = (*file)->bytes();
    EXPECT_EQ(resident_weights(), before);
    for (size_t i = 0; i < kRead; ++i) EXPECT_EQ(bytes[101 * i * page + i], as_span(text)[101 * i * page + i]);
    const size_t few = resident_weights() - before;  // the kernel may also map cached neighbours of a page
    EXPECT_GE(few, kRead * page);
    EXPECT_LE(few, kPages * page);
    EXPECT_TRUE(std::ranges::equal(bytes, as_span(text)));
    EXPECT_EQ(resident_weights(), before + kPages * page);
    std::byte* const begin = const_cast<std::byte*>(bytes.data());
    ASSERT_EQ(::madvise(begin + 11 * page, kDropped * page, MADV_DONTNEED),
              0);  // may drop all of the 2 MiB around them
    EXPECT_LE(resident_weights(), before + (kPages - kDropped) * page);
    ASSERT_EQ(::madvise(begin, bytes.size(), MADV_DONTNEED), 0);
    EXPECT_EQ(resident_weights(), before);
    EXPECT_EQ(bytes[5], as_span(text)[5]);
  }
  EXPECT_EQ(resident_weights(), before);
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  TempFolder folder;
  put(folder / "empty", "");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of(MappedFile::open(folder / "none")),
              AllOf(HasSubstr("No such file"), HasSubstr((folder / "none").string())));
  EXPECT_THAT(message_of(MappedFile::open(folder / "empty")), HasSubstr("empty"));
  EXPECT_THAT(message_of(MappedFile::open(folder.path())), HasSubstr("Is a directory"));
  EXPECT_THAT(message_of(MappedFile::open(folder / "pipe")), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace kvasir
