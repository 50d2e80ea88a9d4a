// kvasir tokenize from outside: empty text, and the tokenizer keys of a GGUF file.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/gguf_bytes.h"
#include "tests/support/program.h"

namespace kvasir::e2e {
namespace {

using gguf_test::Bytes;
using gguf_test::head;
using Json = nlohmann::json;

// A vocabulary of a, b, ab and a BOS token.
Bytes vocabulary(uint64_t more) {
  Bytes b = head(0, 6 + more);
  b.array("tokenizer.ggml.tokens", GgufType::string, 4).string("a").string("b").string("ab").string("<|e|>");
  b.array("tokenizer.ggml.merges", GgufType::string, 1).string("a b");
  b.text_entry("tokenizer.ggml.model", "gpt2").text_entry("tokenizer.ggml.pre", "gpt-2");
  b.array("tokenizer.ggml.token_type", GgufType::i32, 4).number(1).number(1).number(1).number(3);
  b.entry("tokenizer.ggml.bos_token_id", GgufType::u32, uint32_t{3});
  return b;
}

class E2eRegressTokenize : public testing::Test {
 protected:
  std::string file(const Bytes& bytes) const {
    put(folder_ / "t.gguf", bytes.data);
    return (folder_ / "t.gguf").string();
  }
  TempFolder folder_;
};

TEST_F(E2eRegressTokenize, NothingGivesNoIdsOrBos) {
  EXPECT_EQ(Json::parse(expect_ok(run_program({"tokenize", "tales", "", "--json"})))["ids"], Json::array());
  EXPECT_EQ(Json::parse(expect_ok(run_program({"tokenize", "tales", "--stdin", "--json"})))["ids"], Json::array());
  EXPECT_EQ(expect_ok(run_program({"tokenize", "tales", ""})), "");
  const std::string with_bos = file(vocabulary(1).entry("tokenizer.ggml.add_bos_token", GgufType::boolean, uint8_t{1}));
  EXPECT_EQ(Json::parse(expect_ok(run_program({"tokenize", with_bos, "", "--json"})))["ids"], Json::array({3}));
  for (const char* nothing : {"", "--stdin"})
    EXPECT_EQ(Json::parse(expect_ok(run_program({"tokenize", with_bos, nothing, "--no-bos", "--json"})))["ids"],
              Json::array());
}

TEST_F(E2eRegressTokenize, ATokenAfterTheTextIsRefusedByItsKey) {
  const Bytes b = vocabulary(1).entry("tokenizer.ggml.add_eos_token", GgufType::boolean, uint8_t{1});
  expect_refused(run_program({"tokenize", file(b), "ab"}), "tokenizer.ggml.add_eos_token");
}

TEST_F(E2eRegressTokenize, AnIdOfMinusOneIsNoted) {
  const Bytes b = vocabulary(1).entry("tokenizer.ggml.eos_token_id", GgufType::u32, uint32_t{0xffffffff});
  const Outcome outcome = run_program({"tokenize", file(b), "ab", "--json"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(Json::parse(outcome.out)["ids"], Json::array({2}));
  EXPECT_THAT(outcome.err,
              testing::AllOf(testing::StartsWith("note: "), testing::HasSubstr("tokenizer.ggml.eos_token_id")));
}

}  // namespace
}  // namespace kvasir::e2e
