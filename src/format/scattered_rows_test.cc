// Tensors that are assembled from pieces of their files: every byte of every range, and the same bytes from every
// source.
#include "format/scattered_rows.h"

#include <gmock/gmock.h>

#include "format/streamed_weights.h"
#include "format/weight_source.h"
#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

using namespace format_test;
using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kRows = 6, kBlocks = 3,
                 kPlain = 23;  // rows and blocks of the stored matrix; bytes of the plain tensor

std::byte code(size_t row, size_t block, size_t element) {
  return static_cast<std::byte>((row * 7 + block * 5 + element * 3 + element / 16) % 16);
}
std::byte scale(size_t row, size_t block) { return static_cast<std::byte>(100 + row * 10 + block); }

// Two matrices with interleaved rows: one file holds the plane of codes and a plain tensor, another the plane of
// scales.
class Scattered : public testing::Test {
 protected:
  void SetUp() override {
    std::string codes = pattern(11), scales = pattern(5);
    for (size_t r = 0; r < kRows; ++r)
      for (size_t b = 0; b < kBlocks; ++b) {
        for (size_t j = 0; j < 16; ++j) codes += static_cast<char>(code(r, b, 2 * j) | code(r, b, 2 * j + 1) << 4);
        scales += static_cast<char>(scale(r, b));
      }
    put(folder_ / "codes", codes + pattern(kPlain));
    put(folder_ / "scales", scales);
    dir_ = std::make_shared<TensorDir>();
    for (const char* name : {"codes", "scales"}) dir_->files.push_back(*MappedFile::open(folder_ / name));
    dir_->tensors = {matrix("even", 0), matrix("odd", 1), plain()};
  }
  static TensorInfo matrix(const char* name, size_t first) {
    TensorInfo info;
    info.name = name;
    info.offset = 11 + first * kBlocks * 16;
    info.bytes = kRows / 2 * kBlocks * 17;
    info.scattered = ScatteredRows{.bytes = kBlocks * 17,
                                   .step = 2 * kBlocks * 16,
                                   .scales_file = 1,
                                   .scales = 5 + first * kBlocks,
                                   .scales_step = 2 * kBlocks};
    return info;
  }
  static TensorInfo plain() {
    TensorInfo info;
    info.name = "plain";
    info.offset = 11 + kRows * kBlocks * 16;
    info.bytes = kPlain;
    return info;
  }
  // Rows first, first + 2, ... in the form that Kvasir computes with.
  static std::vector<std::byte> whole(size_t first) {
    std::vector<std::byte> out;
    for (size_t r = first; r < kRows; r += 2)
      for (size_t b = 0; b < kBlocks; ++b) {
        out.push_back(scale(r, b));
        for (size_t j = 0; j < 16; ++j) out.push_back(code(r, b, j) | code(r, b, j + 16) << 4);
      }
    return out;
  }
  WeightUse use() const {
    const auto part = [&](size_t i) { return TensorPart::all_of(&dir_->tensors[i]); };
    return {.groups = {{part(1), part(2), {}, part(0)}, {part(2)}, {{&dir_->tensors[0], 20, 60}, part(1)}},
            .tables = {&dir_->tensors[0]}};
  }
  void expect_group(int group, std::span<const std::byte* const> got) const {
    const WeightUse all = use();
    const auto& parts = all.groups[static_cast<size_t>(group)];
    ASSERT_EQ(got.size(), parts.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].tensor == nullptr) {
        EXPECT_EQ(got[i], nullptr);
        continue;
      }
      std::vector<std::byte> want(parts[i].bytes);
      ASSERT_TRUE(read_tensor(*dir_, *parts[i].tensor, parts[i].begin, want));
      EXPECT_EQ(std::memcmp(got[i], want.data(), want.size()), 0) << group << ' ' << parts[i].tensor->name;
    }
  }

  TempFolder folder_;
  std::unique_ptr<ThreadPool> pool_ = *ThreadPool::create(2);
  std::shared_ptr<TensorDir> dir_;
};

TEST_F(Scattered, EveryRangeIsThatPartOfTheWhole) {
  for (size_t first : {0, 1}) {
    const std::vector<std::byte> want = whole(first);
    ASSERT_EQ(want.size(), dir_->tensors[first].bytes);
    for (size_t begin = 0; begin <= want.size(); ++begin)
      for (size_t n = 0; n <= want.size() - begin; ++n) {
        std::vector<std::byte> got(n, std::byte{0xee});
        ASSERT_TRUE(read_tensor(*dir_, dir_->tensors[first], begin, got));
        ASSERT_TRUE(std::ranges::equal(got, std::span(want).subspan(begin, n))) << first << ' ' << begin << ' ' << n;
      }
  }
}

