// The catalogue against the known layouts, types and families of this build.
#include <kvasir/catalog.h>

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvasir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class Entries, class Predicate>
std::vector<std::string> names_of(const Entries& entries, Predicate&& wanted) {
  std::vector<std::string> names;
  for (const auto& entry : entries)
    if (wanted(entry)) names.push_back(entry.name);
  return names;
}

template <class T>
void expect_unknown(const Result<T>& refused, const std::string& name, const std::string& known) {
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("\"" + name + "\""));
  EXPECT_THAT(refused.error().hint, HasSubstr(known));
}

TEST(Catalog, WeightModesAndTheirNames) {
  const std::vector<std::string_view> names{"auto", "resident", "mapped", "streamed"};
  ASSERT_EQ(weights_modes().size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(weights_mode_name(weights_modes()[i]), names[i]);
    EXPECT_EQ(*parse_weights_mode(names[i]), weights_modes()[i]);
  }
  EXPECT_EQ(parse_weights_mode("fast").error().kind, Error::bad_argument);
  expect_unknown(parse_weights_mode("fast"), "fast", "auto, resident, mapped, streamed");
}

TEST(Catalog, LayoutsWithTheirTraits) {
  using catalog::LayoutEntry;
  const auto all = catalog::layouts();
  EXPECT_THAT(names_of(all, [](const LayoutEntry& e) { return e.recomputes; }), ElementsAre("none"));
  EXPECT_THAT(names_of(all, [](const LayoutEntry& e) { return e.pooled; }), ElementsAre("paged"));
  EXPECT_THAT(names_of(all, [](const LayoutEntry& e) { return e.drops_old; }), ElementsAre("windowed"));
  for (const LayoutEntry& entry : all) {
    EXPECT_FALSE(entry.summary.empty() || entry.trade.empty()) << entry.name;
    EXPECT_EQ(catalog::find_layout(entry.name)->summary, entry.summary);
  }
  expect_unknown(catalog::find_layout("heap"), "heap", "grow");
}

TEST(Catalog, KvTypesFromWideToNarrow) {
  using catalog::KvTypeEntry;
  const auto all = catalog::kv_types();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                             [](const KvTypeEntry& a, const KvTypeEntry& b) { return a.bits > b.bits; }));
  EXPECT_EQ(all.front().name, "f32");
  EXPECT_EQ(all.front().bits, 32);
  EXPECT_EQ(catalog::find_kv_type("q8_0")->bits, 8.5);
  EXPECT_EQ(catalog::find_kv_type("F16")->name, "f16");
  for (const KvTypeEntry& entry : all) {
    EXPECT_EQ(entry.rotated, entry.name.ends_with('h')) << entry.name;
    EXPECT_EQ(entry.summary.ends_with(", heads rotated"), entry.rotated) << entry.name;
    EXPECT_FALSE(entry.summary.empty()) << entry.name;
  }
  expect_unknown(catalog::find_kv_type("q4_k"), "q4_k", "q4_0");
}

TEST(Catalog, WeightTypesInEverySpelling) {
  using catalog::WeightTypeEntry;
  for (const char* spelling : {"f16", "F16", "float16"}) EXPECT_EQ(catalog::find_weight_type(spelling)->name, "f16");
  EXPECT_EQ(catalog::find_weight_type("q6_k")->bits, 6.5625);
  EXPECT_THAT(names_of(catalog::weight_types(), [](const WeightTypeEntry& e) { return !e.integer; }),
              ElementsAre("bf16", "f16", "f32"));
  for (const WeightTypeEntry& entry : catalog::weight_types()) EXPECT_FALSE(entry.summary.empty()) << entry.name;
  expect_unknown(catalog::find_weight_type("q9"), "q9", "f16");
}

TEST(Catalog, FamiliesWithTheirModelTypes) {
  const auto all = catalog::families();
  const auto llama = std::find_if(all.begin(), all.end(), [](const auto& entry) { return entry.name == "llama"; });
  ASSERT_NE(llama, all.end());
  EXPECT_THAT(llama->model_types, ElementsAre("llama", "mistral", "mixtral", "internlm"));
  for (const auto& entry : all) EXPECT_FALSE(entry.summary.empty()) << entry.name;
}

}  // namespace
}  // namespace kvasir
