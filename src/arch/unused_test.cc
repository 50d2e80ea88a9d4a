// The tables of keys that nothing reads: how rules are found, and that real files contain no other key.
#include "arch/unused.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tiny_models.h"

namespace kvasir {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;
using tiny::message_of;

TEST(Unused, ARuleWithAStarStandsForWhatBeginsLikeIt) {
  constexpr KeyRule kRules[] = {{"a.exact", KeyUse::yes, "1"}, {"a.*", KeyUse::off, "2"}, {"b", KeyUse::one, "3"}};
  EXPECT_EQ(find_rule(kRules, "a.exact")->why, "1");
  EXPECT_EQ(find_rule(kRules, "a.other")->why, "2");
  EXPECT_EQ(find_rule(kRules, "a."), &kRules[1]);
  EXPECT_EQ(find_rule(kRules, "a"), nullptr);
  EXPECT_EQ(find_rule(kRules, "bb"), nullptr);
}

ConfigView view_of(const std::string& json) {
  auto view = ConfigView::parse(json, "folder/config.json");
  EXPECT_TRUE(view) << message_of(view);
  return *view;
}

TEST(Unused, AKeyIsHarmlessAtItsNeutralValues) {
  const auto refused = [](const std::string& json) { return !unused_config_keys(view_of("{" + json + "}")); };
  for (const char* off : {"false", "0", "0.0", "null", "[]", "{}", "\"\""})
    EXPECT_FALSE(refused(std::string(R"("attn_logit_softcapping":)") + off)) << off;
  for (const char* on : {"true", "1", "50.0", "[0]", "{\"a\":0}", "\"x\""})
    EXPECT_TRUE(refused(std::string(R"("attn_logit_softcapping":)") + on)) << on;
  EXPECT_FALSE(refused(R"("logits_scaling":1.0)"));
  EXPECT_FALSE(refused(R"("logits_scaling":1)"));
  EXPECT_TRUE(refused(R"("logits_scaling":2)"));
  EXPECT_FALSE(refused(R"("is_causal":true)"));
  EXPECT_TRUE(refused(R"("is_causal":false)"));
  EXPECT_TRUE(refused(R"("query_pre_attn_scalar":0)")) << "no value is neutral";
}

TEST(Unused, TheLanguageModelsKeysAreFoundWhereverTheyStand) {
  const auto of = [](const std::string& json) {
    const ConfigView file = view_of(json);
    (void)text_config(file);
    if (const auto scaling = file.object("rope_parameters")) (void)scaling->object("full_attention");
    return message_of(unused_config_keys(file));
  };
  EXPECT_THAT(of(R"({"text_config":{"num_local_experts":8}})"), HasSubstr("\"text_config.num_local_experts\" is 8"));
  EXPECT_EQ(of(R"({"rope_parameters":{"full_attention":{"mrope_section":[1]}}})"), "no error");
  EXPECT_THAT(of(R"({"text_config":{"quantization_config":{"quant_method":"fp8"}}})"), HasSubstr("\"fp8\""));
}

TEST(Unused, AQuantisationIsReadWhereItIsKnown) {
  const std::string json =
      R"({"quantization_config":{"quant_method":"mxfp4","modules_to_not_convert":["lm_head"],"new_key":1}})";
  EXPECT_THAT(message_of(unused_config_keys(view_of(json))), HasSubstr("\"mxfp4\""));
  EXPECT_THAT(message_of(unused_config_keys(view_of(json), "fp8")), HasSubstr("\"mxfp4\""));
  const auto listed = unused_config_keys(view_of(json), "mxfp4");
  ASSERT_TRUE(listed) << message_of(listed);
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ((*listed)[0].name, "config.json: quantization_config.modules_to_not_convert");
  EXPECT_FALSE((*listed)[0].noted);
  EXPECT_EQ((*listed)[1].name, "config.json: quantization_config.new_key");
  EXPECT_TRUE((*listed)[1].noted) << "a key that nobody knows";
}

// Keys of other programs, which transformers does not know either, are noted.
TEST(Unused, RealConfigsHoldNoKeyThatIsNotKnown) {
  const auto folder = tiny::outside_data() / "hf-configs";
  if (tiny::outside_data().empty()) GTEST_SKIP() << "outside data folder is absent";
  std::set<std::string> unknown;
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().string().ends_with(".config.json")) continue;
    const auto file = ConfigView::read(entry.path());
    ASSERT_TRUE(file) << message_of(file);
    const ConfigView view = text_config(*file);
    const auto family = find_family(view);
    if (!family || !(*family)->parse_config(view)) continue;
    const auto ignored = unused_config_keys(*file);
    ASSERT_TRUE(ignored) << message_of(ignored);
    for (const Ignored& one : *ignored)
      if (one.noted) unknown.insert(one.name.substr(one.name.find(": ") + 2));
    ++read;
  }
  EXPECT_EQ(read, 58);
  EXPECT_THAT(unknown, UnorderedElementsAre("attention_sink_size", "full_attn_mod", "interpolate_factor", "max_length",
                                            "sliding_window_size"));
}

}  // namespace
}  // namespace kvasir