TEST_F(Scattered, RowsWithoutScalesAreOnlyPicked) {
  TensorInfo info;
  info.offset = 14;
  info.bytes = 3 * 4;
  info.scattered = ScatteredRows{.bytes = 3, .step = 7};
  const std::string file = slurp(folder_ / "codes");
  std::string want;
  for (size_t r = 0; r < 4; ++r) want += file.substr(14 + 7 * r, 3);
  for (size_t begin = 0; begin < want.size(); ++begin)
    for (size_t n = 1; n <= want.size() - begin; ++n) {
      std::string got(n, ' ');
      ASSERT_TRUE(read_tensor(*dir_, info, begin, std::as_writable_bytes(std::span(got))));
      EXPECT_EQ(got, want.substr(begin, n)) << begin;
    }
  EXPECT_EQ(pieces_of(info, 4, 7)[0].offset, 14u + 7);
  EXPECT_EQ(pieces_of(info, 4, 7)[0].bytes, 2 * 7 + 3u);
}

// The tensor is larger than the part that is assembled at once.
TEST_F(Scattered, ALargeTensorIsReadInPieces) {
  constexpr uint64_t kRow = 1000, kStep = 1003, kMany = 3000;
  put(folder_ / "large", pattern(kMany * kStep));
  dir_->files.push_back(*MappedFile::open(folder_ / "large"));
  TensorInfo info;
  info.file = 2;
  info.bytes = kMany * kRow;
  info.scattered = ScatteredRows{.bytes = kRow, .step = kStep};
  std::vector<std::byte> got(info.bytes - 1);
  ASSERT_TRUE(read_tensor(*dir_, info, 1, got));
  const auto file = dir_->files[2]->bytes();
  for (uint64_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], file[(i + 1) / kRow * kStep + (i + 1) % kRow]) << "byte " << i + 1;
}

TEST_F(Scattered, ResidentAndStreamedGiveTheSame) {
  for (const WeightsMode mode : {WeightsMode::resident, WeightsMode::streamed}) {
    const auto source = open_weights(dir_, use(), mode);
    ASSERT_TRUE(source) << message_of(source);
    EXPECT_TRUE((*source)->check());
    EXPECT_EQ((*source)->total_bytes(), kRows * kBlocks * 17 + kPlain);
    const std::vector<std::pair<int, int>> order = {{0, 1}, {1, 2}, {2, 0}, {0, 2}, {2, 1}, {0, -1}, {0, 0}, {2, 2}};
    for (const auto& [group, next] : order) {
      const auto got = (*source)->acquire(group, next, *pool_);
      ASSERT_TRUE(got) << message_of(got);
      expect_group(group, *got);
      (*source)->release(group);
    }
    std::vector<std::byte> row(40);
    ASSERT_TRUE((*source)->copy(dir_->tensors[0], 30, row));
    EXPECT_TRUE(std::memcmp(row.data(), whole(0).data() + 30, row.size()) == 0);
  }
}

// Each of the two slots can hold the pieces in whole blocks of the file, or all parts assembled.
TEST_F(Scattered, StreamedOnesTakeTwoSlots) {
  const auto source = open_weights(dir_, use(), WeightsMode::streamed);
  ASSERT_TRUE(source) << message_of(source);
  EXPECT_EQ((*source)->resident_bytes(), 2 * 2 * BackgroundReader::kAlign);
}

TEST_F(Scattered, MappedOnesAreRefusedByName) {
  const auto source = open_weights(dir_, use(), WeightsMode::mapped);
  ASSERT_TRUE(source) << "to look at";
  const auto named = AllOf(HasSubstr("\"odd\""), HasSubstr("mapped"), HasSubstr("resident or streamed"));
  EXPECT_THAT(message_of((*source)->check()), named);
  EXPECT_THAT(message_of((*source)->acquire(0, -1, *pool_)), named);
  std::vector<std::byte> row(40);
  ASSERT_TRUE((*source)->copy(dir_->tensors[0], 30, row));
  EXPECT_TRUE(std::memcmp(row.data(), whole(0).data() + 30, row.size()) == 0);
}

TEST_F(Scattered, PlanesPastTheirFilesAreRefused) {
  for (const bool scales : {false, true}) {
    TensorInfo lie = dir_->tensors[0];
    (scales ? lie.scattered->scales : lie.offset) += 200;
    EXPECT_THAT(message_of(open_weights(dir_, {{{TensorPart::all_of(&lie)}}, {}}, WeightsMode::resident)),
                AllOf(HasSubstr("\"even\""), HasSubstr("past the end"), HasSubstr(scales ? "scales" : "codes")));
  }
}

TEST_F(Scattered, ACutPlaneNamesTheTensor) {
  const auto source = open_weights(dir_, use(), WeightsMode::streamed);
  ASSERT_TRUE(source);
  ASSERT_TRUE((*source)->acquire(1, -1, *pool_));
  (*source)->release(1);
  fs::resize_file(folder_ / "scales", 9);
  EXPECT_THAT(message_of((*source)->acquire(0, -1, *pool_)), AllOf(HasSubstr("scales"), HasSubstr("tensor \"")));
}

}  // namespace
}  // namespace kvasir
