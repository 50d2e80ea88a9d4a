// GGUF files built byte by byte: every type, every bound, split files. src/engine tests what real ones mean.
#include "format/gguf.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/gguf_bytes.h"
#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

using format_test::message_of;
using format_test::put;
using format_test::TempFolder;
using gguf_test::Bytes;
using gguf_test::head;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Result<GgufHeader> parse(const Bytes& b) { return parse_gguf_header(std::as_bytes(std::span(b.data)), "t.gguf"); }
std::string error_of(const Bytes& b) { return message_of(parse(b)); }

TEST(Gguf, EveryScalarTypeIsRead) {
  Bytes b = head(0, 12);
  b.entry("u8", GgufType::u8, uint8_t{200}).entry("i8", GgufType::i8, int8_t{-3});
  b.entry("u16", GgufType::u16, uint16_t{60000}).entry("i16", GgufType::i16, int16_t{-30000});
  b.entry("u32", GgufType::u32, uint32_t{4000000000u}).entry("i32", GgufType::i32, int32_t{-7});
  b.entry("f32", GgufType::f32, 0.5f).entry("bool", GgufType::boolean, uint8_t{1});
  b.text_entry("string", "text").entry("u64", GgufType::u64, uint64_t{1} << 63);
  b.entry("i64", GgufType::i64, int64_t{-9}).entry("f64", GgufType::f64, 0.25);
  const auto h = parse(b);
  ASSERT_TRUE(h) << message_of(h);
  const GgufMetadata& m = h->metadata;
  EXPECT_EQ(m.entries.size(), 12u);
  EXPECT_EQ(*m.get_int("u8"), 200);
  EXPECT_EQ(*m.get_int("i8"), -3);
  EXPECT_EQ(*m.get_int("u16"), 60000);
  EXPECT_EQ(*m.get_int("i16"), -30000);
  EXPECT_EQ(*m.get_int("u32"), 4000000000);
  EXPECT_EQ(*m.get_int("i32"), -7);
  EXPECT_EQ(*m.get_number("f32"), 0.5);
  EXPECT_EQ(*m.get_bool("bool"), true);
  EXPECT_EQ(*m.get_string("string"), "text");
  EXPECT_EQ(*m.get_number("u64"), 0x1p63);
  EXPECT_EQ(*m.get_int("i64"), -9);
  EXPECT_EQ(*m.get_number("f64"), 0.25);
  EXPECT_EQ(*m.get_int("absent"), std::nullopt);
}

TEST(Gguf, AValueOfAnotherTypeIsRefusedWithBothNames) {
  Bytes b = head(0, 3);
  b.text_entry("name", "x").entry("big", GgufType::u64, UINT64_MAX).array("list", GgufType::u8, 2);
  b.number<uint8_t>(4).number<uint8_t>(5);
  const auto h = parse(b);
  ASSERT_TRUE(h) << message_of(h);
  EXPECT_THAT(message_of(h->metadata.get_int("name")),
              AllOf(HasSubstr("name"), HasSubstr("string"), HasSubstr("integer")));
  EXPECT_FALSE(h->metadata.get_int("big")) << "past int64";
  EXPECT_FALSE(h->metadata.get_bool("name"));
  EXPECT_THAT(message_of(h->metadata.get_number("list")), HasSubstr("array"));
  EXPECT_FALSE(h->metadata.get_string("list"));
}

TEST(Gguf, ArraysOfNumbersStringsAndArrays) {
  Bytes b = head(0, 4);
  b.array("ids", GgufType::i32, 3).number<int32_t>(-1).number<int32_t>(2).number<int32_t>(-3);
  b.array("pieces", GgufType::string, 2).string("").string("ab");
  b.array("nested", GgufType::array, 2);
  b.number<uint32_t>(0).number<uint64_t>(1).number<uint8_t>(9);
  b.number<uint32_t>(8).number<uint64_t>(1).string("deep");
  b.entry("after", GgufType::u8, uint8_t{7});
  const auto h = parse(b);
  ASSERT_TRUE(h) << message_of(h);
  EXPECT_THAT(*h->metadata.find("ids")->as_numbers(), ElementsAre(-1, 2, -3));
  EXPECT_THAT(h->metadata.find("pieces")->strings, ElementsAre("", "ab"));
  EXPECT_EQ(h->metadata.find("pieces")->as_numbers(), std::nullopt);
  EXPECT_EQ(h->metadata.find("nested")->count, 2u);
  EXPECT_EQ(*h->metadata.get_int("after"), 7) << "what follows a nested array is still found";
}

