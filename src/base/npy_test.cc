// Compares the header's bytes with NumPy's description of the format.
#include "base/npy.h"

#include <gmock/gmock.h>

#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

using namespace format_test;
using testing::HasSubstr;

TEST(Npy, WritesHeaderAndData) {
  TempFolder folder;
  const auto data = distinct_floats(6, -1.5f);
  ASSERT_TRUE(write_npy_f32(folder / "x.npy", data, {2, 3}));
  const std::string file = slurp(folder / "x.npy");
  ASSERT_EQ(file.size(), 128u + 24u);
  EXPECT_EQ(file.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(file.substr(10, 59), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, ),");
  EXPECT_EQ(file[127], '\n');
  EXPECT_EQ(file.substr(128), raw(data));
}

TEST(Npy, ScalarVectorAndEmptyShapes) {
  TempFolder folder;
  const auto shape_text = [&](std::vector<float> data, std::vector<int64_t> shape) {
    EXPECT_TRUE(write_npy_f32(folder / "x.npy", data, std::move(shape)));
    const std::string file = slurp(folder / "x.npy");
    const size_t at = file.find("'shape': ") + 9;
    return file.substr(at, file.find(')') + 1 - at);
  };
  EXPECT_EQ(shape_text({1}, {}), "()");
  EXPECT_EQ(shape_text({1, 2}, {2}), "(2, )");
  EXPECT_EQ(shape_text({}, {0, 4}), "(0, 4, )");
}

TEST(Npy, RefusesAWrongShapeOrPlace) {
  TempFolder folder;
  const std::vector<float> data = {1, 2, 3};
  EXPECT_THAT(message_of(write_npy_f32(folder / "x.npy", data, {2, 2})),
              HasSubstr("3 values do not fill a shape [2, 2]"));
  EXPECT_FALSE(write_npy_f32(folder / "x.npy", data, {-3, -1}));
  EXPECT_FALSE(write_npy_f32(folder / "x.npy", data, {INT64_MAX, INT64_MAX}));
  EXPECT_FALSE(write_npy_f32(folder / "no" / "x.npy", data, {3}));
  EXPECT_EQ(folder.count(), 0u);
}

}  // namespace
}  // namespace kvasir
