// kvasir quantize at the command line.
#include <nlohmann/json.hpp>

#include "tests/support/program.h"

namespace kvasir::e2e {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

TEST(E2eQuantize, WritesAFileThatRuns) {
  const TempFolder folder;
  const std::string out = (folder / "t.gguf").string();
  const Outcome made = run_program({"quantize", "tales", out, "--type", "q4_k", "--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  const Json json = Json::parse(made.out);
  for (const char* name : {"out", "type", "parameters", "file_bytes", "types", "notes"})
    EXPECT_TRUE(json.contains(name)) << name;
  EXPECT_EQ(json["file_bytes"], fs::file_size(out));
  EXPECT_THAT(made.err, HasSubstr("note: attn_q.weight: rows of 192"));
  const Outcome ran = run_program({"run", out, "-p", "Once upon a time", "-n", "4", "--greedy"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("Once upon a time"));
}

TEST(E2eQuantize, TheReceiptStays) {
  const TempFolder folder;
  const std::string out = (folder / "t.gguf").string();
  const Outcome made = run_program({"quantize", "tales", out, "--type", "bf16"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("3,148,224 parameters"), HasSubstr("bf16")));
  const auto receipt = [](const std::string& model) {
    const Outcome ran = run_program({"run", model, "-p", "The king", "-n", "8", "--greedy", "--json"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return Json::parse(ran.out)["receipt"].get<std::string>();
  };
  EXPECT_EQ(receipt(out), receipt("tales"));
}

TEST(E2eQuantize, BadInputIsOneLine) {
  const TempFolder folder;
  const auto refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "quantize");
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.command;
    return outcome.err;
  };
  const std::string out = (folder / "t.gguf").string();
  EXPECT_THAT(refused({"tales", out, "--type", "q9"}), HasSubstr("q8_0"));
  EXPECT_THAT(refused({"tales", out}), HasSubstr("--type"));
  put(out, "x");
  EXPECT_THAT(refused({"tales", out, "--type", "f16"}), HasSubstr("--force"));
}

}  // namespace
}  // namespace kvasir::e2e
