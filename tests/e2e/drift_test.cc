// The command drift from outside: its numbers compared with those of other commands, its table, CSV and figure.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <sstream>

#include <nlohmann/json.hpp>

#include "cache/kv_type.h"
#include "tests/support/program.h"

namespace kvasir::e2e {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::json;

Json json_of(const Arguments& arguments) { return Json::parse(expect_ok(run_program(arguments)), nullptr, false); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class E2eDrift : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (const char* name : {"fox", "bear", "hen", "cat", "dog", "owl"})
      text += std::string("Once upon a time, a little ") + name + " sat under a big tree and ate a red apple. ";
    put(file(), text);
  }
  std::string file() const { return folder_ / "text"; }
  Arguments drift(const Arguments& more) const {
    Arguments arguments{"drift", "tales", "--file", file(), "--ctx", "32"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  TempFolder folder_;
};

TEST_F(E2eDrift, JsonHasEveryNameAndType) {
  const Json json = json_of(drift({"--chunks", "1", "--json"}));
  EXPECT_EQ(json["model"], "tales");
  EXPECT_EQ(json["windows"], 1);
  EXPECT_EQ(json["scored"], 15);
  EXPECT_GE(json["tokens"], 64);
  EXPECT_EQ(json["kv_bytes_per_token_f32"], 2 * 6 * 64 * 4) << "K and V, 6 layers, 2 heads of 32, f32";
  ASSERT_EQ(json["rows"].size(), 3 * (kv_types().size() - 1));
  for (const Json& row : json["rows"]) {
    for (const char* name : {"max_delta_logit", "mean_delta_logit", "mean_kl", "max_kl", "perplexity"})
      EXPECT_GT(row[name], 0) << name << " of " << row["kv_type_k"] << " " << row["kv_type_v"];
    EXPECT_LT(row["kv_bytes_per_token"], json["kv_bytes_per_token_f32"]);
    EXPECT_LE(row["top1_agreement"], 1);
    EXPECT_TRUE(row.contains("perplexity_change"));
    EXPECT_EQ(row["saturated"], 0);
  }
}

TEST_F(E2eDrift, PerplexityIsThatOfPerplexity) {
  const Json json = json_of(drift({"--types", "q8_0", "--json"}));
  const auto measured = [&](const char* k, const char* v) {
    return json_of({"perplexity", "tales", "-f", file(), "-c", "32", "-ctk", k, "-ctv", v, "--json"})["perplexity"];
  };
  EXPECT_EQ(json["perplexity_f32"], measured("f32", "f32"));
  ASSERT_EQ(json["rows"].size(), 3u);
  EXPECT_EQ(json["rows"][0]["perplexity"], measured("q8_0", "q8_0"));
  EXPECT_EQ(json["rows"][1]["perplexity"], measured("q8_0", "f32"));
  EXPECT_EQ(json["rows"][2]["perplexity"], measured("f32", "q8_0"));
  for (const Arguments& way : {Arguments{"--threads", "1"}, {"--prefill-chunk", "5"}, {"--cache", "dense"}}) {
    Arguments arguments = drift({"--types", "q8_0", "--json"});
    arguments.insert(arguments.end(), way.begin(), way.end());
    EXPECT_EQ(json_of(arguments)["rows"], json["rows"]) << testing::PrintToString(way);
  }
}

TEST_F(E2eDrift, PrintsATable) {
  const auto lines = lines_of(expect_ok(run_program(drift({"--types", "f16,q4_0h", "--chunks", "1"}))));
  ASSERT_EQ(lines.size(), 9u) << "a head, f32, six rows, what was read";
  size_t at = 0;
  for (const char* column :
       {"K", "V", "B/token", "max |", "mean |", "mean KL", "max KL", "top-1", "perplexity", "change", "saturated"}) {
    const size_t found = lines[0].find(column, at);
    ASSERT_NE(found, std::string::npos) << column << " in " << lines[0];
    at = found + std::strlen(column);
  }
  EXPECT_THAT(lines[1], testing::StartsWith("f32    f32        3,072 "));
  EXPECT_THAT(lines[2], testing::StartsWith("f16    f16        1,536 "));
  EXPECT_THAT(lines[6], testing::StartsWith("q4_0h  f32    "));
  EXPECT_THAT(lines[7], testing::StartsWith("f32    q4_0h  "));
  for (size_t i = 2; i < 8; ++i) {
    EXPECT_EQ(lines[i].size(), lines[1].size()) << lines[i];
    EXPECT_THAT(lines[i], testing::EndsWith(" 0")) << "nothing saturates";
  }
  EXPECT_THAT(lines[8], testing::StartsWith("15 tokens scored in 1 windows of 32;"));
}

TEST_F(E2eDrift, WritesCsvAndAFigure) {
  const std::string csv = folder_ / "drift.csv", svg = folder_ / "it's drift.svg";
  const Json json = json_of(drift({"--types", "q8_0,q4_0", "--csv", csv, "--svg", svg, "--json"}));
  const auto lines = lines_of(slurp(csv));
  ASSERT_EQ(lines.size(), 9u) << "a title, names, f32, six rows";
  EXPECT_THAT(lines[0], testing::StartsWith("# KV drift of tales over "));
  EXPECT_THAT(lines[1], testing::StartsWith("# kv_type_k,kv_type_v,kv_bytes_per_token,"));
  EXPECT_THAT(lines[2], testing::StartsWith("f32,f32,3072,0,0,0,0,1,"));
  for (size_t i = 0; i < 6; ++i) {
    std::stringstream in(lines[3 + i]);
    std::vector<std::string> cells;
    for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
    ASSERT_EQ(cells.size(), 11u) << lines[3 + i];
    const Json& row = json["rows"][i];
    EXPECT_EQ(cells[0], row["kv_type_k"]);
    EXPECT_EQ(cells[1], row["kv_type_v"]);
    EXPECT_EQ(std::stod(cells[5]), row["mean_kl"].get<double>());
    EXPECT_EQ(std::stod(cells[9]), row["perplexity_change"].get<double>());
  }
  const std::string figure = slurp(svg);
  for (const char* text : {"KV drift of tales", "K and V", "K alone", "V alone", ">q8_0<", ">q4_0<", "nats"})
    EXPECT_THAT(figure, testing::HasSubstr(text));
}

TEST_F(E2eDrift, RefusesInALine) {
  const auto refused = [&](const Arguments& more, std::string_view needle) {
    expect_refused(run_program(drift(more)), needle);
  };
  refused({"--types", "q77"}, "q77");
  refused({"--types", "f32"}, "f32 is what the others are compared with");
  refused({"--types", "f16,f16"}, "twice");
  refused({"--chunks", "-1"}, "-1");
  refused({"--csv", folder_ / "absent" / "x.csv"}, "does not exist");
  refused({"--svg", folder_.path()}, "is a folder");
  refused({"--kv-type", "f16"}, "--kv-type");
  refused({"-ctk", "f16"}, "--ctk");
  expect_refused(run_program({"drift", "tales", "--file", file(), "--ctx", "4096"}), "4096");
  expect_refused(run_program({"drift", "tales", "--file", folder_ / "none"}), "none");
  expect_refused(run_program({"drift", "tales"}), "--file");
}

}  // namespace
}  // namespace kvasir::e2e
