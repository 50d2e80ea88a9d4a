// Every getter with a good value, a missing one, a wrong type and a value out of range; then hostile JSON.
#include "format/config_view.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

using namespace format_test;
using testing::ElementsAre;
using testing::HasSubstr;

ConfigView config(std::string_view text) {
  auto parsed = ConfigView::parse(text, "config.json");
  EXPECT_TRUE(parsed) << message_of(parsed);
  return parsed ? *parsed : ConfigView();
}

std::string parse_error(std::string_view text) { return message_of(ConfigView::parse(text, "config.json")); }

TEST(ConfigView, Integers) {
  const ConfigView c =
      config(R"({"layers":12,"low":-3,"big":9223372036854775808,"huge":1e30,"f":2.0,"s":"12","n":null})");
  EXPECT_EQ(*c.get_int("layers", 1, 4096), 12);
  EXPECT_EQ(*c.get_int("layers", 12, 12), 12);
  EXPECT_EQ(message_of(c.get_int("low", 1, 4096)), "config.json: \"low\" is -3, allowed 1..4096");
  EXPECT_EQ(message_of(c.get_int("layers", 1, 11)), "config.json: \"layers\" is 12, allowed 1..11");
  EXPECT_THAT(message_of(c.get_int("big", 1, INT64_MAX)), HasSubstr("is 9223372036854775808, allowed 1.."));
  EXPECT_THAT(message_of(c.get_int("huge", 1, 9)), HasSubstr("is 1e+30, expected an integer"));
  EXPECT_THAT(message_of(c.get_int("f", 1, 9)), HasSubstr("expected an integer"));
  EXPECT_THAT(message_of(c.get_int("s", 1, 99)), HasSubstr("\"s\" is \"12\", expected an integer"));
  EXPECT_EQ(message_of(c.get_int("n", 1, 9)), "config.json: \"n\" is missing");
  EXPECT_EQ(*c.get_int_or("n", 7, 1, 9), 7);
  EXPECT_EQ(*c.get_int_or("absent", 7, 1, 2), 7);
  EXPECT_FALSE(c.get_int_or("low", 7, 1, 9));
}

TEST(ConfigView, Numbers) {
  const ConfigView c = config(R"({"eps":1e-5,"theta":10000,"text":"1","low":-0.5})");
  EXPECT_EQ(*c.get_number("eps", 0, 1), 1e-5);
  EXPECT_EQ(*c.get_number("theta", 1, 1e9), 10000.0);
  EXPECT_EQ(message_of(c.get_number("low", 0, 1)), "config.json: \"low\" is -0.5, allowed 0..1");
  EXPECT_THAT(message_of(c.get_number("text", 0, 1)), HasSubstr("expected a number"));
  EXPECT_EQ(*c.get_number_or("absent", 0.25, 0, 1), 0.25);
  EXPECT_FALSE(c.get_number_or("theta", 0.25, 0, 1));
}

TEST(ConfigView, BooleansAndStrings) {
  const ConfigView c = config(R"({"tie":true,"no":false,"one":1,"type":"llama","n":null})");
  EXPECT_TRUE(*c.get_bool_or("tie", false));
  EXPECT_FALSE(*c.get_bool_or("no", true));
  EXPECT_TRUE(*c.get_bool_or("n", true));
  EXPECT_THAT(message_of(c.get_bool_or("one", false)), HasSubstr("is 1, expected true or false"));
  EXPECT_EQ(*c.get_string("type"), "llama");
  EXPECT_EQ(*c.get_string_or("n", "gpt2"), "gpt2");
  EXPECT_THAT(message_of(c.get_string("absent")), HasSubstr("is missing"));
  EXPECT_THAT(message_of(c.get_string_or("one", "x")), HasSubstr("expected a string"));
}

