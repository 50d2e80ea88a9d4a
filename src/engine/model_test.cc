// Opening models: what is found, what is refused and with which text, the fingerprint and where it is stored.
#include <kvasir/model.h>
#include <xxhash.h>

#include <fstream>
#include <set>

#include <fmt/format.h>

#include "base/rss.h"
#include "base/system.h"
#include "tests/support/engines.h"

namespace kvasir {
namespace {

namespace fs = std::filesystem;
using engine_test::AllOf;
using engine_test::HasSubstr;
using engine_test::message_of;
using engine_test::with_tokenizer;
using engine_test::with_weights;
using tiny::ScopedEnv;
using tiny::TempFolder;

std::string error_of(const fs::path& path, const ModelOptions& options = {}) {
  return message_of(Model::open(path.string(), options));
}

TEST(Model, OpensTheShippedOnes) {
  const ScopedEnv models("KVASIR_MODELS", KVASIR_SOURCE_DIR "/models");
  const auto tales = Model::open("tales");
  ASSERT_TRUE(tales) << message_of(tales);
  const ModelInfo& info = (*tales)->info();
  EXPECT_EQ(info.name, "tales");
  EXPECT_EQ(info.family, "llama");
  EXPECT_EQ(info.weight_type, "bf16");
  EXPECT_EQ(info.layers, 6);
  EXPECT_EQ(info.kv_heads, 2);
  EXPECT_EQ(info.max_ctx, 1024);
  EXPECT_EQ(info.bos, 0);
  EXPECT_EQ(info.eos, std::vector<int>{0});
  EXPECT_EQ((*tales)->sampling_defaults().temperature, 0.7);
  EXPECT_EQ((*tales)->sampling_defaults().top_p, 0.95);
  EXPECT_EQ((*tales)->sampling_defaults().top_k, 0) << "absent keys are off";
  ASSERT_NE((*tales)->tokenizer(), nullptr);
  EXPECT_EQ(info.tokenizer_bytes > 0, heap_bytes() > 0) << "a sanitizer's heap may not count";
  const auto gpt2 = Model::open("tales-gpt2");
  ASSERT_TRUE(gpt2) << message_of(gpt2);
  EXPECT_EQ((*gpt2)->info().family, "gpt2");
}

TEST(Model, NamesAreLookedForInTheFolderOfModels) {
  const TempFolder folder;
  tiny::llama().write(folder / "mine");
  const ScopedEnv models("KVASIR_MODELS", folder.path().string());
  const auto found = find_model("mine");
  ASSERT_TRUE(found) << message_of(found);
  EXPECT_TRUE(fs::equivalent(*found, folder / "mine"));
  EXPECT_EQ(*find_model((folder / "mine").string()), (folder / "mine").string()) << "a path is taken as it is";
  EXPECT_THAT(message_of(find_model("yours")), AllOf(HasSubstr("yours"), HasSubstr("tales")));
  EXPECT_THAT(message_of(find_model("not/here")), HasSubstr("kvasir pull not/here"));
  EXPECT_FALSE(find_model(""));
}

TEST(Model, OneThatHasBeenPulledIsFoundByItsName) {
  const TempFolder cache;
  const std::string commit(40, 'c');
  const fs::path repo = cache / "models--fox--tiny", snapshot = repo / "snapshots" / commit;
  fs::create_directories(snapshot);
  tiny::llama().write(snapshot);
  fs::create_directories(repo / "refs");
  tiny::put(repo / "refs" / "main", commit);
  const ScopedEnv hub("HF_HUB_CACHE", cache.path().string());
  EXPECT_EQ(*find_model("fox/tiny"), snapshot.string());
  const auto opened = Model::open("fox/tiny");
  ASSERT_TRUE(opened) << message_of(opened);
  EXPECT_EQ((*opened)->info().name, "fox/tiny");
  EXPECT_FALSE(find_model("fox/other"));
  EXPECT_FALSE(find_model("fox/tiny:Q8_0"));
}

TEST(Model, RefusalsSayWhatIsMissing) {
  const TempFolder folder;
  EXPECT_THAT(error_of(folder / "nowhere"), HasSubstr("nowhere"));
  EXPECT_THAT(error_of(folder.path()), HasSubstr("config.json"));
  tiny::put(folder / "notes.txt", "text");
  EXPECT_THAT(error_of(folder / "notes.txt"), AllOf(HasSubstr("notes.txt"), HasSubstr("Hugging Face")));
  tiny::put(folder / "bad.bin", "short");
  EXPECT_THAT(error_of(folder / "bad.bin"), HasSubstr("bad.bin"));
  tiny::put(folder / "config.json", tiny::llama().config);
  EXPECT_THAT(error_of(folder.path()), HasSubstr("safetensors"));
  tiny::Model model = tiny::llama();
  model.edit_config("\"llama\"", "\"mamba\"");
  model.write(folder / "mamba");
  EXPECT_THAT(error_of(folder / "mamba"), AllOf(HasSubstr("mamba"), HasSubstr("gpt2")));
  model = tiny::llama();
  model.erase("model.norm.weight");
  model.write(folder / "holed");
  EXPECT_THAT(error_of(folder / "holed"), AllOf(HasSubstr("norm.weight"), HasSubstr("missing")));
  tiny::llama().write(folder / "whole");
  EXPECT_THAT(error_of(folder / "whole", with_tokenizer((folder / "none.json").string())), HasSubstr("none.json"));
  EXPECT_THAT(error_of(folder / "whole", with_tokenizer(KVASIR_SOURCE_DIR "/models/tales/tokenizer.json")),
              AllOf(HasSubstr("4096"), HasSubstr("50")));
  tiny::put(folder / "whole/generation_config.json", R"({"temperature":-1})");
  EXPECT_THAT(error_of(folder / "whole"), HasSubstr("temperature"));
}

TEST(Model, WithoutATokenizerOnlyIdsWork) {
  engine_test::Opened opened(tiny::llama());
  EXPECT_EQ(opened.model().tokenizer(), nullptr);
  EXPECT_EQ(opened.model().info().tokenizer_bytes, 0u);
  Session session = opened.session();
  const auto g = generate(opened.engine(), session, tiny::ids(4), engine_test::greedy_tokens(3));
  ASSERT_TRUE(g) << message_of(g);
  EXPECT_EQ(g->text, "");
  EXPECT_EQ(g->tokens.size(), 3u);
}

TEST(Model, GenerationConfigDecidesTheEndAndTheDefaults) {
  const TempFolder folder;
  tiny::llama().write(folder.path());
  EXPECT_EQ((*Model::open(folder.path().string()))->info().eos, std::vector<int>{7});
  EXPECT_EQ((*Model::open(folder.path().string()))->sampling_defaults().temperature, SamplingParams{}.temperature);
  tiny::put(folder / "generation_config.json", R"({"eos_token_id":[3,4],"do_sample":true,"temperature":0.6,"top_k":20,
      "top_p":0.9,"repetition_penalty":1.1})");
  auto model = *Model::open(folder.path().string());
  EXPECT_EQ(model->info().eos, (std::vector<int>{3, 4}));
  EXPECT_EQ(model->sampling_defaults().temperature, 0.6);
  EXPECT_EQ(model->sampling_defaults().top_k, 20);
  EXPECT_EQ(model->sampling_defaults().top_p, 0.9);
  EXPECT_EQ(model->sampling_defaults().repeat_penalty, 1.1);
  tiny::put(folder / "generation_config.json", R"({"temperature":0.6})");
  model = *Model::open(folder.path().string());
  EXPECT_EQ(model->info().eos, std::vector<int>{7});
  EXPECT_EQ(model->sampling_defaults().temperature, 0) << "do_sample is off";
}

TEST(Model, NumbersOfTheLayers) {
  for (const tiny::Model& model : {tiny::llama(), tiny::gpt2()}) {
    const TempFolder folder;
    model.write(folder.path());
    const ModelInfo info = (*Model::open(folder.path().string()))->info();
    const bool llama = info.family == "llama";
    const int attention = info.hidden * info.head_dim * 2 * (info.heads + info.kv_heads);
    EXPECT_EQ(info.layer_weights, info.layers * (attention + (llama ? 3 : 2) * info.hidden * info.ffn)) << info.family;
    EXPECT_EQ(info.takes_window, llama) << info.family;
  }
}

TEST(Model, WeightModes) {
  const TempFolder folder;
  tiny::llama().write(folder.path());
  const std::string path = folder.path().string();
  EXPECT_EQ((*Model::open(path, with_weights("resident")))->info().weights_mode, WeightsMode::resident);
  EXPECT_EQ((*Model::open(path, with_weights("mapped")))->info().weights_mode, WeightsMode::mapped);
  ASSERT_GT(available_memory_bytes(), size_t{1} << 20);
  EXPECT_EQ((*Model::open(path))->info().weights_mode, WeightsMode::resident) << "a few KB fit";
}

// ---- fingerprints ------------------------------------------------------------------------------------------------

std::string fingerprint(const fs::path& folder, const std::string& weights) {
  const auto model = Model::open(folder.string(), with_weights(weights));
  EXPECT_TRUE(model) << message_of(model);
  return *(*model)->fingerprint();
}

TEST(Fingerprint, TheSameForTheSameWeightsHoweverTheyLie) {
  for (const tiny::Model& model : {tiny::llama(codec_bf16()), tiny::gpt2()}) {
    const TempFolder folder;
    const ScopedEnv remembered("XDG_CACHE_HOME", "/proc/nowhere");  // nothing is stored
    model.write(folder / "one");
    model.write_sharded(folder / "many");
    const std::string expected = fingerprint(folder / "one", "resident");
    EXPECT_EQ(expected.size(), 32u);
    for (const char* weights : {"resident", "mapped", "streamed"})
      for (const char* form : {"one", "many"}) EXPECT_EQ(fingerprint(folder / form, weights), expected) << weights;
  }
}

TEST(Fingerprint, AnotherForAnyOtherWeightTypeOrNumber) {
  const ScopedEnv remembered("XDG_CACHE_HOME", "/proc/nowhere");
  std::set<std::string> seen;
  const auto add = [&](const tiny::Model& model) {
    const TempFolder folder;
    model.write(folder.path());
    EXPECT_TRUE(seen.insert(fingerprint(folder.path(), "mapped")).second) << seen.size();
  };
  add(tiny::llama());
  add(tiny::llama(codec_f16()));
  add(tiny::llama(codec_bf16()));
  add(tiny::gpt2());
  for (const char* name : {"model.embed_tokens.weight", "model.layers.1.self_attn.o_proj.weight", "lm_head.weight",
                           "model.layers.0.input_layernorm.weight", "model.norm.weight"}) {
    tiny::Model model = tiny::llama();
    model.at(name).values.back() += 0.25f;
    add(model);
  }
  tiny::Model model = tiny::llama();
  model.edit_config("1000.0", "1001.0");
  add(model);
  model = tiny::llama();
  model.edit_config("1e-5", "2e-5");
  add(model);
}

TEST(Fingerprint, IsRememberedUntilTheFileChanges) {
  const TempFolder folder;
  const ScopedEnv remembered("XDG_CACHE_HOME", (folder / "cache").string());
  tiny::llama().write(folder / "model");
  const std::string expected = fingerprint(folder / "model", "mapped");
  std::vector<fs::path> stored;
  for (const auto& entry : fs::directory_iterator(folder / "cache" / "kvasir")) stored.push_back(entry.path());
  ASSERT_EQ(stored.size(), 1u);
  std::string text = tiny::slurp(stored[0]);
  ASSERT_NE(text.find(expected), std::string::npos);
  const std::string other(32, 'a');
  // Dated far in the future: a value computed right after the file was written is not trusted.
  text = text.substr(0, text.find('\n') + 1) + other + "\n9000000000000000000\n";
  tiny::put(stored[0], text += fmt::format("{:016x}\n", XXH3_64bits(text.data(), text.size())));
  EXPECT_EQ(fingerprint(folder / "model", "resident"), other) << "taken from the file, whatever the mode";
  tiny::put(stored[0], "another model\n" + other + "\n");
  EXPECT_EQ(fingerprint(folder / "model", "mapped"), expected) << "a file that is not about these weights";
  tiny::put(stored[0], text);
  const fs::path weights = folder / "model" / "model.safetensors";
  fs::last_write_time(weights, fs::last_write_time(weights) + std::chrono::seconds(5));
  EXPECT_EQ(fingerprint(folder / "model", "mapped"), expected) << "a touched file is read again";
}

}  // namespace
}  // namespace kvasir
