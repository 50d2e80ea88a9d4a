// Files are written and read back: every kind of entry, every type of tensor, pieces of any size. Entries that
// cannot be written are refused before any byte is written.
#include "format/gguf_writer.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/gguf_bytes.h"
#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

using format_test::message_of;
using format_test::put;
using format_test::slurp;
using format_test::TempFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::byte> noise(size_t n, unsigned seed) {
  std::vector<std::byte> bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
  return bytes;
}

TEST(GgufWriter, EntriesComeBackInOrderAndInType) {
  const TempFolder folder;
  GgufEntries e;
  e.string("general.architecture", "llama");
  e.u32("a.u32", 0xfffffffe);
  e.u64("a.u64", uint64_t{1} << 40);
  e.f32("a.f32", 0.1f);
  e.boolean("a.yes", true);
  e.boolean("a.no", false);
  const std::vector<std::string_view> strings = {"", "one", std::string_view("t\0o", 3)};
  e.strings("a.strings", strings);
  e.i32s("a.i32s", std::vector<int32_t>{-1, 0, 7});
  e.f32s("a.f32s", std::vector<float>{-0.5f, 1e30f});
  e.strings("a.none", {});
  GgufWriter writer;
  ASSERT_TRUE(writer.create(folder / "m.gguf", e, {}));
  const auto done = writer.finish();
  ASSERT_TRUE(done) << message_of(done);
  const auto file = open_gguf(folder / "m.gguf");
  ASSERT_TRUE(file) << message_of(file);
  EXPECT_EQ(file->version, 3u);
  const GgufMetadata& m = file->metadata;
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : m.entries) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("general.architecture", "a.u32", "a.u64", "a.f32", "a.yes", "a.no", "a.strings",
                                "a.i32s", "a.f32s", "a.none"));
  EXPECT_EQ(m.find("general.architecture")->as_string(), "llama");
  EXPECT_EQ(m.find("a.u32")->type, GgufType::u32);
  EXPECT_EQ(m.find("a.u32")->as_int(), 0xfffffffe);
  EXPECT_EQ(m.find("a.u64")->type, GgufType::u64);
  EXPECT_EQ(m.find("a.u64")->as_int(), int64_t{1} << 40);
  EXPECT_EQ(m.find("a.f32")->as_number(), double{0.1f});
  EXPECT_EQ(m.find("a.yes")->as_bool(), true);
  EXPECT_EQ(m.find("a.no")->as_bool(), false);
  EXPECT_EQ(m.find("a.strings")->strings, strings);
  EXPECT_EQ(m.find("a.i32s")->element, GgufType::i32);
  EXPECT_THAT(*m.find("a.i32s")->as_numbers(), ElementsAre(-1, 0, 7));
  EXPECT_THAT(*m.find("a.f32s")->as_numbers(), ElementsAre(-0.5, double{1e30f}));
  EXPECT_EQ(m.find("a.none")->count, 0u);
}

TEST(GgufWriter, CopiesAnyValueOfAnotherFile) {
  const TempFolder folder;
  gguf_test::Bytes b = gguf_test::head(0, 7);
  b.entry("i8", GgufType::i8, int8_t{-3}).entry("f64", GgufType::f64, 0.25).text_entry("text", "as it is");
  b.entry("flag", GgufType::boolean, uint8_t{1}).array("u16", GgufType::u16, 2).number<uint16_t>(3).number<uint16_t>(4);
  b.array("texts", GgufType::string, 2).string("a").string("");
  b.array("nested", GgufType::array, 1).number(static_cast<uint32_t>(GgufType::u8)).number(uint64_t{3});
  b.number(uint8_t{1}).number(uint8_t{2}).number(uint8_t{3});
  put(folder / "a.gguf", b.data);
  const auto a = open_gguf(folder / "a.gguf");
  ASSERT_TRUE(a) << message_of(a);
  GgufEntries e;
  for (const auto& [key, value] : a->metadata.entries) e.copy(key, value);
  GgufWriter writer;
  ASSERT_TRUE(writer.create(folder / "b.gguf", e, {}));
  ASSERT_TRUE(writer.finish());
  std::string padded = b.data;
  padded.resize((padded.size() + 31) / 32 * 32, '\0');
  EXPECT_EQ(slurp(folder / "b.gguf"), padded) << "the same bytes, up to the alignment of data that is not there";
}

