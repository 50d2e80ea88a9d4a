// The program from outside, with valid input: output, receipts, names, streams.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include <nlohmann/json.hpp>

#include "base/system.h"
#include "cache/kv_type.h"
#include "cache/layout.h"
#include "dtype/codec.h"
#include "lab/synth.h"
#include "tests/support/program.h"
#include "token/utf8.h"

namespace kvasir::e2e {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::json;

Json json_of(const Arguments& arguments, const How& how = {}) {
  return Json::parse(expect_ok(run_program(arguments, how)), nullptr, false);
}

Json tales(const Arguments& more, const How& how = {}) {
  Arguments arguments{"tales", "-p", "Hello, said the fox", "-n", "8", "--greedy", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return json_of(arguments, how);
}

/// "1,2,3"
std::string joined(const Json& ids) {
  std::string text;
  for (const Json& id : ids) text += (text.empty() ? "" : ",") + id.dump();
  return text;
}

bool is_utf8(std::string_view text) { return utf8_valid_prefix(text) == text.size(); }

TEST(E2eHelp, EveryCommandExplainsItselfWithAnExample) {
  for (const std::string& name : command_names()) {
    const std::string text = expect_ok(run_program({name, "--help"}));
    EXPECT_THAT(text, testing::HasSubstr("Examples:\n  kvasir " + name)) << name;
    EXPECT_EQ(expect_ok(run_program({name, "-h"})), text) << name;
  }
}

TEST(E2eHelp, OfTheProgramListsTheCommands) {
  const std::string text = expect_ok(run_program({"--help"}));
  for (const std::string& name : command_names()) EXPECT_THAT(text, testing::HasSubstr("\n  " + name));
  EXPECT_EQ(expect_ok(run_program({})), text);
  EXPECT_THAT(expect_ok(run_program({"--version"})), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

// ---- run ----------------------------------------------------------------------------------------------------------

TEST(E2eRun, JsonHasEveryName) {
  const Json json = json_of({"tales", "-p", "Hello", "-n", "8", "--greedy", "--json"});
  for (const char* name :
       {"text", "tokens", "prompt_tokens", "cached_tokens", "generated_tokens", "stop_reason", "receipt", "stats"})
    EXPECT_TRUE(json.contains(name)) << name;
  for (const char* name : {"ttft_ms", "prefill_tok_s", "decode_tok_s", "kv_bytes", "kv_predicted_bytes",
                           "kv_peak_bytes", "kv_capacity", "peak_rss_bytes", "rss_bytes", "weights_bytes", "threads",
                           "cpu", "layout", "kv_type_k", "kv_type_v", "weights"})
    EXPECT_TRUE(json["stats"].contains(name)) << name;
  EXPECT_EQ(json["tokens"].size(), 8u);
  EXPECT_EQ(json["generated_tokens"], 8);
  EXPECT_EQ(json["cached_tokens"], 0);
  EXPECT_EQ(json["stop_reason"], "length");
  EXPECT_THAT(json["receipt"].get<std::string>(), testing::MatchesRegex("[0-9a-f]{32}"));
  const Json& stats = json["stats"];
  EXPECT_EQ(stats["kv_predicted_bytes"], stats["kv_bytes"]);
  EXPECT_EQ(stats["kv_bytes"], 2 * 6 * 64 * 64 * 4) << "K and V, 6 layers, 64 positions, 2 heads of 32, f32";
  EXPECT_GE(stats["kv_peak_bytes"], stats["kv_bytes"]);
}

TEST(SlowE2eRun, BytesArePredictedForEveryLayoutAndType) {
  for (const LayoutInfo* layout : layouts())
    for (const KvType& type : kv_types()) {
      const Json stats = tales({"--cache", std::string(layout->name), "--kv-type", type.name})["stats"];
      EXPECT_EQ(stats["kv_predicted_bytes"], stats["kv_bytes"]) << layout->name << " " << type.name;
      EXPECT_EQ(stats["layout"], layout->name);
      EXPECT_EQ(stats["kv_type_k"], type.name);
      EXPECT_EQ(stats["kv_type_v"], type.name);
    }
}

TEST(E2eRun, TheReceiptDoesNotDependOnHow) {
  const std::string expected = tales({})["receipt"];
  std::vector<Arguments> ways;
  for (const LayoutInfo* layout : layouts()) ways.push_back({"--cache", std::string(layout->name)});
  for (const char* threads : {"1", "2", "4"}) ways.push_back({"--threads", threads});
  for (const char* chunk : {"1", "7"}) ways.push_back({"--prefill-chunk", chunk});
  for (const char* mode : {"resident", "mapped", "streamed"}) ways.push_back({"--weights", mode});
  ways.push_back({"--ctx", "64"});
  for (const char* ram : {"26M", "100M"}) ways.push_back({"--ram", ram});
  for (const Arguments& way : ways) EXPECT_EQ(tales(way)["receipt"], expected) << testing::PrintToString(way);
}

TEST(E2eRun, TheReceiptDoesNotDependOnTheCpu) {
  const std::string expected = tales({})["receipt"];
  for (const CpuTarget target : supported_targets()) {
    const std::string cpu = cpu_target_name(target);
    How how;
    how.environment["KVASIR_CPU"] = cpu;
    const Json json = tales({}, how);
    EXPECT_EQ(json["receipt"], expected) << cpu;
    EXPECT_EQ(json["stats"]["cpu"], cpu);
  }
}

TEST(E2eRun, TheReceiptDependsOnWhat) {
  std::vector<std::string> receipts{tales({})["receipt"], tales({"--kv-type", "f16"})["receipt"],
                                    tales({"-ctk", "bf16"})["receipt"], tales({"-ctv", "bf16"})["receipt"]};
  receipts.push_back(json_of({"tales", "-p", "Hello, said the box", "-n", "8", "--greedy", "--json"})["receipt"]);
  receipts.push_back(json_of({"tales-gpt2", "-p", "Hello, said the fox", "-n", "8", "--greedy", "--json"})["receipt"]);
  std::sort(receipts.begin(), receipts.end());
  EXPECT_EQ(std::adjacent_find(receipts.begin(), receipts.end()), receipts.end());
}

TEST(E2eRun, NarrowTypesGiveTheSameInEveryLayout) {
  for (const char* type : {"f16", "bf16"}) {
    const std::string expected = tales({"--kv-type", type})["receipt"];
    for (const LayoutInfo* layout : layouts())
      EXPECT_EQ(tales({"--kv-type", type, "--cache", std::string(layout->name)})["receipt"], expected) << layout->name;
  }
}

TEST(E2eRun, AFullContextStopsRecomputesOrSlides) {
  const auto with = [](Arguments more, const char* ctx = "64") {
    Arguments all{"tales", "-p", "Hello", "-n", "120", "--greedy", "--ignore-eos", "--json", "--ctx", ctx};
    all.insert(all.end(), more.begin(), more.end());
    return json_of(all);
  };
  const Json stopped = with({}), recomputed = with({"--on-full", "recompute"}), slid = with({"--on-full", "slide"});
  EXPECT_LT(stopped["tokens"].size(), 65u);
  EXPECT_EQ(recomputed["tokens"].size(), 120u);
  EXPECT_GT(recomputed["recomputed"], 0);
  EXPECT_EQ(slid["tokens"].size(), 120u);
  EXPECT_EQ(slid["stats"]["layout"], "windowed");
  EXPECT_EQ(slid["stats"]["window"], "60 sinks 4");
  EXPECT_EQ(with({"--window", "60", "--cache", "paged"}, "200")["receipt"], slid["receipt"]);
  const auto gpt2 = run_program({"tales-gpt2", "-p", "Hello", "-n", "8", "--on-full", "slide", "--ctx", "64"});
  EXPECT_EQ(gpt2.code, 2);
  EXPECT_THAT(gpt2.err, testing::HasSubstr("learned"));
}

TEST(E2eRun, SamplesArePrintedAndCounted) {
  const Arguments run{"tales", "-p", "Hello", "-n", "12", "--temp", "1", "--seed", "5", "--json", "--cache", "paged"};
  Arguments three = run;
  three.insert(three.end(), {"--samples", "3"});
  const Json samples = json_of(three)["generations"];
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0]["receipt"], json_of(run)["receipt"]);
  EXPECT_NE(samples[0]["receipt"], samples[1]["receipt"]);
  EXPECT_NE(samples[1]["receipt"], samples[2]["receipt"]);
  const auto greedy = expect_ok(run_program({"tales", "-p", "Hello", "-n", "4", "--greedy", "--samples", "2"}));
  const std::string half = greedy.substr(0, greedy.size() / 2);
  EXPECT_EQ(greedy, half + half) << "greedy samples are the same";
  EXPECT_EQ(run_program({"tales", "-p", "Hello", "--samples", "0"}).code, 2);
}

TEST(E2eRun, APromptsFileGivesWhatEachGivesAlone) {
  const TempFolder folder;
  put(folder / "p", "Hello, said the fox\n\nOnce upon a time there was a dog\nHello, said the fox and the hen\n");
  for (const char* batch : {"1", "2", "8"}) {
    const Json json = json_of({"tales", "--prompts", (folder / "p").string(), "--batch", batch, "-n", "8", "--greedy",
                               "--json", "--cache", "paged", "--prefix-ram", "16M"});
    ASSERT_EQ(json["generations"].size(), 3u);
    EXPECT_EQ(json["generations"][0]["receipt"], tales({})["receipt"]);
    EXPECT_EQ(json["prefix"]["queries"], 3);
    EXPECT_EQ(json["generations"][2]["prompt"], "Hello, said the fox and the hen");
    EXPECT_EQ(json["generations"][2]["cached_tokens"] > 3, std::string(batch) != "8")
        << "begun when the first was known";
  }
  EXPECT_EQ(run_program({"tales", "--prompts", (folder / "p").string(), "-p", "x"}).code, 2);
}

TEST(E2eRun, PromptsAreToldInTheirOrderAndBeforeWhatFails) {
  const TempFolder folder;
  const std::string path = (folder / "p").string();
  put(path, "One day\nHello\nOnce upon a time\n");
  const std::string all = expect_ok(run_program({"tales", "--prompts", path, "--batch", "3", "-n", "2", "--greedy"}));
  EXPECT_EQ(all.find("One day"), 0u);
  EXPECT_LT(all.find("\n\nHello"), all.find("\n\nOnce upon"));
  std::string too_long = "Hello";
  for (int i = 0; i < 3000; ++i) too_long += " fox";
  put(path, "One day\n" + too_long + "\n");
  const auto cut = run_program({"tales", "--prompts", path, "--batch", "1", "-n", "2", "--greedy"});
  EXPECT_NE(cut.code, 0);
  EXPECT_EQ(cut.out, all.substr(0, all.find("Hello")));
}

TEST(E2eRun, LookupChangesNothing) {
  const Arguments run{"tales", "-p", "Tom had a ball. Tom had a ball. Tom had", "-n", "60", "--greedy", "--json"};
  Arguments guessing = run;
  guessing.insert(guessing.end(), {"--lookup", "6"});
  const Json plain = json_of(run), guessed = json_of(guessing);
  EXPECT_EQ(guessed["receipt"], plain["receipt"]);
  EXPECT_GT(guessed["accepted"], 10);
  EXPECT_GE(guessed["guessed"], guessed["accepted"]);
}

TEST(E2eRun, ASavedCacheIsReallyLoaded) {
  const TempFolder folder;
  const std::string file = (folder / "s.kv").string(), start = "Once upon a time there was a fox";
  const Arguments whole{"tales", "-p", start + " who lived in a wood", "-n", "8", "--greedy", "--json"};
  const Json cold = json_of(whole);
  EXPECT_EQ(cold["cached_tokens"], 0);
  const Json saved =
      json_of({"tales", "-p", start, "-n", "1", "--greedy", "--json", "--save-cache", file, "--cache", "dense"});
  for (const LayoutInfo* layout : layouts()) {
    Arguments warm = whole;
    warm.insert(warm.end(), {"--load-cache", file, "--cache", std::string(layout->name)});
    const Json json = json_of(warm);
    EXPECT_EQ(json["receipt"], cold["receipt"]) << layout->name;
    EXPECT_EQ(json["cached_tokens"], layout->recomputes ? Json(0) : saved["prompt_tokens"]) << layout->name;
  }
  const auto other = run_program({"tales-gpt2", "-p", "x", "--load-cache", file});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, testing::HasSubstr("of model"));
  EXPECT_THAT(expect_ok(run_program({"inspect", file})), testing::HasSubstr("Kvasir snapshot"));
}

TEST(E2eChat, ComputesOnlyWhatIsNew) {
  const TempFolder folder;
  const std::string file = (folder / "c.kv").string();
  How typed;
  typed.input = "The dog ran.\nAnd then?\n/stats\n/save " + file + "\n/clear\n/nope\n/load " + file + "\nMore\n";
  const Outcome chat = run_program({"chat", "tales", "--greedy", "-n", "12"}, typed);
  EXPECT_EQ(chat.code, 0) << chat.err;
  EXPECT_THAT(chat.out, testing::HasSubstr("positions, "));
  EXPECT_THAT(chat.out, testing::HasSubstr("User: And then?")) << "loaded";
  EXPECT_THAT(chat.err, testing::HasSubstr("not a command"));
  std::vector<int> reused;
  for (size_t at = chat.err.find('['); at != std::string::npos; at = chat.err.find('[', at + 1))
    reused.push_back(std::stoi(chat.err.substr(at + 1)));
  ASSERT_EQ(reused.size(), 3u) << chat.err;
  EXPECT_EQ(reused[0], 0);
  EXPECT_GT(reused[1], 10);
  EXPECT_GT(reused[2], reused[1]) << "from the file";
}

TEST(E2eRun, KvRamIsKept) {
  const Arguments run{"tales",        "-p",      "Hello", "-n",    "100", "--greedy",
                      "--ignore-eos", "--cache", "paged", "--ctx", "200"};
  Arguments enough = run, little = run;
  enough.insert(enough.end(), {"--kv-ram", "400K"});  // two blocks of 64 positions, 3,072 B each
  little.insert(little.end(), {"--kv-ram", "200K"});
  EXPECT_EQ(run_program(enough).code, 0);
  const auto refused = run_program(little);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, testing::HasSubstr("--kv-ram"));
}