TEST(Gguf, TensorsLieWhereTheFileSaysAndTheirShapeIsTurned) {
  Bytes b = head(3, 0, 2);
  b.tensor("w", {8, 3}, 1, 0).tensor("v", {5}, 0, 64).tensor("q", {32, 2}, 8, 96);
  b.data_section(96 + 68);
  const auto h = parse(b);
  ASSERT_TRUE(h) << message_of(h);
  EXPECT_EQ(h->version, 2u);
  const uint64_t start = b.data.size() - (96 + 68);
  const auto& t = h->tensors;
  ASSERT_EQ(t.size(), 3u);
  EXPECT_EQ(t[0].name, "w");
  EXPECT_THAT(t[0].shape, ElementsAre(3, 8));
  EXPECT_EQ(t[0].codec, &codec_f16());
  EXPECT_EQ(t[0].offset, start);
  EXPECT_EQ(t[0].bytes, 48u);
  EXPECT_EQ(t[1].offset, start + 64);
  EXPECT_EQ(t[1].bytes, 20u);
  EXPECT_EQ(t[2].dtype, "Q8_0");
  EXPECT_EQ(t[2].bytes, 68u);
}

TEST(Gguf, AlignmentIsTheFilesOwn) {
  Bytes b = head(1, 1);
  b.entry("general.alignment", GgufType::u32, uint32_t{128}).tensor("w", {4}, 0, 128);
  b.data_section(128 + 16, 128);
  ASSERT_TRUE(parse(b)) << error_of(b);
  EXPECT_EQ(parse(b)->tensors[0].offset % 128, 0u);
  for (uint32_t bad : {0u, 4u, 24u, 33u, 1u << 21}) {
    Bytes c = head(1, 1);
    c.entry("general.alignment", GgufType::u32, bad).tensor("w", {4}, 0, 0).data_section(4096);
    EXPECT_THAT(error_of(c), HasSubstr("general.alignment")) << bad;
  }
}

TEST(Gguf, HeadersThatLieAreRefused) {
  EXPECT_THAT(error_of(Bytes{"GGML"}), HasSubstr("not a GGUF"));
  EXPECT_FALSE(parse(Bytes{""}));
  EXPECT_THAT(error_of(head(0, 0, 1)), HasSubstr("version 1"));
  EXPECT_THAT(error_of(head(0, 0, 0x03000000)), HasSubstr("big-endian"));
  EXPECT_THAT(error_of(head(uint64_t{1} << 63, 0)), HasSubstr("9223372036854775808 tensors"));
  EXPECT_THAT(error_of(head(0, UINT64_MAX)), HasSubstr("metadata entries"));
  EXPECT_THAT(error_of(head(0, 1).key("k", static_cast<GgufType>(13)).number<uint64_t>(0)),
              HasSubstr("unknown type 13"));
  EXPECT_THAT(error_of(head(0, 1).number<uint64_t>(UINT64_MAX).string("xxxxxxxxxxxxxxxxxxxxxxxx")), HasSubstr("over"));
  EXPECT_THAT(error_of(head(0, 1).array("a", GgufType::u64, uint64_t{1} << 61)), HasSubstr("elements of"));
  EXPECT_THAT(error_of(head(0, 1).array("a", GgufType::string, UINT64_MAX).string("x")), HasSubstr("elements of"));
  EXPECT_THAT(error_of(head(0, 2).entry("k", GgufType::u8, uint8_t{1}).entry("k", GgufType::u8, uint8_t{2})),
              HasSubstr("twice"));
  EXPECT_FALSE(parse(head(0, 1).entry("", GgufType::u64, uint64_t{1})));
}

TEST(Gguf, ArraysNestedWithoutEndAreRefused) {
  Bytes b = head(0, 1).key("k", GgufType::array);
  for (int i = 0; i < 10000; ++i) b.number<uint32_t>(9).number<uint64_t>(1);
  EXPECT_THAT(error_of(b), HasSubstr("nested"));
}

