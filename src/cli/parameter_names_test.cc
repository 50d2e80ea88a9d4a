// Every flag of the table is a flag of the program; texts get flags instead of parameters.
#include "cli/parameter_names.h"

#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/program.h"

namespace kvasir::cli {
namespace {

TEST(ParameterNames, BecomeFlags) {
  EXPECT_EQ(with_flags("a smaller SessionOptions::ctx"), "a smaller --ctx");
  EXPECT_EQ(with_flags("SessionOptions::ctx = 512"), "--ctx 512");
  EXPECT_EQ(with_flags("SessionOptions::window or SessionOptions::ctx, not both"), "--window or --ctx, not both");
  EXPECT_EQ(with_flags("a narrower SessionOptions::kv_type_k and kv_type_v or"), "a narrower --kv-type or");
  EXPECT_EQ(with_flags("SessionOptions::kv_type_k = q8_0"), "--ctk q8_0");
  EXPECT_EQ(with_flags("another name, or SynthOptions::force = true to replace it"),
            "another name, or --force to replace it");
}

TEST(ParameterNames, OfSamplersFollowFromTheirRegistry) {
  EXPECT_EQ(with_flags("SamplingParams::top_k"), "--top-k");
  EXPECT_EQ(with_flags("64 with SamplingParams::repeat_penalty, all"), "64 with --repeat-penalty, all");
  EXPECT_EQ(with_flags("SamplingParams::temperature = 0"), "--temp 0");
  EXPECT_EQ(with_flags("SamplingParams::typical_p or SamplingParams::samplers"), "--typical or --samplers");
  for (const char* text : {"SamplingParams::nosuch", "SamplingParams::more", "SamplingParams::"})
    EXPECT_EQ(with_flags(text), text);
}

TEST(ParameterNames, OtherTextsStay) {
  for (const char* text : {"", "a prompt of 5 tokens", "SessionOptions::ctxs", "MySessionOptions::ctx", "x = 4",
                           "SessionOptions::salt = 1", "SessionOptions::"})
    EXPECT_EQ(with_flags(text), text);
}

TEST(ParameterNames, EveryPartOfAnErrorIsRewritten) {
  const Error error =
      with_flags(Error{Error::no_room, "BenchOptions::prompt = 0", "ModelOptions::ram", "a larger ModelOptions::ram"});
  EXPECT_EQ(error.kind, Error::no_room);
  EXPECT_EQ(error.message(), "--ram: -p 0 (try: a larger --ram)");
}

TEST(E2eParameterNames, EveryFlagIsOneOfTheProgram) {
  const e2e::Outcome listed = e2e::run_program({"--flags"});
  ASSERT_EQ(listed.code, 0) << listed.err;
  std::set<std::string> flags;
  const auto json = nlohmann::json::parse(listed.out);
  for (const auto& command : json["commands"])
    for (const auto& flag : command["flags"])
      for (const auto& name : flag["names"]) flags.insert(name.get<std::string>());
  for (const ParameterName& entry : kParameterNames)
    EXPECT_TRUE(entry.flag.empty() || flags.contains(std::string(entry.flag)))
        << entry.parameter << " is shown as " << entry.flag;
}

}  // namespace
}  // namespace kvasir::cli