TEST(E2eRun, ALinkCalledLlmWorks) {
  How how;
  how.program = fs::path(KVASIR_PROGRAM).parent_path() / "llm";
  const std::string text =
      expect_ok(run_program({"tales", "-p", "Hello", "-n", "16", "--greedy", "--threads", "4"}, how));
  EXPECT_EQ(text, expect_ok(run_program({"run", "tales", "-p", "Hello", "-n", "16", "--greedy"})));
  EXPECT_THAT(text, testing::StartsWith("Hello"));
}

TEST(E2eRun, ANameIsFoundFromAnywhere) {
  const TempFolder folder;
  How how;
  how.folder = folder.path();
  const Arguments arguments{"tales", "-p", "Hello", "-n", "4", "--greedy"};
  EXPECT_EQ(expect_ok(run_program(arguments, how)), expect_ok(run_program(arguments)));
  EXPECT_EQ(folder.count(), 0u);
}

TEST(E2eRun, TheSameSeedGivesTheSameText) {
  const auto sample = [](const char* seed) {
    return expect_ok(run_program({"tales", "-p", "Once", "-n", "24", "--temp", "1.5", "--top-k", "0", "--seed", seed}));
  };
  EXPECT_EQ(sample("5"), sample("5"));
  EXPECT_NE(sample("5"), sample("6"));
}

