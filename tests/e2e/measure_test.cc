// The commands that measure, from outside: perplexity and bench.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include <nlohmann/json.hpp>

#include "tests/support/program.h"

namespace kvasir::e2e {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::json;

Json json_of(const Arguments& arguments, const How& how = {}) {
  return Json::parse(expect_ok(run_program(arguments, how)), nullptr, false);
}

// ---- perplexity ---------------------------------------------------------------------------------------------------

std::string some_text() {
  std::string text;
  for (const char* name : {"fox", "bear", "hen", "cat", "dog", "owl"})
    text += std::string("Once upon a time, a little ") + name +
            " lived near the river. It liked to swim and play with its friends. One day the sun was hot, and the " +
            name + " sat under a big tree and ate a red apple. ";
  return text;
}

/// exp of the mean nll of the second half of each window, from the logits that the `logits` command writes.
double from_logits(const std::string& model, const std::vector<int>& ids, size_t ctx, const fs::path& scratch) {
  double sum = 0;
  size_t scored = 0;
  for (size_t from = 0; from + ctx <= ids.size(); from += ctx) {
    std::string list;
    for (size_t i = from; i < from + ctx; ++i) list += (i > from ? "," : "") + std::to_string(ids[i]);
    const Json json = json_of({"logits", model, "--ids", list, "-o", scratch, "--json"});
    const size_t vocab = json["vocab"];
    const std::string npy = slurp(scratch);
    const size_t data = npy.size() - ctx * vocab * sizeof(float);
    std::vector<float> row(vocab);
    for (size_t t = ctx / 2 + 1; t < ctx; ++t, ++scored) {
      std::memcpy(row.data(), npy.data() + data + (t - 1) * vocab * sizeof(float), vocab * sizeof(float));
      double all = 0;
      for (float x : row) all += std::exp(double{x});
      sum += std::log(all) - double{row[static_cast<size_t>(ids[from + t])]};
    }
  }
  return std::exp(sum / static_cast<double>(scored));
}

TEST(E2ePerplexity, IsWhatTheLogitsSay) {
  const TempFolder folder;
  put(folder / "text", some_text());
  const Json json = json_of({"perplexity", "tales", "--file", folder / "text", "--ctx", "48", "--json"});
  const std::vector<int> ids = json_of({"tokenize", "tales", some_text(), "--json"})["ids"];
  ASSERT_GE(ids.size(), 96u);
  const double expected = from_logits("tales", ids, 48, folder / "l.npy");
  EXPECT_NEAR(json["perplexity"].get<double>(), expected, 1e-9 * expected);
  EXPECT_NEAR(json["nll"].get<double>(), std::log(expected), 1e-9);
  EXPECT_GT(json["standard_error"], 0);
  EXPECT_EQ(json["tokens"], ids.size());
  EXPECT_EQ(json["windows"], ids.size() / 48);
  EXPECT_EQ(json["ctx"], 48);
  EXPECT_EQ(json["scored_tokens"], ids.size() / 48 * 23);
  EXPECT_EQ(json["kv_type_k"], "f32");
  EXPECT_GT(json["seconds"], 0);
  for (const Arguments& way : {Arguments{"--threads", "1"}, {"--prefill-chunk", "5"}, {"--cache", "dense"}}) {
    Arguments arguments{"perplexity", "tales", "-f", folder / "text", "-c", "48", "--json"};
    arguments.insert(arguments.end(), way.begin(), way.end());
    EXPECT_EQ(json_of(arguments)["nll"], json["nll"]) << testing::PrintToString(way);
  }
}

// If the vocabulary has BOS, every window starts with it.
TEST(E2ePerplexity, EveryWindowBeginsTheText) {
  if (outside_data().empty()) GTEST_SKIP() << "outside data folder is absent";
  const std::string model = outside_data() / "models/stories260K/stories260K.bin";
  const TempFolder folder;
  put(folder / "text", some_text());
  std::vector<int> ids = json_of({"tokenize", model, some_text(), "--json"})["ids"];
  ASSERT_EQ(ids[0], 1);
  ASSERT_GE(ids.size(), 128u);
  for (size_t i = 0; i < ids.size(); i += 64) ids[i] = 1;
  const Json json = json_of({"perplexity", model, "--file", folder / "text", "--ctx", "64", "--json"});
  const double expected = from_logits(model, ids, 64, folder / "l.npy");
  EXPECT_NEAR(json["perplexity"].get<double>(), expected, 1e-9 * expected);
}

TEST(E2ePerplexity, PrintsItAndNoBarIntoAPipe) {
  const TempFolder folder;
  put(folder / "text", some_text());
  const std::string text =
      expect_ok(run_program({"perplexity", "tales", "-f", folder / "text", "-c", "48", "--chunks", "2"}));
  EXPECT_THAT(text, testing::MatchesRegex("perplexity [0-9.]+ ± [0-9.]+\n46 tokens scored in 2 windows of 48; .*\n"));
}

TEST(E2ePerplexity, RefusesInALine) {
  const TempFolder folder;
  put(folder / "text", "Once upon a time");
  put(folder / "empty", "");
  const auto refused = [&](const Arguments& more, std::string_view needle) {
    Arguments arguments{"perplexity", "tales"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_refused(run_program(arguments), needle);
  };
  refused({"--file", folder / "text"}, "a window takes 512");
  refused({"--file", folder / "text", "--ctx", "2"}, "window of 2");
  refused({"--file", folder / "text", "--ctx", "100000"}, "100000");
  refused({"--file", folder / "text", "--ctx", "3", "--chunks", "-2"}, "-2");
  refused({"--file", folder / "text", "--kv-type", "q77"}, "q77");
  refused({"--file", folder / "empty"}, "empty");
  refused({"--file", folder / "absent"}, "absent");
  refused({}, "--file");
}

// ---- bench --------------------------------------------------------------------------------------------------------

TEST(SlowE2eBench, JsonHasEveryName) {
  const Json json = json_of({"bench", "tales", "-p", "16", "-n", "4", "-d", "40", "-r", "1", "-t", "1,2", "--json"});
  EXPECT_EQ(json["verified"], true);
  for (const char* name : {"cpu", "read_bytes_s", "flops", "int8_ops"}) EXPECT_TRUE(json.contains(name)) << name;
  ASSERT_EQ(json["tests"].size(), 4u);
  for (const Json& test : json["tests"])
    for (const char* name : {"name", "threads", "batch", "tok_s_median", "tok_s_min", "tok_s_max", "tok_s_mean",
                             "tok_s_stddev", "fraction_of_limit"})
      EXPECT_TRUE(test.contains(name)) << name;
  EXPECT_EQ(json["tests"][0]["name"], "pp16@d40");
  EXPECT_EQ(json["tests"][3]["name"], "tg4@d40");
  EXPECT_EQ(json["tests"][3]["threads"], 2);
}

TEST(SlowE2eBench, TableHasLlamaBenchsColumns) {
  const std::string text =
      expect_ok(run_program({"bench", "tales", "-p", "16", "-n", "4", "-d", "40", "-r", "2", "-t", "1"}));
  std::stringstream lines(text);
  std::string head, line;
  std::getline(lines, head);
  size_t at = 0;
  for (const char* column : {"model", "size", "params", "backend", "threads", "test", "t/s"}) {
    const size_t found = head.find(std::string(" ") + column + " ", at);
    ASSERT_NE(found, std::string::npos) << column << " in " << head;
    at = found;
  }
  const auto bars = std::count(head.begin(), head.end(), '|');
  std::vector<std::string> rows;
  while (std::getline(lines, line) && line.starts_with("|")) {
    EXPECT_EQ(std::count(line.begin(), line.end(), '|'), bars);
    rows.push_back(line);
  }
  ASSERT_EQ(rows.size(), 3u) << "a rule and two tests";
  EXPECT_THAT(rows[1], testing::HasSubstr("| tales bf16 "));
  EXPECT_THAT(rows[1], testing::HasSubstr(" pp16 @ d40 |"));
  EXPECT_THAT(rows[2], testing::HasSubstr(" tg4 @ d40 |"));
  EXPECT_THAT(rows[2], testing::HasSubstr(" ± "));
}

TEST(E2eBench, LimitsNeedNoModel) {
  const Json json = json_of({"bench", "--limits", "-t", "1,2", "--json"});
  ASSERT_EQ(json["limits"].size(), 2u);
  EXPECT_EQ(json["limits"][1]["threads"], 2);
  EXPECT_GT(json["limits"][0]["read_bytes_s"], 0);
  EXPECT_GT(json["limits"][0]["flops"], 0);
  EXPECT_GT(json["limits"][0]["int8_ops"], 0);
  EXPECT_TRUE(json["cpu_name"].is_string());
  EXPECT_LE(json["l1_bytes"], json["l2_bytes"]);
  EXPECT_TRUE(json["l3_bytes"].is_number_unsigned());
  EXPECT_THAT(expect_ok(run_program({"bench", "--limits", "-t", "1"})), testing::HasSubstr("GB/s read"));
  expect_refused(run_program({"bench", "--limits", "-t", "0"}), "0");
}

// ---- bench --serve ------------------------------------------------------------------------------------------------

// Two turns of a conversation, a request with choices, one whose client leaves, and one that comes late.
const char* const kTrace = R"({"name": "a", "prompt": [{"tokens": 100, "salt": 1}], "max_tokens": 10, "owner": "x"}
{"name": "b", "prompt": [{"tokens": 80, "salt": 1}, {"tokens": 20, "salt": 2}], "max_tokens": 6, "choices": 3}
{"name": "c", "prompt": [{"tokens": 30, "salt": 3}], "max_tokens": 100, "cancel_after": 4}
{"name": "a2", "after": "a", "think": 0.01, "continues": true, "prompt": [{"tokens": 5, "salt": 4}], "max_tokens": 7}
{"name": "d", "at": 0.05, "prompt": [{"tokens": 1, "salt": 5}], "max_tokens": 1}
)";

TEST(E2eServeBench, ReplaysATrace) {
  const TempFolder folder;
  put(folder / "t.jsonl", kTrace);
  const Json json = json_of({"bench", "tales", "--serve", folder / "t.jsonl", "-t", "2", "--json"});
  EXPECT_EQ(json["requests"], 5);
  EXPECT_EQ(json["finished"], 4);
  EXPECT_EQ(json["cancelled"], 1);
  EXPECT_EQ(json["failed"], 0);
  const int reused = json["prompt_tokens_reused"], computed = json["prompt_tokens_computed"];
  EXPECT_EQ(reused + computed, 100 + 100 + 30 + 115 + 1);
  EXPECT_GE(reused, 64 + 109) << "what b has of a, and what a2 has of a";
  EXPECT_GE(json["tokens_generated"], 10 + 3 * 6 + 4 + 7 + 1);
  EXPECT_GT(json["first_token_s"]["p50"], 0);
  EXPECT_GT(json["first_token_s_of_owner"]["x"]["p50"], 0);
  EXPECT_GT(json["peak_kv_bytes"], 0);
  const std::string text = expect_ok(run_program({"bench", "tales", "--serve", folder / "t.jsonl"}));
  EXPECT_NE(text.find("first token"), std::string::npos) << text;
}

TEST(E2eServeBench, RefusesWhatIsNoTrace) {
  const TempFolder folder;
  const std::pair<const char*, const char*> kWrong[] = {
      {"Once\n", "t.jsonl:1"},
      {"{\"name\": \"a\"}\n", "t.jsonl:1"},
      {"{\"name\": \"a\", \"prompt\": [], \"after\": \"b\"}\n", "'b'"},
      {"{\"name\": \"a\", \"prompt\": [{\"tokens\": 5, \"salt\": 1}]}\n{\"name\": \"a\", \"prompt\": []}\n",
       "t.jsonl:2"}};
  for (const auto& [text, says] : kWrong) {
    put(folder / "t.jsonl", text);
    expect_refused(run_program({"bench", "tales", "--serve", folder / "t.jsonl"}), says);
  }
}

}  // namespace
}  // namespace kvasir::e2e