// `inspect` can then show the file; the model is refused if it needs such a tensor.
TEST(Gguf, ATypeWithoutAWordReachesToTheNextTensor) {
  const auto header =
      parse(head(3, 0).tensor("a", {7}, 4, 64).tensor("b", {3}, 77, 128).tensor("c", {4}, 0, 0).data_section(200));
  ASSERT_TRUE(header) << message_of(header);
  EXPECT_EQ(header->tensors[0].dtype, "type 4");
  EXPECT_EQ(header->tensors[0].codec, nullptr);
  EXPECT_EQ(header->tensors[0].bytes, 64u);
  EXPECT_EQ(header->tensors[1].dtype, "type 77");
  EXPECT_EQ(header->tensors[1].bytes, 72u);
  EXPECT_EQ(header->tensors[2].bytes, 16u);
  EXPECT_THAT(error_of(head(1, 0).tensor("a", {7}, 77, 256).data_section(200)), HasSubstr("200 bytes of data"));
  EXPECT_THAT(error_of(head(2, 0).tensor("a", {7}, 77, 0).tensor("b", {7}, 78, 0).data_section(200)),
              HasSubstr("overlap"));
}

// Sizes of blocks from ggml-common.h.
TEST(Gguf, NewTypesAreKnownByName) {
  const auto type = [](uint32_t id, uint64_t elements) {
    const auto header = parse(head(1, 0).tensor("a", {elements, 2}, id, 0).data_section(4096));
    return header ? fmt::format("{} {}", header->tensors[0].dtype, header->tensors[0].bytes) : message_of(header);
  };
  EXPECT_EQ(type(40, 128), "NVFP4 144");
  EXPECT_EQ(type(41, 256), "Q1_0 72");
  EXPECT_EQ(type(42, 128), "Q2_0 72");
  EXPECT_EQ(type(39, 64), "MXFP4 68");
}

TEST(Gguf, TensorsThatLieAreRefused) {
  const auto one = [](std::vector<uint64_t> dims, uint32_t type, uint64_t offset) {
    return error_of(head(1, 0).tensor("w", std::move(dims), type, offset).data_section(256));
  };
  EXPECT_EQ(one({4, 4}, 0, 0), "no error");
  EXPECT_THAT(one({}, 0, 0), HasSubstr("0 dimensions"));
  EXPECT_THAT(one({1, 1, 1, 1, 1}, 0, 0), HasSubstr("5 dimensions"));
  EXPECT_THAT(one({0}, 0, 0), HasSubstr("dimension 0"));
  EXPECT_THAT(one({uint64_t{1} << 63}, 0, 0), HasSubstr("-9223372036854775808"));
  EXPECT_THAT(one({uint64_t{1} << 40, uint64_t{1} << 40}, 0, 0), HasSubstr("dimension 1"));
  EXPECT_THAT(one({INT64_MAX}, 0, 0), HasSubstr("elements"));
  EXPECT_THAT(one({31}, 8, 0), HasSubstr("whole blocks of 32"));
  EXPECT_THAT(one({4}, 0, 8), HasSubstr("no multiple of 32"));
  EXPECT_THAT(one({4}, 0, 256), HasSubstr("16 bytes at offset 256"));
  EXPECT_THAT(one({4}, 0, UINT64_MAX - 31), HasSubstr("has 16 bytes"));
  EXPECT_THAT(one({65}, 0, 0), HasSubstr("260 bytes"));
  EXPECT_THAT(error_of(head(2, 0).tensor("a", {16}, 0, 0).tensor("b", {16}, 0, 32).data_section(256)),
              AllOf(HasSubstr("\"a\""), HasSubstr("\"b\""), HasSubstr("overlap")));
}

