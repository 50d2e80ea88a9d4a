// All sources must return the same bytes; a file truncated while it is open must be an error.
#include "format/weight_source.h"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include "format/safetensors.h"
#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

using namespace format_test;
using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kBig = (size_t{8} << 20) / sizeof(float) + 77;  // more than one read

class WeightSources : public testing::TestWithParam<WeightsMode> {
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
  TensorPart part(const char* name) const { return TensorPart::all_of(find(name)); }

  TempFolder folder_;
  std::unique_ptr<ThreadPool> pool_ = *ThreadPool::create(2);
  std::shared_ptr<TensorDir> dir_;
};

void expect_bytes(const TensorDir& dir, const TensorPart& part, const std::byte* got) {
  if (part.tensor == nullptr) {
    EXPECT_EQ(got, nullptr);
    return;
  }
  const auto want = dir.data(*part.tensor).subspan(part.begin, part.bytes);
  EXPECT_EQ(std::memcmp(got, want.data(), want.size()), 0) << part.tensor->name;
}

TEST_P(WeightSources, GiveTheFilesBytesInOrder) {
  const WeightUse use{.groups = {{part("last"), part("a")},
                                 {part("empty"), {}, part("half"), part("big"), part("a")},
                                 {},
                                 {{find("big"), 4096 * 3 + 4, 1 << 20}}},
                      .tables = {find("a"), find("half")}};
  const auto source = open_weights(dir_, use, GetParam());
  ASSERT_TRUE(source) << message_of(source);
  EXPECT_EQ((*source)->mode(), GetParam());
  EXPECT_EQ((*source)->groups(), 4);
  EXPECT_EQ((*source)->total_bytes(), 60 + kBig * 4 + 6 + 8);
  // In order twice, as passes do; then groups that the previous `next` did not name.
  const std::vector<std::pair<int, int>> order = {{0, 1}, {1, 2}, {2, 3}, {3, 0},  {0, 1}, {1, 2},  {2, 3},
                                                  {3, 0}, {2, 0}, {3, 1}, {3, -1}, {0, 0}, {1, 99}, {0, -1}};
  for (const auto& [group, next] : order) {
    const auto pointers = (*source)->acquire(group, next, *pool_);
    ASSERT_TRUE(pointers) << message_of(pointers);
    const auto& parts = use.groups[static_cast<size_t>(group)];
    ASSERT_EQ(pointers->size(), parts.size());
    for (size_t i = 0; i < parts.size(); ++i) expect_bytes(*dir_, parts[i], (*pointers)[i]);
    (*source)->release(group);
  }
  EXPECT_THAT(message_of((*source)->acquire(4, -1, *pool_)), HasSubstr("group 4 is out of range"));
  EXPECT_FALSE((*source)->acquire(-1, -1, *pool_));
}

TEST_P(WeightSources, CopyRowsOfTables) {
  const auto source = open_weights(dir_, {{}, {find("a"), find("half")}}, GetParam());
  ASSERT_TRUE(source) << message_of(source);
  float values[2];
  ASSERT_TRUE((*source)->copy(*find("a"), 3 * sizeof(float), std::as_writable_bytes(std::span(values))));
  EXPECT_EQ(values[0], 1 + 3 * 0.25f);
  EXPECT_EQ(values[1], 1 + 4 * 0.25f);
}

TEST_P(WeightSources, OutliveTheCallersDirectory) {
  auto source = open_weights(dir_, {{{part("a")}}, {}}, GetParam());
  ASSERT_TRUE(source);
  dir_.reset();
  float value;
  std::memcpy(&value, (*(*source)->acquire(0, -1, *pool_))[0] + 14 * sizeof value, sizeof value);
  EXPECT_EQ(value, 1 + 14 * 0.25f);
}

TEST_P(WeightSources, ATensorPastItsFileIsRefused) {
  TensorInfo lie = *find("last");
  const auto opened = [&] { return open_weights(dir_, {{{TensorPart::all_of(&lie)}}, {}}, GetParam()); };
  lie.bytes = 1 << 30;
  EXPECT_THAT(message_of(opened()), AllOf(HasSubstr("\"last\""), HasSubstr("past the end")));
  lie.offset = UINT64_MAX;
  EXPECT_FALSE(opened());
  lie.file = 1;
  EXPECT_THAT(message_of(opened()), HasSubstr("no open file"));
}

INSTANTIATE_TEST_SUITE_P(Modes, WeightSources,
                         testing::Values(WeightsMode::resident, WeightsMode::mapped, WeightsMode::streamed),
                         [](const auto& mode) { return std::string(weights_mode_name(mode.param)); });

using ResidentWeights = WeightSources;
INSTANTIATE_TEST_SUITE_P(Resident, ResidentWeights, testing::Values(WeightsMode::resident));

TEST_P(ResidentWeights, AreAlignedAndCounted) {
  const auto source = open_weights(dir_, {{{part("half"), part("a"), part("half")}}, {}}, GetParam());
  ASSERT_TRUE(source);
  const auto pointers = (*source)->acquire(0, -1, *pool_);
  ASSERT_TRUE(pointers);
  for (const std::byte* p : *pointers) EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*pointers)[0]) % (2 << 20), 0u);
  EXPECT_EQ((*source)->resident_bytes(), 128u);
  EXPECT_EQ((*source)->total_bytes(), 66u);
}

TEST_P(ResidentWeights, AShortReadNamesFileTensorAndOffset) {
  fs::resize_file(path(), find("last")->offset + 3);
  const auto source = open_weights(dir_, {{{part("a")}, {part("last")}}, {}}, GetParam());
  EXPECT_THAT(message_of(source),
              AllOf(HasSubstr(path().string()), HasSubstr("tensor \"last\""), HasSubstr("3 of 8 bytes"),
                    HasSubstr("offset " + std::to_string(find("last")->offset))));
}

using CutFile = WeightSources;
INSTANTIATE_TEST_SUITE_P(Cut, CutFile, testing::Values(WeightsMode::mapped, WeightsMode::streamed),
                         [](const auto& mode) { return std::string(weights_mode_name(mode.param)); });

TEST_P(CutFile, IsAnErrorThatNamesItInTheNextPass) {
  const auto source = open_weights(dir_, {{{part("last")}, {part("a")}}, {}}, GetParam());
  ASSERT_TRUE(source);
  for (int group : {0, 1}) {
    ASSERT_TRUE((*source)->acquire(group, -1, *pool_));
    (*source)->release(group);
  }
  fs::resize_file(path(), find("last")->offset + 3);
  EXPECT_THAT(message_of((*source)->acquire(0, -1, *pool_)),
              AllOf(HasSubstr(path().string()), HasSubstr("truncated while in use")));
}

}  // namespace
}  // namespace kvasir
