// Flags that contradict each other, overflow or are empty. They used to be accepted silently.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <kvasir/bench.h>
#include <kvasir/plan.h>
#include <kvasir/verify.h>

#include "lab/synth.h"
#include "tests/support/engines.h"
#include "tests/support/program.h"

namespace kvasir::e2e {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::json;

Json json_of(const Arguments& arguments, const How& how = {}) {
  return Json::parse(expect_ok(run_program(arguments, how)), nullptr, false);
}

TEST(SlowE2eRegressFlags, APromptGivenTwiceIsRefused) {
  const TempFolder folder;
  const std::string file = folder / "h.txt";
  put(file, "hello\n");
  for (const char* command : {"run", "logits", "embed"}) {
    expect_refused(run_program({command, "tales", "-p", "Once", "-f", file}), "-p: -f is given too");
    expect_refused(run_program({command, "tales", "--ids", "1,2", "-f", file}), "-f: --ids is given too");
    expect_refused(run_program({command, "tales", "--prompt", "Once", "--ids", "1,2"}), "-p: --ids is given too");
    expect_refused(run_program({command, "tales"}), "-p: nothing is given");
  }
  for (const char* other : {"-p", "-f", "--ids"})
    expect_refused(run_program({"run", "tales", "--prompts", file, other,
                                std::string(other) == "-p"   ? "x"
                                : std::string(other) == "-f" ? file
                                                             : "1"}),
                   "--prompts is given too");
}

TEST(SlowE2eRegressFlags, ATypeOfBothAndOfOneAreNotMixed) {
  for (const char* command : {"run", "logits", "embed", "chat", "plan", "bench", "verify"})
    for (const char* one : {"-ctk", "-ctv", "--cache-type-k"}) {
      expect_refused(run_program({command, "tales", "--kv-type", "q8_0", one, "f16"}), "--kv-type");
      expect_refused(run_program({command, "tales", one, "f16", "--kv-type", "q8_0"}), "--kv-type");
    }
}

TEST(SlowE2eRegressFlags, AnEmptyBudgetIsNoBudget) {
  for (const char* flag : {"--ram", "--kv-ram"}) {
    const std::string expected = std::string("kvasir: ") + flag + ": \"\" is not a size";
    expect_refused(run_program({"run", "tales", "-p", "Once", "-n", "2", flag, ""}), expected);
    expect_refused(run_program({"run", "tales", "-p", "Once", "-n", "2", std::string(flag) + "="}), expected);
    expect_refused(run_program({"plan", "tales", flag, ""}), expected);
  }
}

TEST(SlowE2eRegressFlags, VerifyWithNoSequencesEnds) {
  const Arguments verify{"verify",    "tales", "--count",  "1", "-n",      "1",
                         "--threads", "1",     "--chunks", "0", "--cache", "grow"};
  for (const char* batches : {"0", "-1", "1,0"}) {
    Arguments arguments = verify;
    arguments.insert(arguments.end(), {"--batches", batches});
    expect_refused(run_program(arguments), "sequences (try: 1 or more)");
  }
  expect_refused(run_program({"verify", "tales", "--batches", "0"}), "kvasir: --batches: 0 sequences (try: 1 or more)");
}

TEST(SlowE2eRegressFlags, NumbersThatMeanNothingAreRefused) {
  expect_refused(run_program({"bench", "tales", "--prefix", "-1"}), "--prefix: -1 tokens");
  expect_refused(run_program({"bench", "tales", "-p", "0", "-n", "0"}), "-p 0 and -n 0");
  expect_refused(run_program({"logits", "tales", "-p", "x", "--top", "-1"}), "--top: -1 tokens");
  expect_refused(run_program({"plan", "tales", "--prefill-chunk", "-1"}), "--prefill-chunk: -1 tokens");
  expect_refused(run_program({"run", "tales", "-p", "x", "--seed", "12345678901234567890123"}), "--seed");
  EXPECT_EQ(json_of({"run", "tales", "-p", "x", "-n", "1", "--json", "--seed", "18446744073709551615"})["seed"],
            UINT64_MAX);
}

TEST(SlowE2eRegressFlags, ATypeIsForABareConfig) {
  expect_refused(run_program({"plan", "tales", "--dtype", "nosuch"}), "\"nosuch\" is not a weight type");
  expect_refused(run_program({"plan", "tales", "--dtype", "f32"}), "tales has weights");
  const std::string config = KVASIR_SOURCE_DIR "/models/tales/config.json";
  const auto bytes = [&](const char* type) {
    return json_of({"plan", config, "--dtype", type, "--json"})["weights_bytes"];
  };
  EXPECT_EQ(bytes("f32"), 2 * bytes("f16").get<int64_t>());
  EXPECT_EQ(bytes("float32"), bytes("f32"));
}

TEST(SlowE2eRegressFlags, AListLeavesTheModelAlone) {
  const TempFolder folder;
  put(folder / "t.txt", "Once upon a time there was a fox who lived in a wood and had a red ball.\n");
  EXPECT_EQ(json_of({"verify", "--threads", "1", "tales", "--chunks", "0", "--batches", "1", "--cache", "grow",
                     "--count", "1", "-n", "1", "--json"})["pass"],
            true);
  EXPECT_EQ(json_of({"drift", "--types", "q8_0", "tales", "-f", folder / "t.txt", "--ctx", "16", "--json"})["model"],
            "tales");
  EXPECT_EQ(json_of({"bench", "-p", "8", "-n", "0", "-r", "1", "-t", "1", "tales", "--json"})["verified"], true);
  expect_refused(run_program({"bench", "-t", "1", "2", "tales"}), "bench");
}

TEST(SlowE2eRegressFlags, AFileCalledDashIsStdin) {
  How how;
  how.input = "Once upon a time";
  const Arguments rest{"-n", "3", "--greedy", "--json"};
  const auto with = [&](Arguments arguments) {
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    return json_of(arguments, how);
  };
  EXPECT_EQ(with({"run", "tales", "-f", "-"})["receipt"], with({"run", "tales", "-p", how.input})["receipt"]);
  EXPECT_EQ(with({"run", "tales", "--prompts", "-"})["generations"][0]["receipt"],
            with({"run", "tales", "-p", how.input})["receipt"]);
  EXPECT_EQ(json_of({"logits", "tales", "-f", "-", "--json"}, how),
            json_of({"logits", "tales", "-p", how.input, "--json"}));
}

TEST(SlowE2eRegressFlags, PromptsTakeLinesOfWindows) {
  const TempFolder folder;
  put(folder / "crlf", "Once upon a time\r\n\r\nThe dog\r\n");
  put(folder / "lf", "Once upon a time\nThe dog\n");
  const auto answers = [&](const char* file) {
    Json all = json_of(
        {"run", "tales", "--prompts", folder / file, "-n", "3", "--greedy", "--seed", "1", "--json"})["generations"];
    for (Json& one : all) one.erase("stats");
    return all;
  };
  const Json answered = answers("crlf");
  EXPECT_EQ(answered.size(), 2u);
  EXPECT_EQ(answered, answers("lf"));
  EXPECT_EQ(answered[0]["prompt"], "Once upon a time");
}

TEST(SlowE2eRegressFlags, WhatWouldBeUnusedIsRefused) {
  const TempFolder folder;
  const std::string tokenizer = KVASIR_SOURCE_DIR "/models/tales/tokenizer.json", out = folder / "o";
  const std::vector<std::pair<Arguments, const char*>> cases{
      {{"run", "tales", "-p", "x", "--greedy", "--temp", "0.7"}, "--greedy: --temp is given too"},
      {{"run", "tales", "-p", "x", "--sinks", "2"}, "--sinks: it changes nothing"},
      {{"run", "tales", "-p", "x", "--sinks", "2", "--window", "0"}, "--sinks: it changes nothing"},
      {{"run", "tales", "-p", "x", "--sinks", "2", "--on-full", "stop"}, "--sinks: it changes nothing"},
      {{"run", "tales", "-p", "x", "--batch", "2"}, "--batch: it changes nothing without --prompts"},
      {{"run", "tales", "-p", "x", "--repeat-last-n", "5"}, "--repeat-last-n: it has no effect"},
      {{"run", "tales", "-p", "x", "--on-full", "slide", "--ctx", "5000"}, "this model allows 1..1024"},
      {{"run", "tales", "-p", "x", "--on-full", "slide", "--ctx", "64", "--window", "30"}, "slides by itself"},
      {{"bench", "tales", "--limits"}, "--limits: MODEL is given too"},
      {{"bench", "--prefix", "20", "-t", "1,2"}, "--threads"},
      {{"bench", "tales", "--tokenizer", tokenizer}, "--tokenizer: it changes nothing"},
      {{"logits", "tales", "-p", "x", "--top", "2", "--out", out}, "--top: --out is given too"},
      {{"tokenize", "tales", "x", "--stdin"}, "TEXT: --stdin is given too"},
      {{"tokenize", "tales", "--stdin", "--ids", "1"}, "--stdin: --ids is given too"},
      {{"tokenize", "tales", "--ids", "1", "--no-bos"}, "--no-bos: --ids is given too"},
      {{"quantize", "tales", out, "--type", "q8_0", "--no-tokenizer", "--tokenizer", tokenizer}, "--no-tokenizer"},
      {{"run", "tales", "-p", "x", "-n", "3", "-n", "4"}, "-n: it is given 2 times: 3, 4"},
      {{"run", "tales", "-p", "x", "--model", "tales"}, "MODEL: it is given 2 times"}};
  for (const auto& [arguments, needle] : cases) expect_refused(run_program(arguments), needle);
  EXPECT_EQ(folder.count(), 0u);
  expect_ok(run_program({"run", "tales", "-p", "x", "-n", "1", "--greedy", "--temp", "0.0"}));
  expect_ok(run_program({"run", "tales", "-p", "x", "-n", "1", "--sinks", "2", "--on-full", "slide", "--greedy"}));
}

TEST(SlowE2eRegressFlags, BudgetsOfAPlanAreBothKept) {
  const auto ram = [](const Arguments& more) {
    Arguments arguments{"plan", "tales", "--ram", "200M", "--chat", "64", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_of(arguments)["ram"]["modes"][0];
  };
  // A sequence of 64 positions takes 2 x 6 layers x 64 x 2 heads of 32 x 4 B = 196,608 B; three of them fit 600 KiB.
  EXPECT_EQ(ram({"--kv-ram", "600K"})["users"], 3);
  EXPECT_GT(ram({})["users"], 3);
  EXPECT_LT(ram({"--kv-ram", "600K"})["positions"], ram({})["positions"]);
}

TEST(SlowE2eRegressFlags, ATokenizerHasToBelongToTheModelThatIsGiven) {
  const TempFolder folder;
  ASSERT_TRUE(synthesize({.shape = "tiny", .out = folder / "tiny", .seed = 1}));
  const std::string tales = KVASIR_SOURCE_DIR "/models/tales/tokenizer.json";
  EXPECT_EQ(json_of({"tokenize", "tales", "Hello", "--tokenizer", tales, "--json"}),
            json_of({"tokenize", "tales", "Hello", "--json"}));
  expect_refused(run_program({"tokenize", (folder / "tiny").string(), "Hello", "--tokenizer", tales}),
                 "tokenizer.json");
  expect_refused(run_program({"tokenize", "no-such-model", "Hello", "--tokenizer", tales}), "no-such-model");
}

// ---- the same in the library --------------------------------------------------------------------------------------

using engine_test::Opened;

template <class T>
void expect_error(const Result<T>& result, const std::string& where) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().where, where) << result.error().message();
}

