// Reads with a limit, and outputs that must be whole or absent.
#include "base/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <gmock/gmock.h>

#include "tests/tiny_models.h"

namespace kvasir {
namespace {

using namespace format_test;
using testing::AllOf;
using testing::HasSubstr;

TEST(ReadTextFile, HonoursItsLimit) {
  TempFolder folder;
  put(folder / "a", pattern(100));
  put(folder / "empty", "");
  EXPECT_EQ(*read_text_file(folder / "a", 100), pattern(100));
  EXPECT_EQ(*read_text_file(folder / "empty", 0), "");
  EXPECT_THAT(message_of(read_text_file(folder / "a", 99)), HasSubstr("100 bytes, at most 99 allowed"));
}

TEST(AtomicFile, AppearsOnlyOnCommitAndReplaces) {
  TempFolder folder;
  put(folder / "out", "old");
  auto file = AtomicFile::create(folder / "out");
  ASSERT_TRUE(file) << message_of(file);
  const std::string big = pattern(700'001);  // more than the buffer, in pieces around its size
  for (size_t at = 0, piece = 1; at < big.size(); at += piece, piece = piece * 3 % 300'007)
    ASSERT_TRUE(file->write(as_span(std::string_view(big).substr(at, piece))));
  EXPECT_EQ(slurp(folder / "out"), "old");
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(slurp(folder / "out"), big);
  EXPECT_EQ(folder.count(), 1u);
  EXPECT_FALSE(file->write(as_span("more")));
  EXPECT_FALSE(file->commit());
}

TEST(AtomicFile, LeavesNothingWhenDropped) {
  TempFolder folder;
  {
    auto file = AtomicFile::create(folder / "out");
    ASSERT_TRUE(file);
    AtomicFile moved = std::move(*file);
    ASSERT_TRUE(moved.write(as_span("half")));
    EXPECT_EQ(folder.count(), 1u);
  }
  EXPECT_EQ(folder.count(), 0u);
}

TEST(AtomicFile, TwoWritersOfOnePathDoNotMix) {
  TempFolder folder;
  auto a = AtomicFile::create(folder / "out"), b = AtomicFile::create(folder / "out");
  ASSERT_TRUE(a && b);
  ASSERT_TRUE(a->write(as_span("first")) && b->write(as_span("second")));
  ASSERT_TRUE(b->commit());
  EXPECT_EQ(slurp(folder / "out"), "second");
  ASSERT_TRUE(a->commit());
  EXPECT_EQ(slurp(folder / "out"), "first");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(AtomicFile, UnwritableOutputsAreNamed) {
  TempFolder folder;
  const fs::path missing = folder / "no" / "out";
  EXPECT_THAT(message_of(write_file_atomically(missing, as_span("x"))),
              AllOf(HasSubstr("No such file"), HasSubstr(missing.string())));
  EXPECT_THAT(message_of(write_file_atomically(folder.path(), as_span("x"))), HasSubstr("Is a directory"));
  EXPECT_EQ(folder.count(), 0u);
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  EXPECT_THAT(message_of(write_file_atomically("/dev/full", as_span("x"))),
              AllOf(HasSubstr("No space left"), HasSubstr("/dev/full")));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_TRUE(write_file_atomically("/dev/null", as_span("x")));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(AtomicFile, WritesThroughALink) {
  TempFolder folder;
  put(folder / "real", "old");
  fs::create_symlink("real", folder / "link");
  ASSERT_TRUE(write_file_atomically(folder / "link", as_span("new")));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(slurp(folder / "real"), "new");
}

}  // namespace
}  // namespace kvasir