// Writes every type of tensor in pieces of `step` bytes that cross the tensors' ends.
void round_trip(size_t step) {
  const TempFolder folder;
  std::vector<TensorDecl> decls;
  std::vector<std::byte> all;
  std::vector<std::vector<std::byte>> data;
  for (const Codec* codec : codecs()) {
    const int64_t cols = codec->block_elems == 1 ? 7 : 2 * codec->block_elems;
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{cols}, {3, cols}, {2, 5, cols}}) {
      decls.push_back({std::string(codec->name) + "." + std::to_string(shape.size()), codec, shape});
      const auto rows = shape.size() == 1 ? 1u : shape.size() == 2 ? 3u : 10u;
      data.push_back(noise(codec->row_bytes(cols) * rows, static_cast<unsigned>(data.size())));
      all.insert(all.end(), data.back().begin(), data.back().end());
    }
  }
  GgufEntries e;
  e.string("general.architecture", "llama");
  GgufWriter writer;
  const auto created = writer.create(folder / "m.gguf", e, decls);
  ASSERT_TRUE(created) << message_of(created);
  for (size_t at = 0; at < all.size(); at += step)
    ASSERT_TRUE(writer.write(std::span(all).subspan(at, std::min(step, all.size() - at))));
  EXPECT_FALSE(std::filesystem::exists(folder / "m.gguf"));
  const auto done = writer.finish();
  ASSERT_TRUE(done) << message_of(done);
  EXPECT_EQ(std::filesystem::file_size(folder / "m.gguf"), writer.file_bytes());
  const auto file = open_gguf(folder / "m.gguf");
  ASSERT_TRUE(file) << message_of(file);
  ASSERT_EQ(file->tensors.tensors.size(), decls.size());
  for (size_t i = 0; i < decls.size(); ++i) {
    const TensorInfo* info = file->tensors.find(decls[i].name);
    ASSERT_NE(info, nullptr) << decls[i].name;
    EXPECT_EQ(info->codec, decls[i].codec) << decls[i].name;
    EXPECT_EQ(info->shape, decls[i].shape) << decls[i].name;
    EXPECT_EQ(info->offset % 32, 0u);
    const auto bytes = file->tensors.data(*info);
    EXPECT_EQ(std::vector<std::byte>(bytes.begin(), bytes.end()), data[i]) << decls[i].name;
  }
}

TEST(GgufWriter, TensorsComeBackInPiecesOfAnySize) {
  for (const size_t step : {size_t{1}, size_t{13}, size_t{1000}, size_t{1} << 20}) round_trip(step);
}

TEST(GgufWriter, WhatCannotBeWrittenIsRefused) {
  const TempFolder folder;
  const auto refusal = [&](std::vector<TensorDecl> tensors, const GgufEntries& entries = {}) {
    GgufWriter writer;
    const std::string message = message_of(writer.create(folder / "m.gguf", entries, std::move(tensors)));
    EXPECT_EQ(folder.count(), 0u);
    return message;
  };
  const Codec* q8 = find_codec("q8_0");
  EXPECT_THAT(refusal({{"a", q8, {2, 33}}}), AllOf(HasSubstr("\"a\""), HasSubstr("33"), HasSubstr("32")));
  EXPECT_THAT(refusal({{"a", q8, {}}}), HasSubstr("0 dimensions"));
  EXPECT_THAT(refusal({{"a", q8, {1, 1, 1, 1, 32}}}), HasSubstr("5 dimensions"));
  EXPECT_THAT(refusal({{"a", q8, {0, 32}}}), HasSubstr("[0, 32]"));
  EXPECT_THAT(refusal({{"a", q8, {-1, 32}}}), HasSubstr("[-1, 32]"));
  EXPECT_THAT(refusal({{"a", q8, {int64_t{1} << 40, int64_t{1} << 40}}}), HasSubstr("no file can hold"));
  EXPECT_THAT(refusal({{"a", nullptr, {32}}}), HasSubstr("type"));
  EXPECT_THAT(refusal({{"", q8, {32}}}), HasSubstr("0 bytes"));
  EXPECT_THAT(refusal({{std::string(64, 'n'), q8, {32}}}), HasSubstr("64 bytes"));
  EXPECT_THAT(refusal({{"a", q8, {32}}, {"b", q8, {32}}, {"a", q8, {32}}}), HasSubstr("\"a\" is there twice"));
  GgufEntries twice;
  twice.u32("k", 1);
  twice.u32("k", 2);
  EXPECT_THAT(refusal({}, twice), HasSubstr("\"k\" is there twice"));
  GgufEntries nameless;
  nameless.u32("", 1);
  EXPECT_THAT(refusal({}, nameless), HasSubstr("0 bytes"));
}

TEST(GgufWriter, TooFewAndTooManyBytesAreRefused) {
  const TempFolder folder;
  const std::vector<TensorDecl> decls = {{"a", &codec_f32(), {3}}, {"b", &codec_f16(), {2, 2}}};
  GgufWriter writer;
  EXPECT_THAT(message_of(writer.finish()), HasSubstr("no output"));
  EXPECT_THAT(message_of(writer.write(noise(1, 0))), HasSubstr("no output"));
  ASSERT_TRUE(writer.create(folder / "m.gguf", {}, decls));
  ASSERT_TRUE(writer.write(noise(12, 0)));
  EXPECT_THAT(message_of(writer.finish()), AllOf(HasSubstr("12 of 40"), HasSubstr("\"b\"")));
  EXPECT_THAT(message_of(writer.write(noise(9, 0))), HasSubstr("1 bytes more"));
  ASSERT_TRUE(writer.create(folder / "m.gguf", {}, decls));
  EXPECT_THAT(message_of(writer.finish()), AllOf(HasSubstr("0 of 40"), HasSubstr("\"a\"")));
  writer = GgufWriter{};
  EXPECT_EQ(folder.count(), 0u) << "nothing is left of what was given up";
}

}  // namespace
}  // namespace kvasir
