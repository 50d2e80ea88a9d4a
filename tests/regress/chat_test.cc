// The chat used to lose a loaded conversation after /load, a turn that did not fit, and the conversation at Ctrl-C.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lab/synth.h"
#include "tests/support/child.h"

namespace kvasir::e2e {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

Outcome chat(const std::string& typed, const Arguments& more = {}, const std::string& model = "tales",
             const std::string& folder = {}) {
  How how;
  how.input = typed;
  how.folder = folder;
  Arguments arguments{"chat", model, "--greedy"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments, how);
}

// Returns "25 of 46" for every turn.
std::vector<std::string> reused(const Outcome& outcome) {
  std::vector<std::string> all;
  for (size_t at = outcome.err.find('['); at != std::string::npos; at = outcome.err.find('[', at + 1)) {
    const size_t end = outcome.err.find(" tokens reused", at);
    if (end < outcome.err.find(']', at)) all.push_back(outcome.err.substr(at + 1, end - at - 1));
  }
  return all;
}

// A tokenizer with Metaspace and <s> before the text. The scheme "first" puts a space before the first word only, as in
// Mistral v0.3; "always" puts one before every stretch of text.
class SlowE2eRegressChatWithBos : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::vector<std::string> pieces{"<unk>", "<s>", "</s>"};
    for (int byte = 0; byte < 256; ++byte) pieces.push_back(fmt::format("<0x{:02X}>", byte));
    const std::string space = "\xE2\x96\x81";
    pieces.push_back(space);
    for (char c = 33; c < 127; ++c) pieces.emplace_back(1, c);
    Json merges = Json::array();
    for (const char c : std::string("UAHabcdefghijklmnopqrstuvwxyz")) {
      pieces.push_back(space + c);
      merges.push_back({space, std::string(1, c)});
    }
    Json vocab = Json::object(), added = Json::array();
    for (size_t i = 0; i < pieces.size(); ++i) vocab[pieces[i]] = i;
    for (size_t i = 0; i < 3; ++i)
      added.push_back({{"id", i},
                       {"content", pieces[i]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
    const Json bos{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
        text{{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
    const Json tokenizer{
        {"version", "1.0"},
        {"added_tokens", added},
        {"normalizer", nullptr},
        {"pre_tokenizer",
         {{"type", "Metaspace"}, {"replacement", space}, {"prepend_scheme", GetParam()}, {"split", false}}},
        {"post_processor",
         {{"type", "TemplateProcessing"},
          {"single", {bos, text}},
          {"pair", Json::array()},
          {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}}},
        {"decoder",
         {{"type", "Sequence"},
          {"decoders",
           {{{"type", "Replace"}, {"pattern", {{"String", space}}}, {"content", " "}},
            {{"type", "ByteFallback"}},
            {{"type", "Fuse"}},
            {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
        {"model",
         {{"type", "BPE"},
          {"unk_token", "<unk>"},
          {"fuse_unk", true},
          {"byte_fallback", true},
          {"vocab", vocab},
          {"merges", merges}}}};
    const Json config{{"model_type", "mistral"},     {"hidden_size", 32},
                      {"intermediate_size", 64},     {"num_hidden_layers", 1},
                      {"num_attention_heads", 2},    {"num_key_value_heads", 2},
                      {"vocab_size", pieces.size()}, {"max_position_embeddings", 512},
                      {"rms_norm_eps", 1e-5},        {"bos_token_id", 1},
                      {"eos_token_id", 2},           {"sliding_window", nullptr}};
    put(folder_ / "c.json", config.dump());
    ASSERT_TRUE(synthesize({.shape = folder_ / "c.json", .out = folder_ / "m", .dtype = "f32"}));
    put(folder_ / "m/tokenizer.json", tokenizer.dump());
  }
  Outcome conversation(const std::string& typed, const Arguments& more = {"-n", "4"}) const {
    return chat(typed, more, folder_ / "m", folder_.path());
  }
  TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(SlowE2eSchemes, SlowE2eRegressChatWithBos, testing::Values("first", "always", "never"));

TEST_P(SlowE2eRegressChatWithBos, WhatWasLoadedIsReused) {
  const Outcome straight = conversation("Hi\nmore\n"),
                loaded = conversation("Hi\n/save x.kv\n/clear\n/load x.kv\nmore\n");
  // Tokens: <s>, 5 for "User:", 2 for " Hi", 1 for the line's end, 10 for "Assistant:"; 4 generated; then 1, 5, 4 for "
  // more", 1 and 10. The last generated token has been chosen but not computed; saving computes it.
  EXPECT_EQ(reused(straight), (std::vector<std::string>{"0 of 19", "22 of 44"})) << straight.err;
  EXPECT_EQ(reused(loaded), (std::vector<std::string>{"0 of 19", "23 of 44"})) << loaded.err;
  EXPECT_THAT(loaded.err, Not(HasSubstr("differs")));
  EXPECT_THAT(loaded.out, Not(HasSubstr("<s>")));
  EXPECT_THAT(loaded.out, HasSubstr("\nUser: Hi\nAssistant:"));
  // The first answer, then the transcript, then the second answer.
  const size_t first = straight.out.find('\n', 0) + 1;
  EXPECT_EQ(loaded.out.substr(loaded.out.size() - (straight.out.size() - first)), straight.out.substr(first));
}

TEST_P(SlowE2eRegressChatWithBos, AConversationIsTheSameHoweverItIsCut) {
  const Arguments options{"-n", "9", "--system", "A conversation."};
  const std::string straight = conversation("Hi\nmore words here\nand a third\n", options).out;
  const Outcome cut = conversation(
      "/save a.kv\n/load a.kv\nHi\n/save b.kv\n/clear\n/load b.kv\n/save b.kv\nmore words here\n/save "
      "c.kv\n/clear\n/load c.kv\nand a third\n",
      options);
  EXPECT_THAT(cut.err, Not(HasSubstr("try:")));
  // In both, each answer is a separate line; nothing else ends the last one.
  const size_t last = straight.rfind('\n', straight.size() - 2) + 1;
  EXPECT_EQ(cut.out.substr(cut.out.size() - (straight.size() - last)), straight.substr(last));
}

TEST_P(SlowE2eRegressChatWithBos, IdsAreEchoedWithoutControlTokens) {
  const Outcome run = run_program({"run", folder_ / "m", "--ids", "1,345,70,2,70", "-n", "1", "--greedy"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, Not(HasSubstr("<s>")));
  EXPECT_THAT(run.out, Not(HasSubstr("</s>")));
}

TEST(SlowE2eRegressChat, AFullContextLeavesAWayOut) {
  std::string typed, line;
  for (int i = 0; i < 25; ++i) line += "a long line of words to say ";
  for (int i = 0; i < 7; ++i) typed += line + "\n";
  const Outcome full = chat(typed + "/regen\n/clear\n/regen\n", {"-n", "5"});
  EXPECT_EQ(full.code, 0);
  for (const char* way : {"the context is full", "/save FILE", "/clear", "/regen", "--on-full recompute"})
    EXPECT_THAT(full.err, HasSubstr(way));
  EXPECT_THAT(full.err, Not(HasSubstr("-p")));
  EXPECT_THAT(full.err, Not(HasSubstr("--ctx"))) << "the model allows no more";
  EXPECT_EQ(reused(full).size(), 6u) << "five turns fit, and one after /clear";
  EXPECT_THAT(reused(full).back(), testing::StartsWith("0 of "));
  EXPECT_THAT(chat(typed, {"-n", "5", "--ctx", "512"}).err, HasSubstr("kvasir chat --ctx 1024"));
  for (const char* way : {"recompute", "slide"}) {
    const Outcome on = chat(typed, {"-n", "5", "--on-full", way});
    EXPECT_EQ(reused(on).size(), 7u) << on.err;
    EXPECT_THAT(on.err, Not(HasSubstr("try:")));
  }
  EXPECT_THAT(chat(typed, {"-n", "5", "--on-full", "recompute"}).err,
              HasSubstr("tokens of the conversation were dropped"));
}

TEST(SlowE2eRegressChat, RecomputingGivesTheSameAfterLoading) {
  const TempFolder folder;
  std::string line;
  for (int i = 0; i < 6; ++i) line += "some words to say ";
  const Arguments options{"-n", "30", "--ctx", "128", "--on-full", "recompute"};
  std::string straight, cut;
  for (int i = 0; i < 5; ++i) {
    straight += line + std::to_string(i) + "\n";
    cut += line + std::to_string(i) + "\n/save " + (folder / "t.kv").string() + "\n/clear\n/load " +
           (folder / "t.kv").string() + "\n";
  }
  const std::string one = chat(straight + "/save " + (folder / "one.kv").string() + "\n", options).out;
  const Outcome other = chat(cut, options);
  EXPECT_THAT(other.err, Not(HasSubstr("try:")));
  ASSERT_FALSE(slurp(folder / "t.kv").empty());
  EXPECT_EQ(slurp(folder / "one.kv"), slurp(folder / "t.kv"));
}

TEST(SlowE2eRegressChat, AnAnswerEndsWhereTheContextDoesAndSaysSo) {
  const Outcome outcome = chat("Once\n/stats\nmore\n", {"-n", "-1", "--ctx", "40", "--stop", "@@@"});
  EXPECT_THAT(outcome.err, HasSubstr("[the context of 40 positions is full"));
}

TEST(SlowE2eRegressChat, CommandsSayWhatTheyNeed) {
  const TempFolder folder;
  const std::string spaced = folder / "a conversation.kv";
  const Outcome outcome = chat("/save\n/load\n/save \n/save /nonexistent/x.kv\nHi\n/save " + spaced +
                                   "\n/clear\n/regen\n/load " + spaced + "\n/stats now\n/nope\n",
                               {"-n", "3"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* line :
       {"chat: /save needs a file name (try: /save conversation.kv)", "chat: /load needs a file name",
        "/nonexistent/x.kv: cannot be created, its folder does not exist", "/stats takes nothing after it",
        "\"/nope\" is not a command", "/regen: nothing has been asked"})
    EXPECT_THAT(outcome.err, HasSubstr(line));
  EXPECT_THAT(outcome.out, HasSubstr("User: Hi"));
  EXPECT_TRUE(fs::exists(spaced));
}

TEST(SlowE2eRegressChat, LinesOfWindowsAreCommandsToo) {
  const Outcome outcome = chat("/stats\r\n\r\n/quit\r\nmore\r\n", {"-n", "3"});
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("0 of 1024 positions"));
  EXPECT_EQ(chat("The dog\r\n", {"-n", "6"}).out, chat("The dog\n", {"-n", "6"}).out);
  EXPECT_EQ(chat("The dog", {"-n", "6"}).out, chat("The dog\n", {"-n", "6"}).out) << "the last line needs no end";
}

TEST(SlowE2eRegressChat, AnAnswerEndsWithTheTextBeforeAStop) {
  const std::string whole = chat("The dog ran.\n", {"-n", "12"}).out, stop = whole.substr(whole.size() / 2, 3);
  const Outcome one = chat("The dog ran.\nAnd then?\n", {"-n", "12", "--stop", stop});
  EXPECT_EQ(one.out.substr(0, whole.find(stop) + 1), whole.substr(0, whole.find(stop)) + "\n");
  EXPECT_EQ(reused(one).size(), 2u);
}

// ---- Ctrl-C -------------------------------------------------------------------------------------------------------

class SlowE2eRegressChatInterrupt : public testing::TestWithParam<bool> {
 protected:
  bool terminal() const { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(SlowE2ePipeAndTerminal, SlowE2eRegressChatInterrupt, testing::Bool());

TEST_P(SlowE2eRegressChatInterrupt, AtThePromptKeepsTheConversation) {
  Child child({"chat", "tales", "--greedy", "-n", "3"}, terminal());
  child.type("The dog ran.\n");
  child.wait_for("tok/s]");
  if (terminal()) child.wait_for("> ");
  if (terminal()) child.type("words that are dro");
  usleep(200000);
  terminal() ? child.type("\x03") : child.interrupt();
  child.wait_for("/quit ends the chat");
  child.type("/stats\r\n");
  EXPECT_THAT(child.wait_for(" of 1024 positions"), Not(HasSubstr("dro/stats")));
  child.type("And then?\n");
  EXPECT_THAT(child.wait_for("tok/s]"), Not(HasSubstr("[0 of")));
  child.type("/quit\n");
  EXPECT_EQ(child.end(), 0);
}

TEST_P(SlowE2eRegressChatInterrupt, TwiceAtOnceEnds) {
  Child child({"chat", "tales", "--greedy", "-n", "3"}, terminal());
  child.type("/stats\n");
  child.wait_for(" of 1024 positions");
  for (int i = 0; i < 2; ++i) {
    usleep(200000);
    terminal() ? child.type("\x03") : child.interrupt();
    if (i == 0) child.wait_for("/quit ends the chat");
  }
  EXPECT_EQ(child.end(), 0);
}

TEST(SlowE2eRegressChat, CtrlCStopsAPromptThatIsStillRead) {
  std::string line;
  for (int i = 0; i < 90; ++i) line += "a long line of words ";
  Child child({"chat", "tales", "--greedy", "-n", "3", "--prefill-chunk", "1", "--weights", "streamed"}, false);
  child.type("/stats\n");
  child.wait_for(" of 1024 positions");
  child.type(line + "\n");
  usleep(100000);
  child.interrupt();
  EXPECT_THAT(child.wait_for("interrupted: the turn is not part of the conversation"), Not(HasSubstr("tok/s]")));
  child.type("/stats\n");
  const std::string held = child.wait_for(" of 1024 positions");
  EXPECT_LT(std::stoi(held.substr(held.find_last_of("\n", held.size() - 20) + 1)), 450) << "not all of it was read";
  child.type("/regen\n");
  EXPECT_THAT(child.wait_for("tok/s]"), HasSubstr(" tokens reused"));
  child.type("/quit\n");
  EXPECT_EQ(child.end(), 0);
}

}  // namespace
}  // namespace kvasir::e2e
