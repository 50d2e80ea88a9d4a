// Both sources must hand out the same bytes; a file cut behind our back must be an error in the resident one.
#include "format/weight_source.h"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include "format/format_test_util.h"
#include "format/safetensors.h"

namespace kvasir {
namespace {

using namespace format_test;
using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kBig = (size_t{8} << 20) / sizeof(float) + 77;  // more than one read

class WeightSources : public testing::TestWithParam<WeightMode> {
 protected:
  void SetUp() override {
    std::string header = "{", data;
    const auto add = [&](const char* name, const char* dtype, size_t n, const std::string& bytes) {
      header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", data.empty() ? "" : ",",
                            name, dtype, n, data.size(), data.size() + bytes.size());
      data += bytes;
    };
    add("a", "F32", 15, raw(distinct_floats(15, 1)));
    add("big", "F32", kBig, raw(distinct_floats(kBig, 1000)));
    add("empty", "F32", 0, "");
    add("half", "F16", 3, "abcdef");
    add("last", "F32", 2, raw(distinct_floats(2, -50)));
    put(path(), safetensors_file(header + "}", data));
    auto dir = open_safetensors(path());
    ASSERT_TRUE(dir) << message_of(dir);
    dir_ = std::make_shared<TensorDir>(std::move(*dir));
  }
  fs::path path() const { return folder_ / "m.safetensors"; }
  const TensorInfo* find(const char* name) const { return dir_->find(name); }

  TempFolder folder_;
  std::shared_ptr<TensorDir> dir_;
};

TEST_P(WeightSources, GiveTheFilesBytesInOrder) {
  const std::vector<std::vector<const TensorInfo*>> groups = {
      {find("last"), find("a")}, {find("empty"), nullptr, find("half"), find("big"), find("a")}, {}};
  const auto source = open_weights(dir_, groups, GetParam());
  ASSERT_TRUE(source) << message_of(source);
  EXPECT_EQ((*source)->mode(), GetParam());
  EXPECT_EQ((*source)->groups(), 3);
  EXPECT_EQ((*source)->total_bytes(), 60 + kBig * 4 + 6 + 8);
  for (int g = 0; g < 3; ++g) {
    const auto pointers = (*source)->acquire(g);
    ASSERT_TRUE(pointers);
    const auto& group = groups[static_cast<size_t>(g)];
    ASSERT_EQ(pointers->size(), group.size());
    for (size_t i = 0; i < group.size(); ++i) {
      if (group[i] == nullptr) {
        EXPECT_EQ((*pointers)[i], nullptr);
        continue;
      }
      const auto want = dir_->data(*group[i]);
      EXPECT_EQ(std::memcmp((*pointers)[i], want.data(), want.size()), 0) << group[i]->name;
    }
    (*source)->release(g);
  }
  EXPECT_EQ((*(*source)->acquire(0))[1], (*(*source)->acquire(1))[4]);  // "a" is stored once
  EXPECT_THAT(message_of((*source)->acquire(3)), HasSubstr("group 3 is out of range"));
  EXPECT_FALSE((*source)->acquire(-1));
}

TEST_P(WeightSources, OutliveTheCallersDirectory) {
  auto source = open_weights(dir_, {{find("a")}}, GetParam());
  ASSERT_TRUE(source);
  dir_.reset();
  float value;
  std::memcpy(&value, (*(*source)->acquire(0))[0] + 14 * sizeof value, sizeof value);
  EXPECT_EQ(value, 1 + 14 * 0.25f);
}

TEST_P(WeightSources, ATensorPastItsFileIsRefused) {
  TensorInfo lie = *find("last");
  lie.bytes = 1 << 30;
  EXPECT_THAT(message_of(open_weights(dir_, {{&lie}}, GetParam())),
              AllOf(HasSubstr("\"last\""), HasSubstr("past the end")));
  lie.offset = UINT64_MAX;
  EXPECT_FALSE(open_weights(dir_, {{&lie}}, GetParam()));
  lie.file = 1;
  EXPECT_THAT(message_of(open_weights(dir_, {{&lie}}, GetParam())), HasSubstr("no open file"));
}

INSTANTIATE_TEST_SUITE_P(Modes, WeightSources, testing::Values(WeightMode::resident, WeightMode::mapped),
                         [](const auto& mode) { return mode.param == WeightMode::resident ? "resident" : "mapped"; });

using ResidentWeights = WeightSources;
INSTANTIATE_TEST_SUITE_P(Resident, ResidentWeights, testing::Values(WeightMode::resident));

TEST_P(ResidentWeights, AreAlignedAndCounted) {
  const auto source = open_weights(dir_, {{find("half"), find("a"), find("half")}}, GetParam());
  ASSERT_TRUE(source);
  const auto pointers = (*source)->acquire(0);
  ASSERT_TRUE(pointers);
  for (const std::byte* p : *pointers) EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*pointers)[0]) % (2 << 20), 0u);
  EXPECT_EQ((*source)->resident_bytes(), 128u);
  EXPECT_EQ((*source)->total_bytes(), 66u);
}

TEST_P(ResidentWeights, AShortReadNamesFileTensorAndOffset) {
  fs::resize_file(path(), find("last")->offset + 3);
  const auto source = open_weights(dir_, {{find("a")}, {find("last")}}, GetParam());
  EXPECT_THAT(message_of(source),
              AllOf(HasSubstr(path().string()), HasSubstr("tensor \"last\""), HasSubstr("3 of 8 bytes"),
                    HasSubstr("offset " + std::to_string(find("last")->offset))));
}

}  // namespace
}  // namespace kvasir
