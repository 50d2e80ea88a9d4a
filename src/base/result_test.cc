// Error texts and kinds.
#include <kvasir/result.h>

#include <gtest/gtest.h>

namespace kvasir {
namespace {

TEST(Error, EveryKindHasAName) {
  EXPECT_EQ(kind_name(Error::bad_argument), "bad_argument");
  EXPECT_EQ(kind_name(Error::too_long), "too_long");
  EXPECT_EQ(kind_name(Error::no_room), "no_room");
  EXPECT_EQ(kind_name(Error::not_found), "not_found");
  EXPECT_EQ(kind_name(Error::unsupported), "unsupported");
  EXPECT_EQ(kind_name(Error::damaged), "damaged");
  EXPECT_EQ(kind_name(Error::io), "io");
  EXPECT_EQ(kind_name(Error::not_finite), "not_finite");
  EXPECT_EQ(kind_name(Error::internal), "internal");
}

TEST(Error, MessageLeavesOutWhatIsEmpty) {
  const Error error{Error::io, "cannot read", "a.gguf", "another disk"};
  EXPECT_EQ(error.message(), "a.gguf: cannot read (try: another disk)");
  EXPECT_EQ((Error{Error::io, "cannot read", "", "another disk"}.message()), "cannot read (try: another disk)");
  EXPECT_EQ((Error{Error::io, "cannot read", "a.gguf", ""}.message()), "a.gguf: cannot read");
  EXPECT_EQ((Error{Error::io, "cannot read", "", ""}.message()), "cannot read");
}

TEST(Error, FailKeepsItsKind) {
  const Result<int> failed = fail(Error::not_found, "no such model", "tales", "another name");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, Error::not_found);
  EXPECT_EQ(failed.error().what, "no such model");
  EXPECT_EQ(failed.error().where, "tales");
  EXPECT_EQ(failed.error().hint, "another name");
}

}  // namespace
}  // namespace kvasir