TEST(E2eRun, StopEndsTheText) {
  const Json whole = tales({});
  const std::string text = whole["text"], stop = text.substr(text.size() / 2, 4);
  const Json json = tales({"--stop", stop});
  EXPECT_EQ(json["stop_reason"], "stop");
  EXPECT_EQ(json["text"], text.substr(0, text.find(stop)));
}

TEST(E2eRun, IdsAndFilesArePromptsToo) {
  const TempFolder folder;
  put(folder / "prompt.txt", "Hello, said the fox");
  const Json expected = tales({});
  const Json file = json_of({"tales", "-f", folder / "prompt.txt", "-n", "8", "--greedy", "--json"});
  EXPECT_EQ(file["receipt"], expected["receipt"]);
  const std::string ids = joined(json_of({"tokenize", "tales", "Hello, said the fox", "--json"})["ids"]);
  EXPECT_EQ(json_of({"tales", "--ids", ids, "-n", "8", "--greedy", "--json"})["receipt"], expected["receipt"]);
}

// A random model generates bytes in any order, so characters are often incomplete.
TEST(E2eRun, TheStreamIsUtf8) {
  const TempFolder folder;
  ASSERT_TRUE(synthesize({.shape = "tiny", .out = folder / "tiny", .seed = 9}));
  for (const char* seed : {"1", "2", "3"}) {
    const std::string text =
        expect_ok(run_program({folder / "tiny", "-p", "\xC3\xA9t\xC3\xA9 ", "-n", "120", "--temp", "5", "--top-k", "0",
                               "--top-p", "1", "--min-p", "0", "--seed", seed}));
    EXPECT_TRUE(is_utf8(text)) << text;
    EXPECT_THAT(text, testing::HasSubstr("\xEF\xBF\xBD"));
  }
}

