// Every bad input gives one line on stderr, exit code 2 and nothing on stdout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "lab/synth.h"
#include "tests/support/program.h"

namespace kvasir::e2e {
namespace {

using Arguments = std::vector<std::string>;

// Every command that opens a model's weights, with otherwise valid arguments.
std::vector<Arguments> model_commands(const std::string& model) {
  std::vector<Arguments> all{{"run", model, "-p", "x", "-n", "4"},
                             {"run", model, "-p", "x", "-n", "4", "--json"},
                             {"logits", model, "-p", "x"},
                             {"embed", model, "-p", "x"},
                             {"perplexity", model, "--file", KVASIR_SOURCE_DIR "/models/prompts.txt", "--ctx", "16"},
                             {"drift", model, "--file", KVASIR_SOURCE_DIR "/models/prompts.txt", "--ctx", "16",
                              "--types", "f16", "--chunks", "1"},
                             {"verify", model},
                             {"bench", model, "-p", "16", "-n", "4"}};
  const auto names = command_names();
  std::erase_if(all, [&](const Arguments& a) { return std::find(names.begin(), names.end(), a[0]) == names.end(); });
  return all;
}

void expect_model_refused(const std::string& model, std::string_view needle) {
  for (const Arguments& arguments : model_commands(model)) expect_refused(run_program(arguments), needle);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "no " << from << " to replace";
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

// A valid tiny model to break.
class E2eHostileModel : public testing::Test {
 protected:
  void SetUp() override {
    const auto done = synthesize({.shape = "tiny", .out = model(), .dtype = "bf16", .seed = 3});
    ASSERT_TRUE(done) << done.error().message();
  }
  fs::path model() const { return folder_ / "model"; }
  fs::path weights() const { return model() / "model.safetensors"; }
  void edit(const char* file, std::string_view from, std::string_view to) const {
    put(model() / file, replaced(slurp(model() / file), from, to));
  }

 private:
  TempFolder folder_;
};

TEST_F(E2eHostileModel, IsFineUnbroken) {
  for (const Arguments& arguments : model_commands(model()))
    if (arguments[0] != "verify" && arguments[0] != "bench") expect_ok(run_program(arguments));
}

TEST_F(E2eHostileModel, TruncatedWeights) {
  const std::string whole = slurp(weights());
  for (const size_t keep : {whole.size() - 1, whole.size() / 2, size_t{100}, size_t{8}, size_t{3}}) {
    put(weights(), whole.substr(0, keep));
    expect_refused(run_program({"run", model(), "-p", "x"}), "model.safetensors");
  }
  put(weights(), whole.substr(0, whole.size() - 1));
  expect_model_refused(model(), "model.safetensors");
}

TEST_F(E2eHostileModel, EmptyWeights) {
  put(weights(), "");
  expect_model_refused(model(), "model.safetensors");
}

TEST_F(E2eHostileModel, HeaderLongerThanTheFile) {
  for (const uint64_t length : {uint64_t{1} << 20, UINT64_MAX, uint64_t{1} << 63}) {
    std::string bytes = slurp(weights());
    std::memcpy(bytes.data(), &length, sizeof length);
    put(weights(), bytes);
    expect_model_refused(model(), std::to_string(length));
  }
}

TEST_F(E2eHostileModel, HeaderThatIsNoJson) {
  edit("model.safetensors", "{\"__metadata__\"", "{\"__metadata__'");
  expect_model_refused(model(), "model.safetensors");
}

TEST_F(E2eHostileModel, ShapesUnlikeTheConfig) {
  edit("config.json", "\"intermediate_size\": 128", "\"intermediate_size\": 96");
  expect_model_refused(model(), "mlp.gate_proj.weight");
}

TEST_F(E2eHostileModel, VocabularyUnlikeTheConfig) {
  edit("config.json", "\"vocab_size\": 512", "\"vocab_size\": 513");
  expect_model_refused(model(), "embed_tokens.weight");
}

TEST_F(E2eHostileModel, MoreLayersThanTheFile) {
  edit("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
  expect_model_refused(model(), "layers.2.input_layernorm.weight");
}

TEST_F(E2eHostileModel, MissingTensor) {
  edit("model.safetensors", "model.norm.weight", "model.nrom.weight");
  expect_model_refused(model(), "norm.weight");
}

TEST_F(E2eHostileModel, UnknownDtype) {
  edit("model.safetensors", "\"BF16\"", "\"XF16\"");
  expect_model_refused(model(), "XF16");
}

TEST_F(E2eHostileModel, DtypeThatIsNoWeight) {
  edit("model.safetensors", "\"BF16\"", "\"I16\" ");
  expect_model_refused(model(), "I16");
}

TEST_F(E2eHostileModel, UnknownArchitecture) {
  edit("config.json", "\"model_type\": \"llama\"", "\"model_type\": \"lalma\"");
  expect_model_refused(model(), "lalma");
}

TEST_F(E2eHostileModel, NoArchitecture) {
  edit("config.json", "\"model_type\": \"llama\"", "\"model_kind\": \"llama\"");
  expect_model_refused(model(), "model_type");
}

TEST_F(E2eHostileModel, NumbersThatAreNone) {
  for (const char* value : {"NaN", "Infinity", "-1", "1e400", "\"1e-5\"", "[]", "null "}) {
    SCOPED_TRACE(value);
    const std::string whole = slurp(model() / "config.json");
    edit("config.json", "\"rms_norm_eps\": 1e-05", std::string("\"rms_norm_eps\": ") + value);
    if (std::string_view(value) != "null ") expect_refused(run_program({"run", model(), "-p", "x"}), "config.json");
    put(model() / "config.json", whole);
  }
  edit("config.json", "\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": NaN");
  expect_model_refused(model(), "config.json");
}

TEST_F(E2eHostileModel, ConfigThatIsNoObject) {
  put(model() / "config.json", "[1, 2]");
  expect_model_refused(model(), "config.json");
  put(model() / "config.json", "");
  expect_model_refused(model(), "config.json");
}

TEST_F(E2eHostileModel, HeadsThatDoNotFit) {
  const std::string whole = slurp(model() / "config.json");
  edit("config.json", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3");
  expect_model_refused(model(), "config.json");
  put(model() / "config.json", replaced(whole, "\"num_attention_heads\": 4", "\"num_attention_heads\": 0"));
  expect_model_refused(model(), "num_attention_heads");
}

TEST_F(E2eHostileModel, MoreHeadsThanChannels) {
  edit("config.json", "\"head_dim\": 16", "\"head_dim\": null");
  edit("config.json", "\"num_attention_heads\": 4", "\"num_attention_heads\": 128");
  expect_model_refused(model(), "128 heads");
}

TEST_F(E2eHostileModel, RopeThatIsUnknown) {
  edit("config.json", "\"rope_theta\"", "\"rope_scaling\": {\"rope_type\": \"yawn\", \"factor\": 2.0}, \"rope_theta\"");
  expect_model_refused(model(), "yawn");
}

TEST_F(E2eHostileModel, SpecialIdsPastTheVocabulary) {
  edit("config.json", "\"vocab_size\"", "\"eos_token_id\": 512, \"vocab_size\"");
  expect_model_refused(model(), "512");
}

TEST_F(E2eHostileModel, TokenizerThatIsBroken) {
  const std::string whole = slurp(model() / "tokenizer.json");
  put(model() / "tokenizer.json", whole.substr(0, whole.size() / 2));
  expect_model_refused(model(), "tokenizer.json");
  expect_refused(run_program({"tokenize", model(), "x"}), "tokenizer.json");
  put(model() / "tokenizer.json", replaced(whole, "\"BPE\"", "\"WordPiece\""));
  expect_model_refused(model(), "WordPiece");
}

TEST_F(E2eHostileModel, TokenizerOfAnotherModel) {
  edit("tokenizer.json", ": 511", ": 512");
  expect_model_refused(model(), "tokenizer.json");
}

TEST_F(E2eHostileModel, NoTokenizer) {
  fs::remove(model() / "tokenizer.json");
  expect_refused(run_program({"run", model(), "-p", "x"}), "tokenizer");
  expect_refused(run_program({"logits", model(), "-p", "x"}), "tokenizer");
  expect_refused(run_program({"embed", model(), "-p", "x"}), "tokenizer");
  expect_refused(run_program({"tokenize", model(), "x"}), "tokenizer");
  expect_ok(run_program({"logits", model(), "--ids", "1,2,3"}));
}

TEST_F(E2eHostileModel, WeightsThatAreNotFinite) {
  std::string bytes = slurp(weights());
  for (size_t i = bytes.size() - 128; i < bytes.size(); ++i) bytes[i] = '\x7f';  // the final norm's gains, all NaN
  put(weights(), bytes);
  for (const Arguments& arguments : model_commands(model())) expect_refused(run_program(arguments), "finite");
}

TEST_F(E2eHostileModel, GenerationConfigThatIsBroken) {
  put(model() / "generation_config.json", R"({"do_sample": true, "temperature": "hot"})");
  expect_model_refused(model(), "temperature");
}

TEST(E2eBadModel, Nowhere) {
  expect_model_refused("/nonexistent/model", "/nonexistent/model");
  expect_model_refused("no-such-name", "no-such-name");
}

TEST(E2eBadModel, EmptyFolder) {
  const TempFolder folder;
  expect_model_refused(folder.path(), "config.json");
}

TEST(E2eBadModel, FilesOfAnotherKind) {
  const TempFolder folder;
  for (const char* name : {"model.txt", "model.bin"}) {
    for (const std::string& bytes : {std::string(), std::string("hello"), std::string(5000, '\xff')}) {
      put(folder / name, bytes);
      expect_refused(run_program({"run", folder / name, "-p", "x"}), name);
    }
  }
  expect_model_refused(folder / "model.bin", "model.bin");
}

TEST(E2eBadModel, ANameOfTwoLinesIsReportedInOne) { expect_model_refused("two\nlines", "two\\nlines"); }

TEST(E2eBadModel, TruncatedLlama2c) {
  const fs::path data = outside_data() / "models/stories260K";
  if (outside_data().empty()) GTEST_SKIP() << "outside data folder is absent";
  const TempFolder folder;
  const std::string whole = slurp(data / "stories260K.bin");
  for (const size_t keep : {size_t{20}, size_t{28}, whole.size() / 2, whole.size() - 4}) {
    put(folder / "model.bin", whole.substr(0, keep));
    expect_model_refused(folder / "model.bin", "model.bin");
  }
  expect_model_refused(data / "stories260K_q8.bin", "int8");
}

// ---- options ------------------------------------------------------------------------------------------------------

struct BadOption {
  Arguments arguments;
  std::string needle;
};

void expect_each_refused(const std::string& command, const std::vector<BadOption>& cases) {
  for (const BadOption& bad : cases) {
    Arguments arguments{command, "tales"};
    arguments.insert(arguments.end(), bad.arguments.begin(), bad.arguments.end());
    expect_refused(run_program(arguments), bad.needle);
  }
}

TEST(E2eBadOption, PromptOfRun) {
  expect_each_refused("run", {{{"-p", ""}, "empty"},
                              {{}, "-p: nothing is given"},
                              {{"-p"}, "-p"},
                              {{"-p", "x", "surplus"}, "surplus"},
                              {{"-f", "/nonexistent/prompt.txt"}, "/nonexistent/prompt.txt"},
                              {{"--ids", "4096"}, "4096"},
                              {{"--ids", "-1"}, "-1"},
                              {{"--ids", "1,x"}, "--ids"},
                              {{"--ids", "99999999999"}, "--ids"},
                              {{"--ids", ","}, "--ids"},
                              {{"-p", "Once upon a time there was", "--ctx", "3"}, "3"}});
}

TEST(E2eBadOption, SettingsOfRun) {
  std::vector<BadOption> cases{{{"--ctx", "1025"}, "--ctx"},
                               {{"--ctx", "-1"}, "--ctx"},
                               {{"-n", "0"}, "-n"},
                               {{"-n", "-2"}, "-n"},
                               {{"-n", "many"}, "many"},
                               {{"--nonsense"}, "--nonsense"},
                               {{"--cache", "hash"}, "hash"},
                               {{"--kv-type", "f31"}, "f31"},
                               {{"-ctk", "f31"}, "f31"},
                               {{"-ctv", "f31"}, "f31"},
                               {{"--weights", "light"}, "--weights"},
                               {{"--threads", "-1"}, "threads"},
                               {{"--threads", "100000"}, "threads"},
                               {{"--prefill-chunk", "0"}, "--prefill-chunk"},
                               {{"--tokenizer", "/nonexistent/tokenizer.json"}, "/nonexistent/tokenizer.json"}};
  for (BadOption& bad : cases) bad.arguments.insert(bad.arguments.begin(), {"-p", "x"});
  expect_each_refused("run", cases);
}

TEST(E2eBadOption, SamplingOfRun) {
  std::vector<BadOption> cases{{{"--temp", "-1"}, "--temp"},
                               {{"--temp", "nan"}, "--temp"},
                               {{"--top-p", "1.5"}, "--top-p"},
                               {{"--top-k", "-1"}, "--top-k"},
                               {{"--min-p", "2"}, "--min-p"},
                               {{"--repeat-penalty", "0"}, "--repeat-penalty"},
                               {{"--repeat-last-n", "-2"}, "--repeat-last-n"},
                               {{"--seed", "-1"}, "--seed"},
                               {{"--seed", "x"}, "--seed"}};
  for (BadOption& bad : cases) bad.arguments.insert(bad.arguments.begin(), {"-p", "x", "-n", "1"});
  expect_each_refused("run", cases);
}

TEST(E2eBadOption, OfLogits) {
  const TempFolder folder;
  const std::vector<BadOption> cases{
      {{}, "-p: nothing is given"},
      {{"-p", ""}, "empty"},
      {{"--ids", "4096"}, "4096"},
      {{"--ids", "0,-7"}, "-7"},
      {{"--ids", "one"}, "--ids"},
      {{"-p", "x", "--ctx", "5000"}, "--ctx"},
      {{"-p", "x", "--cache", "hash"}, "hash"},
      {{"-p", "x", "--kv-type", "f31"}, "f31"},
      {{"-p", "x", "--out", "/nonexistent/x.npy"}, "/nonexistent/x.npy"},
      {{"-p", "x", "--out", folder.path()}, folder.path()},
      {{"-p", "x", "--out", "/dev/full"}, "/dev/full"},
      {{"-f", "/nonexistent/prompt.txt"}, "/nonexistent/prompt.txt"},
  };
  expect_each_refused("logits", cases);
  EXPECT_EQ(folder.count(), 0u);
}

TEST(E2eBadOption, OfEmbed) {
  expect_refused(run_program({"embed", "tales"}), "-p: nothing is given");
  expect_refused(run_program({"embed", "tales", "-p", ""}), "empty");
  expect_refused(run_program({"embed", "tales", "--ids", "4096"}), "4096");
  expect_refused(run_program({"embed", "tales", "-p", "x", "--pooling", "max"}), "--pooling");
  expect_refused(run_program({"embed", "tales", "-p", "x", "--ctx", "5000"}), "--ctx");
  expect_refused(run_program({"embed", "tales", "-p", "x", "--out", "/nonexistent/x.npy"}), "/nonexistent/x.npy");
}

TEST(E2eBadOption, OfTokenize) {
  expect_refused(run_program({"tokenize", "tales"}), "TEXT");
  expect_refused(run_program({"tokenize", "tales", "x", "--stdin"}), "--stdin");
  expect_refused(run_program({"tokenize", "tales", "x", "--ids", "1"}), "--ids");
  expect_refused(run_program({"tokenize", "tales", "--ids", "4096"}), "4096");
  expect_refused(run_program({"tokenize", "tales", "--ids", "-1"}), "-1");
  expect_refused(run_program({"tokenize", "tales", "--ids", "x"}), "--ids");
}

TEST(E2eBadOption, OfSynth) {
  const TempFolder folder;
  const std::string out = folder / "out";
  expect_refused(run_program({"synth"}), "SHAPE");
  expect_refused(run_program({"synth", "tiny"}), "OUT");
  expect_refused(run_program({"synth", "huge", out}), "huge");
  expect_refused(run_program({"synth", "tiny", out, "--dtype", "q4_0"}), "q4_0");
  expect_refused(run_program({"synth", "tiny", out, "--seed", "-1"}), "--seed");
  expect_refused(run_program({"synth", "tiny", "/nonexistent/a/b"}), "/nonexistent/a/b");
  expect_refused(run_program({"synth", "tiny", ""}), "OUT");
  EXPECT_EQ(folder.count(), 0u);
  put(folder / "phi.json", R"({"model_type": "phi", "vocab_size": 10})");
  expect_refused(run_program({"synth", folder / "phi.json", out}), "phi");
  put(folder / "out", "a file");
  expect_refused(run_program({"synth", "tiny", out}), out);
  EXPECT_EQ(slurp(out), "a file");
  EXPECT_EQ(folder.count(), 2u);
  fs::create_directory(folder / "here");
  How how;
  how.folder = folder / "here";
  expect_refused(run_program({"synth", "tiny", "."}, how), "current folder");
}

TEST(E2eBadOption, AFlagThatNoCommandHas) {
  for (const std::string& name : command_names()) expect_refused(run_program({name, "--no-such-flag"}), "--");
}

TEST(E2eBadOption, UnknownCpuTarget) {
  How how;
  how.environment["KVASIR_CPU"] = "abacus";
  for (const char* command : {"run", "logits", "embed"})
    expect_refused(run_program({command, "tales", "-p", "x"}, how), "abacus");
}

// ---- output -------------------------------------------------------------------------------------------------------

std::vector<Arguments> printing_commands() {
  return {{"run", "tales", "-p", "x", "-n", "4"},
          {"run", "tales", "-p", "x", "-n", "4", "--json"},
          {"logits", "tales", "-p", "x"},
          {"embed", "tales", "-p", "x"},
          {"tokenize", "tales", "x"},
          {"--help"},
          {"run", "--help"},
          {"--version"}};
}

TEST(E2eOutput, AFullDeviceIsAnError) {
  How how;
  how.output = "/dev/full";
  for (const Arguments& arguments : printing_commands()) expect_refused(run_program(arguments, how), "stdout");
}

TEST(E2eOutput, AClosedOneIsAnError) {
  How how;
  how.close_output = true;
  for (const Arguments& arguments : printing_commands()) expect_refused(run_program(arguments, how), "stdout");
}

TEST(E2eOutput, WhatIsPrintedNeverEndsUpInTheNextFileOpened) {
  const TempFolder folder;
  expect_ok(run_program({"logits", "tales", "--ids", "5,6", "--out", folder / "good.npy"}));
  How how;
  how.close_output = true;
  EXPECT_EQ(run_program({"logits", "tales", "--ids", "5,6", "--out", folder / "other.npy"}, how).code, 2);
  EXPECT_EQ(slurp(folder / "other.npy"), slurp(folder / "good.npy"));
}

}  // namespace
}  // namespace kvasir::e2e