TEST(RegressFlags, TheLibraryRefusesNumbersToo) {
  const Opened opened(tiny::llama(), {.threads = 1});
  const auto model = opened.shared();
  const auto verified = [&](auto change) {
    VerifyOptions o;
    o.prompts = {{1, 2, 3}};
    o.new_tokens = 2;
    change(o);
    return verify(model, o);
  };
  expect_error(verified([](VerifyOptions& o) { o.batches = {1, 0}; }), "VerifyOptions::batches");
  expect_error(verified([](VerifyOptions& o) { o.batches = {}; }), "VerifyOptions::batches");
  expect_error(verified([](VerifyOptions& o) { o.threads = {-1}; }), "VerifyOptions::threads");
  expect_error(verified([](VerifyOptions& o) { o.threads = {}; }), "VerifyOptions::threads");
  expect_error(verified([](VerifyOptions& o) { o.chunks = {-1}; }), "VerifyOptions::chunks");
  expect_error(verified([](VerifyOptions& o) { o.new_tokens = 0; }), "VerifyOptions::new_tokens");
  const auto benched = [&](auto change) {
    BenchOptions o;
    o.prompt = o.generate = 4;
    o.repeats = 1;
    o.threads = {1};
    change(o);
    return bench(model, o);
  };
  expect_error(benched([](BenchOptions& o) { o.prompt = o.generate = 0; }), "bench");
  expect_error(benched([](BenchOptions& o) { o.prompt = -1; }), "BenchOptions::prompt");
  expect_error(benched([](BenchOptions& o) { o.threads = {0}; }), "BenchOptions::threads");
  expect_error(benched([](BenchOptions& o) { o.batch = 0; }), "BenchOptions::batch");
  expect_error(benched([](BenchOptions& o) { o.repeats = 0; }), "BenchOptions::repeats");
  PrefixOptions prefix;
  prefix.shared = -1;
  expect_error(bench_prefix(model, prefix), "PrefixOptions::shared");
  expect_error(measure_steps(model, {}, 1, 0, 1), "measure_steps");
  PlanRequest request;
  request.prefill_chunk = -1;
  expect_error(plan(request), "PlanRequest::prefill_chunk");
  request = {};
  request.threads = -1;
  expect_error(plan(request), "PlanRequest::threads");
}

TEST(SlowE2eRegressFlags, AStopThatCannotBeIsRefused) {
  Opened opened(tiny::llama(), {.threads = 1});  // without a tokenizer
  GenerateOptions options = engine_test::greedy_tokens(2);
  for (const char* stop : {"", "x"}) {
    options.stop = {stop};
    Session session = opened.session();
    expect_error(generate(opened.engine(), session, tiny::ids(4), options), "GenerateOptions::stop");
  }
}

}  // namespace
}  // namespace kvasir::e2e