TEST(ConfigView, OneIntegerOrAList) {
  const ConfigView c = config(R"({"one":2,"many":[1,-7,3],"none":[],"bad":[1,"2"],"x":true,"n":null})");
  EXPECT_THAT(*c.get_ints_or_empty("one"), ElementsAre(2));
  EXPECT_THAT(*c.get_ints_or_empty("many"), ElementsAre(1, -7, 3));
  EXPECT_TRUE(c.get_ints_or_empty("none")->empty());
  EXPECT_TRUE(c.get_ints_or_empty("n")->empty());
  EXPECT_THAT(message_of(c.get_ints_or_empty("bad")), HasSubstr("holds \"2\", expected integers"));
  EXPECT_FALSE(c.get_ints_or_empty("x"));
}

TEST(ConfigView, NestedObjectsNameTheirPath) {
  const ConfigView c = config(R"({"rope_scaling":{"factor":-4,"deep":{"x":"y"}},"list":[{}],"n":null})");
  EXPECT_TRUE(c.has("rope_scaling"));
  EXPECT_TRUE(c.has("list"));
  EXPECT_FALSE(c.has("n"));
  const auto rope = c.object("rope_scaling");
  ASSERT_TRUE(rope.has_value());
  EXPECT_EQ(message_of(rope->get_int("factor", 1, 64)), "config.json: \"rope_scaling.factor\" is -4, allowed 1..64");
  EXPECT_EQ(message_of(rope->object("deep")->get_int("x", 0, 1)),
            "config.json: \"rope_scaling.deep.x\" is \"y\", expected an integer");
  EXPECT_FALSE(c.object("list").has_value());
  EXPECT_FALSE(c.object("n").has_value());
  EXPECT_THAT(c.keys(), ElementsAre("list", "rope_scaling"));
  EXPECT_EQ(c.where(), "config.json");
}

TEST(ConfigView, SetChangesOnlyThisCopy) {
  ConfigView a = config(R"({"x":1})");
  ConfigView b = a;
  b.set("x", 2);
  b.set("s", "text");
  b.set("v", std::string_view("view"));
  b.set("d", 0.5);
  b.set("t", true);
  b.set("big", int64_t{1} << 40);
  b.set("ids", std::vector<int64_t>{1, 2});
  EXPECT_EQ(*a.get_int("x", 0, 9), 1);
  EXPECT_FALSE(a.has("s"));
  EXPECT_EQ(b.json_text(), R"({"big":1099511627776,"d":0.5,"ids":[1,2],"s":"text","t":true,"v":"view","x":2})");
  ConfigView empty;
  empty.set("k", 3);
  EXPECT_EQ(*empty.get_int("k", 3, 3), 3);
  EXPECT_TRUE(ConfigView().keys().empty());
}

TEST(ConfigView, RefusesBadJson) {
  for (const char* text :
       {R"({"x":NaN})", R"({"x":Infinity})", R"({"x":-Infinity})", R"({"x":1e999})", R"({"x":1}})", R"({"x":1} x)",
        R"({"x":1,})", R"({x:1})", R"({"x":01})", "{\"x\":\"\xc3\"}", "", " ", R"({"x":1}//c)", "{\"x\":\"a\nb\"}"})
    EXPECT_THAT(parse_error(text), HasSubstr("config.json: not valid JSON at byte")) << text;
  EXPECT_THAT(parse_error(std::string("{}\0", 3)), HasSubstr("not valid JSON at byte 3"));
  for (const char* text : {"[]", "3", "\"x\"", "null"}) EXPECT_THAT(parse_error(text), HasSubstr("not a JSON object"));
  EXPECT_THAT(parse_error(R"({"x":1,"x":1})"), HasSubstr("key \"x\" is there twice"));
  EXPECT_THAT(parse_error(R"({"x":{"\u0061":1,"a":1}})"), HasSubstr("key \"a\" is there twice"));
}

