// Tests of hub names and cache lookups: which names are refused, which GGUF file a type selects, what a snapshot holds.
#include "base/hub_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hub_cache.h"
#include "tests/support/temp_files.h"

namespace kvasir::hub {
namespace {

namespace fs = std::filesystem;
using format_test::message_of;
using format_test::put;
using format_test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using Names = std::vector<std::string>;

TEST(HubNames, OwnersNamesAndWhatFollowsAreToldApart) {
  const auto wanted = parse_wanted("Some.Owner_1/name-2.5:Q4_K_M");
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->repo, (RepoName{"Some.Owner_1", "name-2.5"}));
  EXPECT_EQ(wanted->what, "Q4_K_M");
  EXPECT_EQ(parse_wanted("a/b:c/d:e.gguf")->what, "c/d:e.gguf");
  EXPECT_TRUE(parse_repo("a/b"));
  for (const char* odd : {"",     "a",      "/",     "a/",    "/b",   "a/b/c",    "../b",   "a/..",  ".a/b",   "a/b.",
                          "-a/b", "a--b/c", "a/b c", "a/b\n", "a/b:", "a/b:../c", "a/b:/c", "a/b:.", "a\\b/c", "~/b"})
    EXPECT_FALSE(parse_wanted(odd)) << odd;
  EXPECT_FALSE(parse_repo("a/b:c"));
  EXPECT_FALSE(parse_repo(std::string(97, 'a') + "/b"));
}

TEST(HubNames, FilesStayInTheirFolder) {
  for (const char* good : {"a", "a/b.c", ".gitattributes", "a b+%41", "\u00e4/\u4e2d.json", "a..b"})
    EXPECT_TRUE(is_safe_file(good)) << good;
  for (const char* odd :
       {"", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/..", "...", "a\\b", "a\nb", "\x1b[2J"})
    EXPECT_FALSE(is_safe_file(odd)) << odd;
  EXPECT_FALSE(is_safe_file(std::string_view("a\0b", 3)));
  EXPECT_FALSE(is_safe_file(std::string(241, 'a')));
}

TEST(HubNames, ATypeNamesOneGgufFile) {
  const Names files{"m-Q4_K_M.gguf", "m-Q4_K.gguf", "m-IQ4_K.gguf", "mmproj-m-Q8_0.gguf", "m_q8_0.gguf", "README.md"};
  EXPECT_THAT(choose_gguf(files, "Q4_K_M", "x").value(), ElementsAre("m-Q4_K_M.gguf"));
  EXPECT_THAT(choose_gguf(files, "q4_k", "x").value(), ElementsAre("m-Q4_K.gguf"));
  EXPECT_THAT(choose_gguf(files, "Q8_0", "x").value(), ElementsAre("m_q8_0.gguf"));
  EXPECT_THAT(choose_gguf(files, "mmproj-m-Q8_0.gguf", "x").value(), ElementsAre("mmproj-m-Q8_0.gguf"));
  EXPECT_THAT(choose_gguf(files, "README.md", "x").value(), ElementsAre("README.md"));
  const auto several = choose_gguf(files, "", "x");
  EXPECT_THAT(message_of(several), testing::AllOf(HasSubstr("4 GGUF files fit"), HasSubstr("m_q8_0.gguf")));
  EXPECT_EQ(choose_gguf(files, "Q5_0", "x").error().kind, Error::not_found);
  EXPECT_EQ(choose_gguf({}, "", "x").error().kind, Error::not_found);
}

TEST(HubNames, PartsOfASplitFileComeTogetherOrNotAtAll) {
  const Names all{"b/m-Q8_0-00002-of-00003.gguf", "b/m-Q8_0-00001-of-00003.gguf", "b/m-Q8_0-00003-of-00003.gguf"};
  const Names in_order{all[1], all[0], all[2]};
  EXPECT_EQ(choose_gguf(all, "", "x").value(), in_order);
  EXPECT_EQ(choose_gguf(all, all[0], "x").value(), in_order);
  EXPECT_THAT(message_of(choose_gguf(std::span(all).first(2), "Q8_0", "x")), HasSubstr("2 of the 3 parts"));
  EXPECT_FALSE(choose_gguf(Names{"m-00004-of-00003.gguf", all[0], all[1]}, "Q8_0", "x"));
}

TEST(HubCache, FoldersAndNamesAreTheSameThing) {
  EXPECT_EQ(folder_name({"a-1", "b.2"}), "models--a-1--b.2");
  EXPECT_EQ(repo_of_folder("models--a-1--b.2"), (RepoName{"a-1", "b.2"}));
  for (const char* other : {"models--gpt2", "datasets--a--b", "models--a--b--c", "models--", "models--..--b"})
    EXPECT_FALSE(repo_of_folder(other)) << other;
  EXPECT_EQ(model_name("/x/models--a--b/snapshots/c"), "a/b");
  EXPECT_EQ(model_name("/x/snapshots/c.gguf"), "c.gguf");
}

TEST(HubCache, WhatIsNotWholeIsNotThere) {
  const TempFolder cache;
  const std::string commit(40, 'c');
  const fs::path repo = cache / "models--a--b", snapshot = repo / "snapshots" / commit;
  const auto found = [&](const char* name) { return pulled_model(cache.path(), *parse_wanted(name)); };
  EXPECT_THAT(message_of(found("a/b")), HasSubstr("kvasir pull a/b"));
  fs::create_directories(snapshot);
  fs::create_directories(repo / "refs");
  put(snapshot / "config.json", "{}");
  put(snapshot / "model.safetensors", "x");
  EXPECT_THAT(message_of(found("a/b")), HasSubstr("its pull is not complete"));
  put(repo / "refs" / "main", "../" + commit);
  EXPECT_THAT(message_of(found("a/b")), HasSubstr("does not contain a commit"));
  put(repo / "refs" / "main", commit + "\n");
  ASSERT_TRUE(found("a/b")) << message_of(found("a/b"));
  EXPECT_EQ(*found("a/b"), snapshot);
  fs::create_symlink("nowhere", snapshot / "m-Q8_0.gguf");
  EXPECT_FALSE(found("a/b:Q8_0")) << "a link that leads nowhere";
  put(snapshot / "m-Q4_0.gguf", "GGUF");
  EXPECT_EQ(*found("a/b:q4_0"), snapshot / "m-Q4_0.gguf");
}

}  // namespace
}  // namespace kvasir::hub
