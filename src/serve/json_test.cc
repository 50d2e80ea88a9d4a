// Tests the limits on bodies, and keys.
#include "serve/json.h"

#include <chrono>

#include <gmock/gmock.h>

#include "base/files.h"
#include "serve/keys.h"
#include "tests/support/temp_files.h"

namespace kvasir::serve {
namespace {

using namespace format_test;

using testing::HasSubstr;

std::string what_is_wrong(const std::string& text) {
  const auto json = parse_json(text);
  return json ? "nothing" : json.error().what;
}

TEST(ServeJson, KeepsTheOrderOfKeys) {
  EXPECT_EQ(to_text(*parse_json(R"({"b": 1, "a": [2, null], "c": "\u00e9"})")), R"({"b":1,"a":[2,null],"c":"é"})");
}

TEST(ServeJson, TellsWhereATextStopsToBeJson) {
  EXPECT_THAT(what_is_wrong(R"({"a": 1,})"), HasSubstr("at byte 9"));
  EXPECT_THAT(what_is_wrong(""), HasSubstr("at byte 1"));
  EXPECT_THAT(what_is_wrong("{\"a\": \"\xff\"}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(what_is_wrong(R"({"a": "\ud800"})"), HasSubstr("not valid JSON"));
  EXPECT_THAT(what_is_wrong(R"({"a": 1e999})"), HasSubstr("not valid JSON"));
  EXPECT_EQ(parse_json("nan").error().kind, Error::damaged);
}

TEST(ServeJson, BrokenCharactersAreWrittenAsSuch) { EXPECT_EQ(to_text(Json("a\xffz")), "\"a\xef\xbf\xbdz\""); }

TEST(ServeJson, DepthIsLimited) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(what_is_wrong(nested(64)), "nothing");
  EXPECT_THAT(what_is_wrong(nested(65)), HasSubstr("64 levels at byte 65"));
  EXPECT_EQ(what_is_wrong("\"" + std::string(100, '[') + "\""), "nothing") << "in a string they are text";
  EXPECT_EQ(what_is_wrong(R"(["\"", "[[[[\\"])"), "nothing");
}

TEST(ServeJson, WhatWouldTakeMemoryOrTimeIsRefusedUnread) {
  std::string arrays = "[[]", numbers = "[1", members = "{\"\":1", digits = "[1";
  while (arrays.size() < (4u << 20)) arrays += ",[]";
  while (numbers.size() < (4u << 20)) numbers += ",1";
  while (members.size() < (4u << 20)) members += fmt::format(",\"{}\":1", members.size());
  digits.resize(4u << 20, '1');
  std::string object = "{\"\":1";
  for (int i = 0; i < 4000; ++i) object += fmt::format(",\"{}\":1", i);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(what_is_wrong("[" + object + "}," + object + "}," + object + "}]"), HasSubstr("look through"));
  EXPECT_THAT(what_is_wrong(arrays + "]"), HasSubstr("arrays and objects"));
  EXPECT_THAT(what_is_wrong(numbers + "]"), HasSubstr("values"));
  EXPECT_THAT(what_is_wrong(members + "}"), HasSubstr("members"));
  EXPECT_THAT(what_is_wrong(digits + "]"), HasSubstr("digits"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST(ServeJson, MembersAreCountedByObject) {
  std::string objects = "[{}";
  for (int i = 0; i < 5000; ++i) objects += R"(, {"a": 1, "b": {"c": 2}})";
  EXPECT_EQ(what_is_wrong(objects + "]"), "nothing");
  EXPECT_EQ(what_is_wrong("  {\n\"a\" :\t" + std::string(200, '\n') + "1}"), "nothing");
}

class ServeKeys : public testing::Test {
 protected:
  Result<Keys> read(const std::string& text) {
    put(folder_ / "keys", text);
    return Keys::read((folder_ / "keys").string());
  }
  std::string refusal(const std::string& text) {
    const auto keys = read(text);
    return keys ? "nothing" : keys.error().message();
  }
  TempFolder folder_;
};

TEST_F(ServeKeys, NameWeightAndMost) {
  const auto keys = read("# who\nann k-1\n\nbob k-22 2.5  # more\r\ncid k-333 0.5 8\n");
  ASSERT_TRUE(keys) << keys.error().message();
  EXPECT_TRUE(keys->required());
  EXPECT_EQ(keys->find("k-1")->name, "ann");
  EXPECT_EQ(keys->find("k-1")->weight, 1);
  EXPECT_EQ(keys->find("k-22")->weight, 2.5);
  EXPECT_EQ(keys->find("k-22")->most, 0);
  EXPECT_EQ(keys->find("k-333")->most, 8);
  for (const char* other : {"", "k", "k-2", "k-222", "k-11", "K-1", "ann"})
    EXPECT_EQ(keys->find(other), nullptr) << other;
}

TEST_F(ServeKeys, WithoutAFileEverybodyIsOne) {
  const Keys keys;
  EXPECT_FALSE(keys.required());
  EXPECT_EQ(keys.find("x"), keys.find(""));
  EXPECT_EQ(keys.find("x")->name, "");
}

TEST_F(ServeKeys, WrongLinesAreNamed) {
  EXPECT_THAT(refusal("ann k\nbob\n"), HasSubstr("line 2"));
  EXPECT_THAT(refusal("ann k 0\n"), HasSubstr("weight"));
  EXPECT_THAT(refusal("ann k 1 -1\n"), HasSubstr("at a time"));
  EXPECT_THAT(refusal("ann k 1 1 x\n"), HasSubstr("four"));
  EXPECT_THAT(refusal("ann k\nann l\n"), HasSubstr("line 2"));
  EXPECT_THAT(refusal("ann k\nbob k\n"), HasSubstr("line 2"));
  EXPECT_THAT(refusal("# nobody\n"), HasSubstr("no key"));
  EXPECT_FALSE(Keys::read("/nonexistent/keys"));
}

}  // namespace
}  // namespace kvasir::serve