TEST(Gguf, EveryCutOfAFileIsAnError) {
  Bytes b = head(2, 3);
  b.text_entry("general.architecture", "llama").array("a", GgufType::string, 2).string("x").string("yz");
  b.entry("n", GgufType::u32, uint32_t{3}).tensor("w", {4, 2}, 0, 0).tensor("v", {3}, 1, 32).data_section(38);
  ASSERT_TRUE(parse(b)) << error_of(b);
  for (size_t size = 0; size < b.data.size(); ++size) {
    // The vector is exactly as large as the cut file, so that the address sanitizer sees a read past the end.
    const std::vector<char> cut(b.data.begin(), b.data.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(parse_gguf_header(std::as_bytes(std::span(cut)), "cut")) << size;
  }
}

// ---- files --------------------------------------------------------------------------------------------------------

Bytes part(uint16_t no, uint16_t count, const std::string& tensor, int32_t tensors = 3) {
  Bytes b = head(1, 3);
  b.entry("split.no", GgufType::u16, no).entry("split.count", GgufType::u16, count);
  return b.entry("split.tensors.count", GgufType::i32, tensors).tensor(tensor, {4}, 0, 0).data_section(16);
}

TEST(Gguf, PartsAreOneModelWhicheverIsNamed) {
  const TempFolder folder;
  const std::vector<std::string> names{"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"};
  for (uint16_t i = 0; i < 3; ++i) put(folder / names[i], part(i, 3, std::string(1, static_cast<char>('c' - i))).data);
  for (const std::string& name : names) {
    const auto file = open_gguf(folder / name);
    ASSERT_TRUE(file) << message_of(file);
    ASSERT_EQ(file->tensors.tensors.size(), 3u);
    EXPECT_EQ(file->tensors.files.size(), 3u);
    EXPECT_EQ(file->tensors.find("a")->file, 2);
    EXPECT_EQ(file->tensors.find("c")->file, 0);
  }
  std::filesystem::remove(folder / names[1]);
  EXPECT_THAT(message_of(open_gguf(folder / names[0])), HasSubstr(names[1]));
}

TEST(Gguf, PartsMayHaveAnyEnding) {
  for (const std::string ending : {".GGUF", "", ".part.gguf"}) {
    const TempFolder folder;
    for (uint16_t i = 0; i < 2; ++i)
      put(folder / ("m-0000" + std::to_string(i + 1) + "-of-00002" + ending),
          part(i, 2, std::string(1, static_cast<char>('a' + i)), 2).data);
    const auto file = open_gguf(folder / ("m-00002-of-00002" + ending));
    EXPECT_TRUE(file) << message_of(file);
  }
}

TEST(Gguf, IsKnownByItsFirstBytes) {
  const TempFolder folder;
  put(folder / "sha256-0123", part(0, 1, "a", 1).data);
  put(folder / "short.gguf", "GGU");
  put(folder / "bytes.gguf", "ggml, not GGUF");
  EXPECT_TRUE(is_gguf(folder / "sha256-0123"));
  for (const char* name : {"short.gguf", "bytes.gguf", "absent", "."}) EXPECT_FALSE(is_gguf(folder / name)) << name;
}

TEST(Gguf, PartsThatDoNotFitAreRefused) {
  const TempFolder folder;
  put(folder / "alone.gguf", part(0, 2, "a").data);
  EXPECT_THAT(message_of(open_gguf(folder / "alone.gguf")), AllOf(HasSubstr("part of 2"), HasSubstr("-of-00002.gguf")));
  put(folder / "m-00001-of-00002.gguf", part(0, 2, "a").data);
  put(folder / "m-00002-of-00002.gguf", part(0, 2, "b").data);
  EXPECT_THAT(message_of(open_gguf(folder / "m-00001-of-00002.gguf")), HasSubstr("part 1 of 2"));
  put(folder / "m-00002-of-00002.gguf", part(1, 2, "a").data);
  EXPECT_THAT(message_of(open_gguf(folder / "m-00001-of-00002.gguf")), HasSubstr("2 tensors, the first one says 3"));
  put(folder / "m-00001-of-00002.gguf", part(0, 2, "a", 2).data);
  EXPECT_THAT(message_of(open_gguf(folder / "m-00001-of-00002.gguf")), HasSubstr("twice"));
  put(folder / "huge-00001-of-65535.gguf", part(0, 65535, "a").data);
  EXPECT_FALSE(open_gguf(folder / "huge-00001-of-65535.gguf"));
}

}  // namespace
}  // namespace kvasir
