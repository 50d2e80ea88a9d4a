// Reads valid files built here byte by byte, then files with every kind of wrong header; then writes files.
#include "format/safetensors.h"

#include <gmock/gmock.h>

#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

using namespace format_test;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::string_view kTwo =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]},)"
    R"("a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})";

std::string parse_error(std::string_view header, size_t data_bytes) {
  const std::string file = safetensors_file(header, std::string(data_bytes, 'x'));
  return message_of(parse_safetensors_header(as_span(file), "f.safetensors"));
}

/// One tensor "t" with the given fields.
std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return R"({"t":{"dtype":")" + std::string(dtype) + R"(","shape":)" + std::string(shape) + R"(,"data_offsets":)" +
         std::string(offsets) + "}}";
}

TEST(Safetensors, ReadsNamesShapesAndBytes) {
  TempFolder folder;
  const auto floats = distinct_floats(6, 1.5f);
  put(folder / "m.safetensors", safetensors_file(kTwo, "\x01\x02\x03\x04" + raw(floats)));
  const auto dir = open_safetensors(folder / "m.safetensors");
  ASSERT_TRUE(dir) << message_of(dir);
  ASSERT_EQ(dir->tensors.size(), 2u);
  EXPECT_EQ(dir->tensors[0].name, "a");
  EXPECT_EQ(dir->tensors[0].codec, &codec_bf16());
  const TensorInfo* b = dir->find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->codec, &codec_f32());
  EXPECT_EQ(b->dtype, "F32");
  EXPECT_EQ(b->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(b->offset, 8 + kTwo.size() + 4);
  const auto data = dir->data(*b);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(data.data()), data.size()), raw(floats));
  EXPECT_EQ(dir->find("c"), nullptr);
  EXPECT_EQ(dir->find(""), nullptr);
}

TEST(Safetensors, KnowsEveryDtypeAndWhichAreOurs) {
  const std::vector<std::pair<std::string, int>> bits = {
      {"F64", 64}, {"F32", 32}, {"F16", 16}, {"BF16", 16}, {"I64", 64}, {"I32", 32}, {"I16", 16}, {"I8", 8},
      {"U64", 64}, {"U32", 32}, {"U16", 16}, {"U8", 8},    {"BOOL", 8}, {"C64", 64}, {"F4", 4},   {"F8_E4M3", 8}};
  for (const auto& [dtype, width] : bits) {
    const int bytes = 6 * width / 8;
    const auto file = safetensors_file(one(dtype, "[3,2]", "[0," + std::to_string(bytes) + "]"),
                                       std::string(static_cast<size_t>(bytes), 'x'));
    const auto tensors = parse_safetensors_header(as_span(file), "f");
    ASSERT_TRUE(tensors) << message_of(tensors);
    EXPECT_EQ((*tensors)[0].codec != nullptr, dtype == "F32" || dtype == "F16" || dtype == "BF16") << dtype;
    EXPECT_THAT(parse_error(one(dtype, "[3,2]", "[0," + std::to_string(bytes + 1) + "]"), 99), HasSubstr("needs"));
  }
  EXPECT_THAT(parse_error(one("F4", "[3]", "[0,2]"), 2), HasSubstr("12 bits is not whole bytes"));
  for (const char* unknown : {"F33", "f32", "", "Q8_0"})
    EXPECT_THAT(parse_error(one(unknown, "[1]", "[0,4]"), 4),
                HasSubstr("unknown dtype \"" + std::string(unknown) + "\""));
}

TEST(Safetensors, ScalarsAndEmptyTensorsAreFine) {
  const auto file = safetensors_file(R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                                     R"("e":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]},)"
                                     R"("z":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}})",
                                     "abcde");
  const auto tensors = parse_safetensors_header(as_span(file), "f");
  ASSERT_TRUE(tensors) << message_of(tensors);
  EXPECT_EQ((*tensors)[0].bytes, 0u);
  EXPECT_EQ((*tensors)[1].bytes, 4u);
  EXPECT_TRUE(parse_safetensors_header(as_span(safetensors_file("{}  ", "")), "f"));
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const std::string file = safetensors_file(kTwo, std::string(28, 'x'));
  ASSERT_TRUE(parse_safetensors_header(as_span(file), "f"));
  for (size_t n = 0; n < file.size(); ++n)
    EXPECT_FALSE(parse_safetensors_header(as_span(std::string_view(file).substr(0, n)), "f")) << n;
  EXPECT_THAT(message_of(parse_safetensors_header(as_span(file + "y"), "f")), HasSubstr("1 bytes after the last"));
}