// ---- stories260K: another program's text --------------------------------------------------------------------------

class E2eStories : public testing::Test {
 protected:
  void SetUp() override {
    if (outside_data().empty()) GTEST_SKIP() << "outside data folder is absent";
    expected_ = slurp(folder() / "greedy_256.txt");
  }
  static fs::path folder() { return outside_data() / "models/stories260K"; }
  std::string expected_;
};

// run.c wrote this file with -t 0 -n 256 and no prompt: 256 tokens after BOS.
TEST_F(E2eStories, GreedyFromTheBeginning) {
  for (const char* file : {"stories260K.bin", "stories260K_v1.bin"})
    EXPECT_EQ(expect_ok(run_program({folder() / file, "--ids", "1", "-n", "256", "--greedy"})), expected_) << file;
}

TEST_F(E2eStories, GreedyFromAPrompt) {  // 5 tokens, the first is BOS
  const std::string text =
      expect_ok(run_program({folder() / "stories260K.bin", "-p", "Once upon a time", "-n", "252", "--greedy"}));
  EXPECT_EQ(text, expected_);
}

TEST_F(E2eStories, BothFilesGiveOneReceipt) {
  const auto receipt = [](const char* file) {
    return json_of({folder() / file, "-p", "Once upon a time", "-n", "8", "--greedy", "--json"})["receipt"];
  };
  EXPECT_EQ(receipt("stories260K.bin"), receipt("stories260K_v1.bin"));
}