TEST(ConfigView, DepthAndSizeAreBounded) {
  const auto nested = [](size_t depth) {
    return R"({"x":)" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  EXPECT_EQ(parse_error(nested(64)), "no error");
  EXPECT_THAT(parse_error(nested(65)), HasSubstr("deeper than 64 levels"));
  EXPECT_THAT(parse_error(R"({"x":)" + std::string(3'000'000, '[')), HasSubstr("deeper than 64 levels"));
  TempFolder folder;
  put(folder / "config.json", "{}" + std::string((16 << 20) - 1, ' '));
  EXPECT_THAT(message_of(ConfigView::read(folder / "config.json")), HasSubstr("at most 16777216 allowed"));
  put(folder / "config.json", "{}" + std::string((16 << 20) - 2, ' '));
  EXPECT_TRUE(ConfigView::read(folder / "config.json"));
  EXPECT_THAT(message_of(ConfigView::read(folder / "none")), HasSubstr("No such file"));
}

TEST(ConfigView, EveryTruncationIsAnError) {
  const std::string text = R"({"a":[1,2.5e3,"x\u00e9"],"b":{"c":null,"d":false}})";
  ASSERT_EQ(parse_error(text), "no error");
  for (size_t n = 0; n < text.size(); ++n) EXPECT_NE(parse_error(text.substr(0, n)), "no error") << n;
}

TEST(ConfigView, ReadsRealConfigurations) {
  const fs::path data = outside_data();
  if (data.empty()) GTEST_SKIP() << "outside data folder is absent";
  int seen = 0;
  for (const auto& entry : fs::directory_iterator(data / "hf-configs")) {
    if (entry.path().extension() != ".json") continue;
    const auto c = ConfigView::read(entry.path());
    ASSERT_TRUE(c) << message_of(c);
    EXPECT_FALSE(c->keys().empty());
    EXPECT_EQ(parse_error(c->json_text()), "no error");
    ++seen;
  }
  EXPECT_GE(seen, 60);
}

TEST(ConfigView, ListsWhatNobodyRead) {
  const ConfigView c = config(
      R"({"read":1,"has":2,"null":null,"wrong type":"x","left":true,"opened":{"in":1,"out":2.5,"deep":{"a":1}},
          "closed":{"in":1},"list":[1],"empty":[],"text":"t"})");
  EXPECT_EQ(c.unread().size(), 9U);
  EXPECT_TRUE(c.get_int("read", 0, 9));
  EXPECT_TRUE(c.has("has"));
  EXPECT_FALSE(c.get_int("wrong type", 0, 9));
  const ConfigView copy = c;
  const auto opened = copy.object("opened");
  EXPECT_TRUE(opened->get_int("in", 0, 9));
  EXPECT_THAT(c.unread(), ElementsAre("closed", "empty", "left", "list", "opened.deep", "opened.out", "text"));
  EXPECT_THAT(opened->unread(), ElementsAre("opened.deep", "opened.out"));
  EXPECT_EQ(c.value_text("left"), "true");
  EXPECT_EQ(c.value_text("opened.out"), "2.5");
  EXPECT_EQ(opened->value_text("opened.out"), "2.5");
  EXPECT_EQ(c.value_text("closed"), "an object");
  EXPECT_EQ(c.value_text("list"), "a list");
  EXPECT_EQ(c.value_text("empty"), "[]");
  EXPECT_EQ(c.value_text("text"), "\"t\"");
  EXPECT_EQ(c.value_text("absent.key"), "");
}

TEST(ConfigView, AKeyThatCompletesAnotherObjectIsReadThere) {
  const ConfigView file = config(R"({"text":{"a":1},"a":2,"b":3,"c":4})");
  ConfigView text = *file.object("text");
  text.complete_from(file, {"a", "b", "c"});
  EXPECT_EQ(*text.get_int("a", 0, 9), 1);
  EXPECT_EQ(*text.get_int("b", 0, 9), 3);
  EXPECT_THAT(file.unread(), ElementsAre("a", "c")) << "the outer a and c are used by nobody";
}

}  // namespace
}  // namespace kvasir
