// Reads with a limit, and outputs that are complete or absent.
#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include <gmock/gmock.h>

#include "tests/support/tiny_models.h"

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
  const std::string big = pattern(700'001);  // larger than the buffer, in pieces around its size
  for (size_t at = 0, piece = 1; at < big.size(); at += piece, piece = piece * 3 % 300'007)
    ASSERT_TRUE(file->write(as_span(std::string_view(big).substr(at, piece))));
  EXPECT_EQ(slurp(folder / "out"), "old");
  EXPECT_LE(folder.count(), 2u) << "the bytes have no name, or a temporary one";
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
    EXPECT_LE(folder.count(), 1u);
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

TEST(AtomicFile, MayGetAnotherName) {
  TempFolder folder;
  auto file = AtomicFile::create(folder / "out");
  ASSERT_TRUE(file && file->write(as_span("bytes")));
  fs::create_directory(folder / "later");
  ASSERT_TRUE(file->commit(folder / "later" / "name"));
  EXPECT_EQ(slurp(folder / "later" / "name"), "bytes");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(AtomicFile, HasTheRightsThatAnyNewFileHas) {
  TempFolder folder;
  const mode_t before = ::umask(027);
  const auto done = write_file_atomically(folder / "out", as_span("x"));
  ::umask(before);
  ASSERT_TRUE(done) << message_of(done);
  struct stat info;
  ASSERT_EQ(::stat((folder / "out").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0640u);
}

TEST(AtomicFile, RemovesWhatKilledProcessesLeft) {
  TempFolder folder;
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(gone, nullptr, 0), gone);
  const std::string dead = std::to_string(gone), own = std::to_string(::getpid()), parent = std::to_string(::getppid());
  for (const std::string& name : {"out.tmp." + dead, "out.tmp." + dead + ".7"}) put(folder / name, "left");
  const std::vector<std::string> others{"out.tmp." + own,   "out.tmp." + parent,     "out.tmp." + dead + "x",
                                        "out.tmp.",         "out.tmp.-" + dead,      "other.tmp." + dead,
                                        "out.tmp.x" + dead, "out.tmp." + dead + ".", "out.tmp"};
  for (const std::string& name : others) put(folder / name, "not ours");
  fs::create_directory(folder / ("out.tmp." + dead + ".1"));
  ASSERT_TRUE(write_file_atomically(folder / "out", as_span("x")));
  EXPECT_EQ(folder.count(), others.size() + 2) << "out, and the folder";
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(folder / name)) << name;
}

TEST(Temporaries, OfAProcessThatHoldsItsLockAreNotLeftovers) {
  TempFolder folder;
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(gone, nullptr, 0), gone);
  const fs::path name = folder / ("out.tmp." + std::to_string(gone));
  const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  lock_temporary(fd);  // as another container would, whose process numbers are its own
  EXPECT_EQ(leftovers_of(folder / "out").size(), 0u);
  ::close(fd);
  EXPECT_EQ(leftovers_of(folder / "out"), std::vector<fs::path>{name});
}

TEST(Temporaries, AreRemovedAtOnceButForForgottenOnes) {
  TempFolder folder;
  for (const char* name : {"a", "b", "kept", "moved"}) put(folder / name, name);
  fs::create_directories(folder / "full" / "of");
  fs::create_directory(folder / "of");
  put(folder / "of" / "file", "x");
  const TemporaryName a(folder / "a"), b(folder / "b"), file(folder / "of" / "file"), of(folder / "of"),
      full(folder / "full"), absent(folder / "absent"), too_long(folder / std::string(5000, 'x'));
  TemporaryName kept(folder / "kept"), moved(folder / "moved");
  kept.forget();
  const TemporaryName to = std::move(moved);
  remove_temporaries();
  EXPECT_EQ(folder.count(), 2u);
  EXPECT_TRUE(fs::exists(folder / "kept") && fs::exists(folder / "full" / "of"));
}

TEST(InputFile, NamesALinkToNothing) {
  TempFolder folder;
  fs::create_symlink("gone", folder / "one");
  fs::create_symlink(folder / "one", folder / "two");
  fs::create_symlink("round", folder / "round");
  EXPECT_TRUE(is_there(folder / "one"));
  EXPECT_FALSE(is_there(folder / "gone"));
  for (const char* name : {"one", "two"})
    EXPECT_THAT(message_of(InputFile::open(folder / name)),
                AllOf(HasSubstr((folder / name).string()), HasSubstr("a link to gone, which does not exist")));
  EXPECT_THAT(message_of(InputFile::open(folder / "gone")), HasSubstr("No such file"));
  EXPECT_THAT(message_of(InputFile::open(folder / "round")), HasSubstr("symbolic links"));
}

TEST(InputFile, SaysWhetherItChanged) {
  TempFolder folder;
  put(folder / "a", "0123456789");
  const auto file = InputFile::open(folder / "a");
  ASSERT_TRUE(file);
  EXPECT_EQ(*file->stamp(), file->opened_as());
  EXPECT_EQ(file->opened_as().bytes, 10u);
  const auto time = fs::last_write_time(folder / "a");
  usleep(20'000);  // more than one tick of the clock
  std::fstream(folder / "a", std::ios::in | std::ios::out) << "x";
  fs::last_write_time(folder / "a", time);
  EXPECT_EQ(file->stamp()->modified_ns, file->opened_as().modified_ns);
  EXPECT_FALSE(*file->stamp() == file->opened_as());
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