// ---- tokenize -----------------------------------------------------------------------------------------------------

TEST(E2eTokenize, TextToIdsAndBack) {
  const std::string text = "The fox \xC3\xA9t\xC3\xA9\n\tran 42 miles.";
  const Json json = json_of({"tokenize", "tales", text, "--json"});
  ASSERT_EQ(json["ids"].size(), json["pieces"].size());
  EXPECT_EQ(json.size(), 2u);
  const std::string ids = joined(json["ids"]);
  EXPECT_EQ(expect_ok(run_program({"tokenize", "tales", "--ids", ids})), text + "\n");
  const Json back = json_of({"tokenize", "tales", "--ids", ids, "--json"});
  EXPECT_EQ(back["text"], text);
  EXPECT_EQ(back["ids"], json["ids"]);
  EXPECT_EQ(back["pieces"], json["pieces"]);
}

TEST(E2eTokenize, OneLineAToken) {
  const std::string text = expect_ok(run_program({"tokenize", "tales", "Hi a\n"}));
  const Json json = json_of({"tokenize", "tales", "Hi a\n", "--json"});
  std::stringstream lines(text);
  size_t i = 0;
  for (std::string line; std::getline(lines, line); ++i) {
    std::stringstream words(line);
    int id = 0;
    std::string piece;
    words >> id >> piece;
    EXPECT_EQ(id, json["ids"].at(i));
    EXPECT_EQ(piece, json["pieces"].at(i).get<std::string>());
  }
  EXPECT_EQ(i, json["ids"].size());
}

