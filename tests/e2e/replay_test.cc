// One trace, replayed in process and over HTTP: both must do the same work, by their counts.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/child.h"

namespace kvasir::e2e {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::json;

class Served {
 public:
  explicit Served(Arguments more = {}) : child_(arguments(std::move(more)), false) {
    const std::string line = child_.wait_for("Ctrl-C");
    const size_t at = line.find("http://");
    url_ = at == line.npos ? "" : line.substr(at, line.find(',', at) - at);
  }
  ~Served() {
    child_.interrupt();
    EXPECT_EQ(child_.end(), 0);
  }
  const std::string& url() const { return url_; }

 private:
  static Arguments arguments(Arguments more) {
    Arguments all = {"serve", "tales", "--port", "0", "--quiet", "--threads", "2"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Child child_;
  std::string url_;
};

Json in_process(const std::string& trace) {
  return Json::parse(expect_ok(run_program({"bench", "tales", "--serve", trace, "--threads", "2", "--json"})));
}

Json over_http(const std::string& trace, const Served& server) {
  return Json::parse(expect_ok(run_program({"bench", "--serve", trace, "--url", server.url(), "--json"})));
}

void expect_same_work(const Json& a, const Json& b) {
  for (const char* key : {"requests", "finished", "failed", "cancelled", "tokens_generated"})
    EXPECT_EQ(a[key], b[key]) << key;
  const auto prompts = [](const Json& r) {
    return r["prompt_tokens_reused"].get<int>() + r["prompt_tokens_computed"].get<int>();
  };
  EXPECT_EQ(prompts(a), prompts(b));
  for (const auto& [key, value] : a.items()) EXPECT_TRUE(b.contains(key)) << key;
  for (const auto& [owner, times] : a["first_token_s_of_owner"].items())
    EXPECT_GT(b["first_token_s_of_owner"][owner]["p50"], 0) << owner;
  for (const char* key : {"wall_s", "generated_tok_s"}) EXPECT_GT(b[key], 0) << key;
  for (const char* key : {"passes", "pass_s", "peak_kv_bytes", "tokens_guessed", "preemptions"})
    EXPECT_TRUE(a[key].is_number() && b[key].is_null()) << key;
}

TEST(E2eReplay, HasTheCountsOfTheReplayInProcess) {
  const TempFolder folder;
  put(folder / "t.jsonl", R"({"name": "a", "prompt": [{"tokens": 100, "salt": 1}], "max_tokens": 10, "owner": "x"}
{"name": "b", "prompt": [{"tokens": 70, "salt": 1}, {"tokens": 30, "salt": 2}], "max_tokens": 6, "choices": 3, "at": 0.01}
{"name": "a2", "after": "a", "think": 0.01, "continues": true, "prompt": [{"tokens": 5, "salt": 4}], "max_tokens": 7}
{"name": "a3", "after": "a2", "continues": true, "prompt": [{"tokens": 2, "salt": 5}], "max_tokens": 3, "priority": 2}
)");
  const Served server;
  const Json here = in_process(folder / "t.jsonl"), there = over_http(folder / "t.jsonl", server);
  expect_same_work(here, there);
  EXPECT_EQ(there["tokens_generated"], 10 + 3 * 6 + 7 + 3);
  EXPECT_EQ(there["prompt_tokens_reused"].get<int>() + there["prompt_tokens_computed"].get<int>(),
            100 + 100 + 115 + 124);
  EXPECT_GE(there["prompt_tokens_reused"], 109 + 121) << "the server has its own answers again";
}

TEST(E2eReplay, CancelsAndFailuresAreCounted) {
  const TempFolder folder;
  put(folder / "t.jsonl",
      R"({"name": "long", "prompt": [{"tokens": 30, "salt": 3}], "max_tokens": 900, "cancel_after": 4}
{"name": "never", "prompt": [{"tokens": 3000, "salt": 3}], "max_tokens": 4}
{"name": "well", "at": 0.05, "prompt": [{"tokens": 3, "salt": 3}], "max_tokens": 4}
)");
  const Served server;
  const Outcome outcome = run_program({"bench", "--serve", folder / "t.jsonl", "--url", server.url(), "--json"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.err.find("a request failed: 'never': status 400: "), std::string::npos) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["cancelled"], 1);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["finished"], 1);
  EXPECT_LT(json["tokens_generated"], 900);
  const std::string text = run_program({"bench", "--serve", folder / "t.jsonl", "--url", server.url()}).out;
  EXPECT_NE(text.find("1 finished, 1 cancelled, 1 failed"), std::string::npos) << text;
  EXPECT_EQ(text.find("passes"), std::string::npos) << text;
}

TEST(E2eReplay, TheModelIsTheServersOrTheOneAskedFor) {
  const TempFolder folder;
  put(folder / "t.jsonl", "{\"name\": \"a\", \"prompt\": [{\"tokens\": 3, \"salt\": 1}], \"max_tokens\": 2}\n");
  const Served server({"--strict-model"});
  const Arguments base = {"bench", "--serve", folder / "t.jsonl", "--url", server.url()};
  const auto with = [&](Arguments more) {
    more.insert(more.begin(), base.begin(), base.end());
    return run_program(more);
  };
  expect_ok(with({"--served-model", "tales", "--n-vocab", "9"}));
  expect_refused(with({"--served-model", "other"}), "--n-vocab");
  expect_refused(with({"--served-model", "other", "--n-vocab", "9"}), "status 404");
  expect_refused(with({"--n-vocab", "2000000000"}), "every request failed");
  expect_refused(run_program({"bench", "--serve", folder / "t.jsonl", "--url", "https://127.0.0.1"}), "https");
  expect_refused(run_program({"bench", "--serve", folder / "t.jsonl", "--url", "http://127.0.0.1:1"}),
                 "cannot connect");
}

TEST(SlowE2eReplay, SharedBeginningsAreReusedAsInProcess) {
  const TempFolder folder;
  How python;
  python.program = "/usr/bin/env";
  expect_ok(run_program(
      {"python3", KVASIR_SOURCE_DIR "/tests/load/make_traces.py", folder.path().string(), "--scale", "0.1"}, python));
  const Served server;
  for (const char* name : {"shared", "chats"}) {
    SCOPED_TRACE(name);
    const std::string trace = folder / (std::string(name) + ".jsonl");
    const Json here = in_process(trace), there = over_http(trace, server);
    expect_same_work(here, there);
    EXPECT_EQ(there["failed"], 0);
    EXPECT_GE(there["prompt_tokens_reused"], 0.9 * here["prompt_tokens_reused"].get<double>());
  }
}

}  // namespace
}  // namespace kvasir::e2e