TEST(Safetensors, HeaderLengthIsChecked) {
  std::string file = safetensors_file(kTwo, std::string(28, 'x'));
  const auto with_length = [&](uint64_t length) {
    std::memcpy(file.data(), &length, sizeof length);
    return message_of(parse_safetensors_header(as_span(file), "f.safetensors"));
  };
  EXPECT_THAT(with_length(file.size() - 7), HasSubstr("header of"));
  EXPECT_THAT(with_length(100'000'001), HasSubstr("at most 100000000 allowed"));
  EXPECT_THAT(with_length(UINT64_MAX), HasSubstr("at most 100000000 allowed"));
  EXPECT_THAT(with_length(0), HasSubstr("does not start with {"));
  EXPECT_THAT(with_length(kTwo.size() - 1), HasSubstr("not valid JSON"));
  EXPECT_THAT(with_length(kTwo.size() + 1), HasSubstr("not valid JSON"));
  EXPECT_THAT(message_of(parse_safetensors_header(as_span("version https://git-lfs.github.com/spec/v1"), "f")),
              HasSubstr("git lfs pull"));
}

TEST(Safetensors, OffsetsMustCoverTheDataOnce) {
  const auto two = [](const char* a, const char* b) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(a) +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}";
  };
  EXPECT_EQ(parse_error(two("[0,4]", "[4,8]"), 8), "no error");
  EXPECT_EQ(parse_error(two("[4,8]", "[0,4]"), 8), "no error");
  EXPECT_THAT(parse_error(two("[0,4]", "[3,7]"), 7), HasSubstr("1 bytes before the end"));
  EXPECT_THAT(parse_error(two("[0,4]", "[0,4]"), 4), HasSubstr("4 bytes before the end"));
  EXPECT_THAT(parse_error(two("[0,4]", "[5,9]"), 9), HasSubstr("1 bytes after the end"));
  EXPECT_THAT(parse_error(two("[1,5]", "[5,9]"), 9), HasSubstr("1 bytes after the end"));
  EXPECT_THAT(parse_error(two("[0,4]", "[4,8]"), 9), HasSubstr("1 bytes after the last tensor"));
  EXPECT_THAT(parse_error(two("[0,4]", "[4,8]"), 7), HasSubstr("lies at 4..8 of 7"));
  EXPECT_THAT(parse_error(two("[4,0]", "[4,8]"), 8), HasSubstr("lies at 4..0"));
  EXPECT_THAT(parse_error(two("[0,4]", "[18446744073709551612,18446744073709551615]"), 8), HasSubstr("lies at"));
  EXPECT_THAT(parse_error(two("[0,4]", "[18446744073709551616,8]"), 8), HasSubstr("unexpected 18446744073709551616"));
}

TEST(Safetensors, ShapesMustMakeSense) {
  EXPECT_THAT(parse_error(one("F32", "[-1]", "[0,4]"), 4), HasSubstr("unexpected -1"));
  EXPECT_THAT(parse_error(one("F32", "[1.0]", "[0,4]"), 4), HasSubstr("unexpected 1.0"));
  EXPECT_THAT(parse_error(one("F32", "[9223372036854775808]", "[0,4]"), 4),
              HasSubstr("unexpected 9223372036854775808"));
  EXPECT_THAT(parse_error(one("F32", "[4294967296,4294967296]", "[0,0]"), 0), HasSubstr("too large"));
  EXPECT_THAT(parse_error(one("F32", "[0,4294967296,4294967296]", "[0,0]"), 0), HasSubstr("too large"));
  EXPECT_THAT(parse_error(one("U8", "[4611686018427387904,4,1]", "[0,0]"), 0), HasSubstr("too large"));
  EXPECT_THAT(parse_error(one("F32", "[[1]]", "[0,4]"), 4), HasSubstr("unexpected a list"));
  EXPECT_THAT(parse_error(one("F32", "4", "[0,4]"), 4), HasSubstr("unexpected 4"));
  EXPECT_THAT(parse_error(one("F32", "[1]", "[0]"), 4), HasSubstr("two data_offsets"));
  EXPECT_THAT(parse_error(one("F32", "[1]", "[0,4,4]"), 4), HasSubstr("unexpected 4"));
  std::string ones = "[1";
  for (int i = 0; i < 40; ++i) ones += ",1";
  EXPECT_THAT(parse_error(one("U8", ones + "]", "[0,1]"), 1), HasSubstr("unexpected 1"));
}