TEST(E2eTokenize, FromStdin) {
  How how;
  how.input = "Once upon a time\n";
  const Json json = json_of({"tokenize", "tales", "--stdin", "--json"}, how);
  EXPECT_EQ(json, json_of({"tokenize", "tales", how.input, "--json"}));
  EXPECT_EQ(json, json_of({"tokenize", "--model", "tales", how.input, "--json"}));
}

TEST(E2eTokenize, BeginningOfText) {
  if (outside_data().empty()) GTEST_SKIP() << "outside data folder is absent";
  const std::string model = outside_data() / "models/stories260K/stories260K.bin";
  EXPECT_EQ(json_of({"tokenize", model, "Once upon a time", "--json"})["ids"], (Json{1, 403, 407, 261, 378}));
  EXPECT_EQ(json_of({"tokenize", model, "Once upon a time", "--json", "--no-bos"})["ids"], (Json{403, 407, 261, 378}));
}

// ---- logits, embed ------------------------------------------------------------------------------------------------

// Returns the floats of a .npy file, whose header must have this shape.
std::vector<float> npy(const fs::path& path, const std::string& shape) {
  const std::string bytes = slurp(path);
  if (bytes.size() < 128) return {};
  EXPECT_THAT(bytes.substr(0, 128), testing::HasSubstr("'shape': (" + shape + ", )"));
  std::vector<float> out((bytes.size() - 128) / sizeof(float));
  std::memcpy(out.data(), bytes.data() + 128, out.size() * sizeof(float));
  return out;
}

TEST(E2eLogits, EveryPositionAndTheSameHoweverCut) {
  const TempFolder folder;
  const std::string ids = "5,3071,17,402,402,4095,1";
  const Json json = json_of({"logits", "tales", "--ids", ids, "--out", folder / "whole.npy", "--json"});
  EXPECT_EQ(json["tokens"], 7);
  EXPECT_EQ(json["vocab"], 4096);
  EXPECT_EQ(json["ids"], (Json{5, 3071, 17, 402, 402, 4095, 1}));
  EXPECT_EQ(json["out"], (folder / "whole.npy").string());
  const auto rows = npy(folder / "whole.npy", "7, 4096");
  ASSERT_EQ(rows.size(), 7u * 4096u);
  for (float x : rows) ASSERT_TRUE(std::isfinite(x));
  for (const char* chunk : {"1", "3"}) {
    expect_ok(run_program(
        {"logits", "tales", "--ids", ids, "--out", folder / "cut.npy", "--prefill-chunk", chunk, "--cache", "none"}));
    EXPECT_EQ(slurp(folder / "cut.npy"), slurp(folder / "whole.npy")) << chunk;
  }
  expect_ok(run_program({"logits", "tales", "--ids", "5,3071,17", "--out", folder / "short.npy"}));
  const auto prefix = npy(folder / "short.npy", "3, 4096");
  EXPECT_TRUE(std::equal(prefix.begin(), prefix.end(), rows.begin()));
}

