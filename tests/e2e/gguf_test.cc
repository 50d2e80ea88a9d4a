// GGUF files at the command line: run, inspect and tokenize work; broken files are refused in one line.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/gguf_models.h"
#include "tests/support/program.h"

namespace kvasir::e2e {
namespace {

using gguf_test::Bytes;
using testing::AllOf;
using testing::HasSubstr;

class E2eGguf : public testing::Test {
 protected:
  std::string file(const Bytes& bytes, const char* name = "m.gguf") const {
    put(folder_ / name, bytes.data);
    return (folder_ / name).string();
  }

  TempFolder folder_;
};

// A vocabulary for the 50 ids of a tiny model: 49 characters from A on, and one pair.
Bytes with_vocabulary(Bytes more = {}) {
  more.text_entry("tokenizer.ggml.model", "gpt2").text_entry("tokenizer.ggml.pre", "gpt-2");
  more.array("tokenizer.ggml.tokens", GgufType::string, 50);
  for (int i = 0; i < 49; ++i) more.string(std::string(1, static_cast<char>('A' + i)));
  more.string("XY").array("tokenizer.ggml.merges", GgufType::string, 1).string("X Y");
  return tiny::llama_gguf(tiny::llama(), 0, more, 4);
}

TEST_F(E2eGguf, RunsFromATextAndFromIds) {
  const std::string model = file(with_vocabulary());
  const std::string text = expect_ok(run_program({"run", model, "-p", "ABC", "-n", "5", "--greedy", "--ignore-eos"}));
  EXPECT_GE(text.size(), 5u + 1) << text;
  const auto json = nlohmann::json::parse(
      expect_ok(run_program({"run", model, "--ids", "0,1,2", "-n", "5", "--greedy", "--ignore-eos", "--json"})));
  EXPECT_EQ("ABC" + json["text"].get<std::string>() + "\n", text);
  EXPECT_EQ(json["tokens"].size(), 5u);
  expect_ok(run_program({"plan", model, "--json"}));
}

TEST_F(E2eGguf, TokenizeNeedsNoWeights) {
  const std::string model = file(with_vocabulary());
  const auto json = nlohmann::json::parse(expect_ok(run_program({"tokenize", model, "HELLO", "--json"})));
  EXPECT_EQ(json["ids"], (std::vector<int>{7, 4, 11, 11, 14}));
  EXPECT_EQ(expect_ok(run_program({"tokenize", model, "--ids", "7,4,11,11,14"})), "HELLO\n");
  expect_refused(run_program({"tokenize", model, "az"}), "0x7A");
}

TEST_F(E2eGguf, InspectShowsMetadataAndTensors) {
  const std::string model = file(with_vocabulary());
  const std::string text = expect_ok(run_program({"inspect", model}));
  EXPECT_THAT(text, AllOf(HasSubstr("GGUF v3"), HasSubstr("llama.attention.head_count_kv"), HasSubstr("50 string"),
                          HasSubstr("blk.1.ffn_down.weight"), HasSubstr("[24, 40]"), HasSubstr("fingerprint")));
  const auto json = nlohmann::json::parse(expect_ok(run_program({"inspect", model, "--json"})));
  EXPECT_EQ(json["metadata"]["llama.rope.freq_base"]["value"], 1000.0);
  EXPECT_EQ(json["tensors"].size(), tiny::llama().tensors.size());
  EXPECT_EQ(json["fingerprint"].get<std::string>().size(), 32u);
  EXPECT_TRUE(json["reason"].is_null());
}

TEST_F(E2eGguf, InspectShowsOtherFormatsToo) {
  tiny::llama().write(folder_ / "model");
  const auto folder = nlohmann::json::parse(expect_ok(run_program({"inspect", folder_ / "model", "--json"})));
  EXPECT_EQ(folder["metadata"]["hidden_size"], 24);
  const auto file =
      nlohmann::json::parse(expect_ok(run_program({"inspect", folder_ / "model/model.safetensors", "--json"})));
  EXPECT_EQ(file["tensors"], folder["tensors"]);
  EXPECT_TRUE(file["fingerprint"].is_null());
}

using SlowE2eGguf = E2eGguf;
TEST_F(SlowE2eGguf, EveryCutIsRefusedInOneLine) {
  const std::string whole = with_vocabulary().data;
  for (size_t keep = 0; keep < whole.size(); keep += 1 + whole.size() / 37) {
    const std::string path = file({whole.substr(0, keep)}, "cut.gguf");
    expect_refused(run_program({"run", path, "-p", "A"}), "cut.gguf");
    expect_refused(run_program({"inspect", path}), "cut.gguf");
    expect_refused(run_program({"tokenize", path, "A"}), "cut.gguf");
  }
}

TEST_F(E2eGguf, WhatCannotRunYetIsNamed) {
  const auto refused = [&](const Bytes& bytes, std::string_view needle) {
    const std::string path = file(bytes);
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"run", path, "--ids", "1"}, {"plan", path}, {"bench", path}, {"verify", path}})
      expect_refused(run_program(arguments), needle);
    EXPECT_THAT(expect_ok(run_program({"inspect", path})), HasSubstr(needle)) << "and shown all the same";
  };
  refused(tiny::llama_gguf(tiny::llama(), 0, Bytes().text_entry("llama.rope.scaling.type", "xpos"), 1), "xpos");
  Bytes mamba = tiny::llama_gguf(tiny::llama());
  mamba.data.replace(mamba.data.find("llama"), 5, "mamba");
  refused(mamba, "mamba");
  Bytes iq = gguf_test::head(1, 1).text_entry("general.architecture", "llama");
  iq.tensor("token_embd.weight", {256, 2}, 16, 0).data_section(132);
  refused(iq, "llama.block_count");
}

TEST_F(E2eGguf, ATokenizerThatIsUnknownIsRefusedByName) {
  Bytes more;
  more.text_entry("tokenizer.ggml.model", "gpt2").text_entry("tokenizer.ggml.pre", "made-up");
  more.array("tokenizer.ggml.tokens", GgufType::string, 3).string("a").string("b").string("ab");
  more.array("tokenizer.ggml.merges", GgufType::string, 1).string("a b");
  more.text_entry("general.architecture", "llama");
  Bytes bytes = gguf_test::head(0, 5);
  bytes.data += more.data;
  const std::string path = file(bytes);
  expect_refused(run_program({"tokenize", path, "A"}), "made-up");
}

}  // namespace
}  // namespace kvasir::e2e