TEST(Safetensors, HeaderJsonIsStrict) {
  const std::string field = R"("dtype":"U8","shape":[1],"data_offsets":[0,1])";
  const auto header = [&](const std::string& body) { return parse_error("{" + body + "}", 1); };
  ASSERT_EQ(header(R"("t":{)" + field + "}"), "no error");
  EXPECT_THAT(header(R"("t":{)" + field + R"(},"t":{)" + field + "}"), HasSubstr("before the end"));
  EXPECT_THAT(header(R"("t":{"dtype":"U8",)" + field + "}"), HasSubstr(R"(key "dtype" of "t" is there twice)"));
  EXPECT_THAT(header(R"("t":{"extra":"U8",)" + field + "}"), HasSubstr(R"(unknown key "extra")"));
  EXPECT_THAT(header(R"("t":{"dtype":"U8","shape":[1]})"), HasSubstr("lacks"));
  EXPECT_THAT(header(R"("t":{"dtype":7,"shape":[1],"data_offsets":[0,1]})"), HasSubstr("unexpected 7"));
  EXPECT_THAT(header(R"("t":null)"), HasSubstr("unexpected null"));
  EXPECT_THAT(header(R"("t":"x")"), HasSubstr("unexpected a string"));
  EXPECT_THAT(header(R"("t":{"a":{}})"), HasSubstr("unknown key"));
  EXPECT_THAT(header(R"("__metadata__":{"a":"1","a":"2"})"), HasSubstr("twice"));
  EXPECT_THAT(header(R"("__metadata__":{},"__metadata__":{})"), HasSubstr("twice"));
  EXPECT_THAT(header(R"("__metadata__":{"a":1})"), HasSubstr("unexpected 1"));
  EXPECT_THAT(header(R"("__metadata__":{"a":{}})"), HasSubstr("unexpected an object"));
  EXPECT_THAT(parse_error("{}}", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(parse_error(std::string("{}\0{", 4), 0), HasSubstr("not valid JSON at byte 3"));
  EXPECT_THAT(parse_error("{\"\xff\":1}", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(parse_error(R"({"t":)" + std::string(100'000, '['), 0), HasSubstr("unexpected a list"));
}

TEST(Safetensors, TwoEmptyTensorsOfOneNameAreRefused) {
  const std::string empty = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_THAT(parse_error(R"({"t":)" + empty + R"(,"t":)" + empty + "}", 0), HasSubstr("is there twice"));
}

TEST(Safetensors, ErrorsNameTheFileAndEscapeNames) {
  const std::string error =
      parse_error("{\"a\\u001b[31m\":{\"dtype\":\"F99\",\"shape\":[],\"data_offsets\":[0,0]}}", 0);
  EXPECT_THAT(error, AllOf(HasSubstr("f.safetensors: "), HasSubstr("a\\x1b[31m"), HasSubstr("F99")));
}

class Shards : public testing::Test {
 protected:
  void SetUp() override {
    put(folder_ / "one.safetensors",
        safetensors_file(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "12"));
    put(folder_ / "two.safetensors", safetensors_file(R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                                                      R"("A":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                                                      "345"));
  }
  Result<TensorDir> open(const std::string& index) {
    put(folder_ / "model.safetensors.index.json", index);
    return open_safetensors(folder_.path());
  }
  std::string error(const std::string& map) { return message_of(open(R"({"weight_map":)" + map + "}")); }

  TempFolder folder_;
};

TEST_F(Shards, AreOneDirectory) {
  const auto dir = open(R"({"metadata":{"total_size":5},"weight_map":)"
                        R"({"A":"two.safetensors","a":"one.safetensors","b":"two.safetensors"}})");
  ASSERT_TRUE(dir) << message_of(dir);
  std::string all;
  for (const TensorInfo& tensor : dir->tensors) {
    const auto data = dir->data(tensor);
    all += tensor.name + std::string(reinterpret_cast<const char*>(data.data()), data.size());
  }
  EXPECT_EQ(all, "A5a12b34");
  EXPECT_EQ(dir->files.size(), 2u);
}

TEST_F(Shards, AreNotTrusted) {
  EXPECT_THAT(error(R"({"a":"two.safetensors"})"), HasSubstr(R"("a" is not in its shard "two.safetensors")"));
  EXPECT_THAT(error(R"({"A":"one.safetensors","a":"one.safetensors","b":"two.safetensors"})"),
              HasSubstr(R"("A" is not in its shard "one.safetensors")"));
  EXPECT_THAT(error(R"({"zz":"two.safetensors"})"), HasSubstr("\"zz\" is not in its shard"));
  EXPECT_THAT(error(R"({"a":"one.safetensors","b":"one.safetensors"})"), HasSubstr("\"b\" is not in its shard"));
  EXPECT_THAT(error(R"({"a":"three.safetensors"})"), HasSubstr("No such file"));
  EXPECT_THAT(error(R"({"a":"one.safetensors","a":"two.safetensors"})"), HasSubstr("twice"));
  fs::copy_file(folder_ / "one.safetensors", folder_ / "copy.safetensors");
  EXPECT_THAT(error(R"({"a":"one.safetensors","A":"two.safetensors","x":"copy.safetensors"})"),
              HasSubstr("tensor \"a\" is there twice"));
}

TEST_F(Shards, MustBePlainNames) {
  for (const char* name :
       {"../one.safetensors", "/etc/passwd", "", ".", "..", "sub/one.safetensors", "a\\\\b", "a\\u0000"})
    EXPECT_THAT(error("{\"a\":\"" + std::string(name) + "\"}"), HasSubstr("not the name of a file beside")) << name;
  EXPECT_THAT(error(R"({"a":3})"), HasSubstr("not the name of a file beside"));
}

TEST_F(Shards, IndexMustHaveAMap) {
  for (const char* index : {"{}", "[]", "3", R"({"weight_map":[]})", R"({"weight_map":{}})"})
    EXPECT_THAT(message_of(open(index)), HasSubstr("no \"weight_map\"")) << index;
  EXPECT_THAT(message_of(open("{")), HasSubstr("not valid JSON"));
  EXPECT_THAT(message_of(open(std::string(65, '['))), HasSubstr("deeper than 64"));
}

TEST(Safetensors, FoldersAndMissingFiles) {
  TempFolder folder;
  EXPECT_THAT(message_of(open_safetensors(folder.path())), HasSubstr("neither model.safetensors nor"));
  EXPECT_THAT(message_of(open_safetensors(folder / "none")), HasSubstr("No such file"));
  put(folder / "model.safetensors", safetensors_file(kTwo, std::string(28, 'x')));
  EXPECT_TRUE(open_safetensors(folder.path()));
}

TEST(Safetensors, ReadsAModelOfTheReferenceWriter) {
  const fs::path data = outside_data();
  if (data.empty()) GTEST_SKIP() << "outside data folder is absent";
  const auto dir = open_safetensors(data / "models/tiny-random-gpt2");
  ASSERT_TRUE(dir) << message_of(dir);
  EXPECT_EQ(dir->tensors.size(), 64u);
  const TensorInfo* wpe = dir->find("transformer.wpe.weight");
  ASSERT_NE(wpe, nullptr);
  EXPECT_EQ(wpe->shape, (std::vector<int64_t>{512, 32}));
  EXPECT_EQ(wpe->offset, 8u + 6032u + 128'000u);
}

TEST(SafetensorsWriter, RoundTripsInOddPieces) {
  TempFolder folder;
  const auto x = distinct_floats(15, -3.0f), y = distinct_floats(4, 100.0f);
  SafetensorsWriter writer;
  ASSERT_TRUE(writer.create(folder / "w.safetensors",
                            {{"z\"\\é", &codec_f32(), {5, 3}}, {"h", &codec_f16(), {0}}, {"a", &codec_f32(), {4}}}));
  const std::string all = raw(x) + raw(y);
  for (size_t at = 0; at < all.size(); at += 7) ASSERT_TRUE(writer.write(as_span(std::string_view(all).substr(at, 7))));
  EXPECT_FALSE(fs::exists(folder / "w.safetensors"));
  ASSERT_TRUE(writer.finish());
  EXPECT_EQ(folder.count(), 1u);
  const auto dir = open_safetensors(folder / "w.safetensors");
  ASSERT_TRUE(dir) << message_of(dir);
  ASSERT_EQ(dir->tensors.size(), 3u);
  const TensorInfo* z = dir->find("z\"\\é");
  ASSERT_NE(z, nullptr);
  EXPECT_EQ(z->shape, (std::vector<int64_t>{5, 3}));
  EXPECT_EQ(z->offset % 8, 0u);
  const auto data = dir->data(*z), tail = dir->data(*dir->find("a"));
  EXPECT_EQ(std::memcmp(data.data(), x.data(), data.size()), 0);
  EXPECT_EQ(std::memcmp(tail.data(), y.data(), tail.size()), 0);
}

TEST(SafetensorsWriter, CountsWhatItIsGiven) {
  TempFolder folder;
  SafetensorsWriter writer;
  EXPECT_FALSE(writer.write(as_span("x")));
  EXPECT_FALSE(writer.finish());
  ASSERT_TRUE(writer.create(folder / "w", {{"a", &codec_f16(), {2}}, {"b", &codec_f16(), {3}}}));
  ASSERT_TRUE(writer.write(as_span("12345")));
  EXPECT_THAT(message_of(writer.finish()), HasSubstr("5 of 10 bytes written, the next is in tensor \"b\""));
  EXPECT_THAT(message_of(writer.write(as_span("123456"))), HasSubstr("1 bytes more than the 10 declared"));
  ASSERT_TRUE(writer.write(as_span("67890")));
  EXPECT_TRUE(writer.finish());
  EXPECT_FALSE(writer.finish());
}

TEST(SafetensorsWriter, RefusesWhatItCannotWrite) {
  TempFolder folder;
  SafetensorsWriter writer;
  const Codec* f32 = &codec_f32();
  EXPECT_THAT(message_of(writer.create(folder / "w", {{"a", f32, {1}}, {"a", f32, {1}}})), HasSubstr("twice"));
  EXPECT_THAT(message_of(writer.create(folder / "w", {{"__metadata__", f32, {1}}})), HasSubstr("__metadata__"));
  EXPECT_THAT(message_of(writer.create(folder / "w", {{"a", f32, {-1}}})), HasSubstr("bad shape"));
  EXPECT_THAT(message_of(writer.create(folder / "w", {{"a", f32, {INT64_MAX / 2, 2}}})), HasSubstr("bad shape"));
  EXPECT_THAT(message_of(writer.create(folder / "w", {{"a", nullptr, {1}}})), HasSubstr("no type"));
  EXPECT_THAT(message_of(writer.create(folder / "w", {{"\xff", f32, {1}}})), HasSubstr("UTF-8"));
  const Codec blocks{"q8", "Q8", "", 32, 34, Act::q8, RowForm::other, nullptr, nullptr, nullptr, nullptr};
  EXPECT_THAT(message_of(writer.create(folder / "w", {{"a", &blocks, {32}}})), HasSubstr("cannot hold"));
  EXPECT_THAT(message_of(writer.create(folder / "no" / "w", {{"a", f32, {1}}})), HasSubstr("No such file"));
  EXPECT_EQ(folder.count(), 0u);
}

}  // namespace
}  // namespace kvasir