TEST(E2eLogits, TheLikeliestIsWhatGreedyTakes) {
  const std::string best = expect_ok(run_program({"logits", "tales", "-p", "Hello, said the fox", "--top", "3"}));
  std::stringstream lines(best);
  int id = -1;
  lines >> id;
  EXPECT_EQ(id, tales({})["tokens"][0]);
  EXPECT_EQ(std::count(best.begin(), best.end(), '\n'), 3);
}

TEST(E2eEmbed, AVectorOfLengthOne) {
  const TempFolder folder;
  for (const char* pooling : {"mean", "last"}) {
    const Json json =
        json_of({"embed", "tales", "-p", "a cat and a dog", "--pooling", pooling, "--out", folder / "e.npy", "--json"});
    EXPECT_EQ(json["hidden"], 192);
    EXPECT_EQ(json["pooling"], pooling);
    const auto vector = json["embedding"].get<std::vector<float>>();
    EXPECT_EQ(vector, npy(folder / "e.npy", "192"));
    double squares = 0;
    for (float x : vector) squares += double{x} * double{x};
    EXPECT_NEAR(squares, 1.0, 1e-5);
  }
  const auto vector_of = [](const char* text, const char* pooling) {
    return json_of({"embed", "tales", "-p", text, "--pooling", pooling, "--json"})["embedding"]
        .get<std::vector<float>>();
  };
  EXPECT_NE(vector_of("a cat and a dog", "mean"), vector_of("a cat and a dog", "last"));
  EXPECT_NE(vector_of("a cat and a dog", "mean"), vector_of("a dog and a cat", "mean"));
}

// ---- synth --------------------------------------------------------------------------------------------------------

TEST(E2eSynth, MakesAModelThatRuns) {
  const TempFolder folder;
  for (const char* shape : {"tiny", "tiny-gpt2"}) {
    const Json json = json_of({"synth", shape, folder / shape, "--dtype", "f16", "--seed", "3", "--json"});
    EXPECT_EQ(json["weights_bytes"], 2 * json["parameters"].get<int64_t>());
    const Json run = json_of({folder / shape, "-p", "Hello", "-n", "8", "--greedy", "--json"});
    EXPECT_EQ(run["prompt_tokens"], 5) << "a token a byte";
    EXPECT_EQ(run["stop_reason"], "length");
  }
  EXPECT_EQ(folder.count(), 2u) << "no temporary folder is left";
}

TEST(E2eSynth, ReplacesOnlyItsOwn) {
  const TempFolder folder;
  const std::string out = folder / "m";
  expect_ok(run_program({"synth", "tiny", out, "--seed", "1"}));
  const std::string first = slurp(folder / "m/model.safetensors");
  expect_refused(run_program({"synth", "tiny", out, "--seed", "2"}), "--force");
  EXPECT_EQ(slurp(folder / "m/model.safetensors"), first);
  expect_ok(run_program({"synth", "tiny", out, "--seed", "2", "--force"}));
  EXPECT_NE(slurp(folder / "m/model.safetensors"), first);
  put(folder / "m/notes.txt", "mine");
  expect_refused(run_program({"synth", "tiny", out, "--seed", "1", "--force"}), "notes.txt");
  EXPECT_EQ(slurp(folder / "m/notes.txt"), "mine");
  EXPECT_EQ(folder.count(), 1u);
}

}  // namespace
}  // namespace kvasir::e2e
