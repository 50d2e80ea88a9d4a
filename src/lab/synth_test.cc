// Synthetic models: the generator against published vectors, the files byte for byte, logits of a forward pass.
#include "lab/synth.h"

#include <gmock/gmock.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include <kvasir/engine.h>

#include "base/philox.h"
#include "format/safetensors.h"
#include "lab/synth_content.h"
#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

using format_test::message_of;
using format_test::put;
using format_test::slurp;
using format_test::TempFolder;
using testing::HasSubstr;

std::string hash_of(const std::string& bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

ModelConfig config_of(const std::string& shape) {
  const auto view = ConfigView::parse(synth_config_json(shape, "float32").value(), shape).value();
  return find_family(view).value()->parse_config(view).value();
}

// Random123's kat_vectors, philox4x32 with 10 rounds.
TEST(Philox, KnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, ~uint64_t{0}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(SynthFill, DoesNotDependOnHowItIsCut) {
  std::vector<float> whole(1003), part(1003);
  synth_fill(7, 3, 0, {0.0f, 1.0f}, whole);
  for (size_t at = 0; at < part.size(); at += 44)
    synth_fill(7, 3, at, {0.0f, 1.0f}, std::span(part).subspan(at, std::min<size_t>(44, part.size() - at)));
  EXPECT_EQ(whole, part);
}

TEST(SynthFill, EveryTensorAndSeedIsItsOwn) {
  std::vector<std::vector<float>> all;
  for (const auto& [seed, tensor, first] : std::vector<std::tuple<uint64_t, uint32_t, uint64_t>>{
           {0, 0, 0}, {1, 0, 0}, {uint64_t{1} << 32, 0, 0}, {0, 1, 0}, {0, 0, 4}, {0, 0, uint64_t{1} << 34}}) {
    all.emplace_back(64);
    synth_fill(seed, tensor, first, {0.0f, 1.0f}, all.back());
  }
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_NE(all[i], all[j]) << i << " " << j;
}

TEST(SynthFill, HasTheDeviationThatIsAskedFor) {
  const TensorSpec matrix{"m.weight", {300, 400}};
  std::vector<float> values(120000);
  synth_fill(5, 2, 0, synth_values(matrix, false), values);
  double sum = 0, squares = 0;
  for (float x : values) sum += double{x}, squares += double{x} * double{x};
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0.0, 5e-4);
  EXPECT_NEAR(std::sqrt(squares / n), 0.9 / 20.0, 3e-4);
  const TensorSpec conv1d{"c.weight", {100, 400}, true};
  EXPECT_EQ(synth_values(conv1d, false).spread, synth_values({"m.weight", {400, 100}}, false).spread);
}

TEST(SynthShapes, HaveTheNumbersOfTheRealModels) {
  const std::vector<std::pair<std::string, int64_t>> parameters{
      {"gpt2", 124439808}, {"smollm2-135m", 134515008}, {"llama-1b", 1235814400}};
  for (const auto& [shape, expected] : parameters) {
    const ModelConfig config = config_of(shape);
    const auto view = ConfigView::parse(synth_config_json(shape, "float32").value(), shape).value();
    const TensorTable table = find_family(view).value()->tensor_table(config);
    std::set<std::string> seen;
    int64_t total = 0;
    const auto add = [&](const std::vector<TensorSpec>& specs) {
      for (const TensorSpec& s : specs)
        if (s.present && seen.insert(s.name).second) total += s.shape[0] * (s.shape.size() == 2 ? s.shape[1] : 1);
    };
    add(table.embed);
    for (const auto& layer : table.layers) add(layer);
    add(table.head);
    EXPECT_EQ(total, expected) << shape;
  }
}

TEST(SynthShapes, EqualThePublishedConfigs) {
  const auto folder = format_test::outside_data() / "hf-configs";
  if (format_test::outside_data().empty()) GTEST_SKIP() << "outside data folder is absent";
  for (const auto& [shape, file] : std::vector<std::pair<std::string, std::string>>{
           {"gpt2", "gpt2"}, {"smollm2-135m", "smollm2_135m"}, {"llama-1b", "llama3_2_1b"}}) {
    const ModelConfig ours = config_of(shape), theirs = config_of(folder / (file + ".config.json"));
    EXPECT_EQ(ours.canonical(), theirs.canonical());
    EXPECT_EQ(ours.max_ctx, theirs.max_ctx);
  }
}

TEST(SynthConfig, HasNoIdsThatBeginOrEndAText) {
  const TempFolder folder;
  put(folder / "config.json", R"({"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": 300,
                                  "n_positions": 16, "bos_token_id": 1, "eos_token_id": [2, 999], "pad_token_id": 3})");
  const std::string json = synth_config_json(folder / "config.json", "float16").value();
  for (const char* key : {"bos", "eos", "pad"}) EXPECT_THAT(json, testing::Not(HasSubstr(key)));
  EXPECT_THAT(json, HasSubstr(R"("torch_dtype": "float16")"));
}

// ---- the folder ---------------------------------------------------------------------------------------------------

class Synth : public testing::Test {
 protected:
  std::shared_ptr<const Model> make(const std::string& shape, const std::string& dtype, uint64_t seed) {
    const auto out = folder_ / fmt::format("{}-{}-{}", shape, dtype, seed);
    const auto done = synthesize({.shape = shape, .out = out, .dtype = dtype, .seed = seed});
    EXPECT_TRUE(done) << message_of(done);
    auto model = Model::open(out);
    EXPECT_TRUE(model) << message_of(model);
    return model ? *model : nullptr;
  }
  TempFolder folder_;
};

// The files of another machine, compiler or version are these, byte for byte.
TEST_F(Synth, WritesTheSameBytesEverywhere) {
  const std::vector<std::tuple<std::string, std::string, std::string>> pinned{
      {"tiny", "f32", "ed7f0c09b8ccab7976800f13bc7e8bd9"},
      {"tiny-k", "bf16", "8fa65f39fc575f4598252c4f310d9a39"},
      {"tiny", "f16", "e990d77ff6ef1f1894a9451b561e0778"},
      {"tiny", "bf16", "335d35be7f735c208fe4c907ebe2cc6a"},
      {"tiny-gpt2", "f32", "f9039810498b379b8040f82266b1f56b"}};
  for (const auto& [shape, dtype, hash] : pinned) {
    const auto model = make(shape, dtype, 20);
    EXPECT_EQ(hash_of(slurp(std::filesystem::path(model->info().path) / "model.safetensors")), hash) << shape << dtype;
  }
}

TEST_F(Synth, GainsAreNearOneAndAllDifferent) {
  const auto model = make("tiny", "f32", 4);
  const auto dir = open_safetensors(model->info().path).value();
  std::set<float> seen;
  size_t gains = 0;
  for (const TensorInfo& tensor : dir.tensors) {
    if (tensor.shape.size() != 1) continue;
    std::vector<float> values(static_cast<size_t>(tensor.shape[0]));
    tensor.codec->decode(dir.data(tensor).data(), values.data(), tensor.shape[0]);
    for (float x : values) EXPECT_NEAR(x, 1.0f, 0.1f);
    seen.insert(values.begin(), values.end());
    gains += values.size();
  }
  EXPECT_EQ(gains, 5u * 64u);
  EXPECT_GT(seen.size(), gains - 5);
}

TEST_F(Synth, RowsOfTinyKAreWholeBlocksOfTheKTypes) {
  const auto model = make("tiny-k", "bf16", 1);
  const auto dir = open_safetensors(model->info().path).value();
  int matrices = 0;
  for (const TensorInfo& tensor : dir.tensors) {
    if (tensor.shape.size() != 2) continue;
    EXPECT_EQ(tensor.shape[1] % find_codec("q4_k")->block_elems, 0) << tensor.name;
    ++matrices;
  }
  EXPECT_EQ(matrices, 1 + 4 * 7);
}

TEST_F(Synth, ATokenIsAByteOrFiller) {
  const auto model = make("tiny", "bf16", 1);
  const Tokenizer& tokenizer = *model->tokenizer();
  EXPECT_EQ(tokenizer.vocab_size(), 512);
  EXPECT_EQ(tokenizer.bos(), std::nullopt);
  std::string all;
  std::vector<int> expected;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
    expected.push_back(byte);
  }
  EXPECT_EQ(tokenizer.encode(all).value(), expected);
  EXPECT_EQ(tokenizer.decode(expected).value(), all);
  std::set<std::string> pieces;
  for (int id = 0; id < 512; ++id) {
    pieces.insert(tokenizer.piece(id));
    EXPECT_FALSE(tokenizer.is_special(id));
  }
  EXPECT_EQ(pieces.size(), 512u);
  EXPECT_EQ(tokenizer.token_text(300), " 300");
  EXPECT_EQ(tokenizer.encode(" 300").value().size(), 4u) << "filler is never encoded";
  EXPECT_TRUE(model->info().eos.empty());
  EXPECT_FALSE(model->info().bos);
}

TEST_F(Synth, LogitsAreFiniteAndSpreadAndDependOnTheText) {
  for (const char* shape : {"tiny", "tiny-k", "tiny-gpt2"}) {
    const auto model = make(shape, "f16", 6);
    const auto engine = Engine::create(model, {.threads = 1}).value();
    std::vector<float> rows;
    for (const char* text : {"Hello", "Jello", "Hellp"}) {
      auto session = engine->open_session().value();
      FeedOutput out;
      ASSERT_TRUE(engine->prefill(session, model->tokenizer()->encode(text).value(), &out));
      rows.insert(rows.end(), out.logits.begin(), out.logits.end());
    }
    const auto row = [&](size_t i) { return std::vector<float>(&rows[i * 512], &rows[i * 512] + 512); };
    double squares = 0;
    for (float x : rows) squares += double{x} * double{x};
    EXPECT_GT(std::sqrt(squares / 1536.0), 0.5);
    EXPECT_LT(std::sqrt(squares / 1536.0), 3.0);
    for (size_t i = 0; i < 512; ++i) {
      EXPECT_NE(row(0)[i], row(1)[i]) << "the first byte is attended to";
      EXPECT_NE(row(0)[i], row(2)[i]);
    }
  }
}

TEST_F(Synth, ASmallVocabularyHasNoTokenizer) {
  put(folder_ / "c.json", R"({"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": 255,
                              "n_positions": 16})");
  ASSERT_TRUE(synthesize({.shape = folder_ / "c.json", .out = folder_ / "m"}));
  const auto model = Model::open(folder_ / "m");
  ASSERT_TRUE(model) << message_of(model);
  EXPECT_EQ((*model)->tokenizer(), nullptr);
}

TEST_F(Synth, UntiedHeadsAndBiasesAreWritten) {
  put(folder_ / "c.json", R"({"model_type": "llama", "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
                              "num_attention_heads": 2, "vocab_size": 260, "attention_bias": true, "mlp_bias": true})");
  ASSERT_TRUE(synthesize({.shape = folder_ / "c.json", .out = folder_ / "m"}));
  const auto dir = open_safetensors(folder_ / "m").value();
  for (const char* name : {"lm_head.weight", "model.embed_tokens.weight", "model.norm.weight",
                           "model.layers.0.self_attn.q_proj.bias", "model.layers.0.mlp.down_proj.bias"})
    EXPECT_NE(dir.find(name), nullptr) << name;
  EXPECT_TRUE(Model::open(folder_ / "m"));
}

TEST_F(Synth, ReportsProgressToTheEnd) {
  uint64_t last = 0, all = 1;
  const auto watch = [&](uint64_t done, uint64_t total) {
    EXPECT_GT(done, last);
    last = done;
    all = total;
  };
  ASSERT_TRUE(synthesize({.shape = "tiny", .out = folder_ / "m", .dtype = "f32", .progress = watch}));
  EXPECT_EQ(last, all);
  EXPECT_EQ(all, 106816u * 4u);
}

TEST_F(Synth, RefusesAndLeavesNothing) {
  const auto refused = [&](SynthOptions options) {
    if (options.out.empty()) options.out = folder_ / "m";
    return message_of(synthesize(options));
  };
  EXPECT_THAT(refused({.shape = "tiny", .dtype = "q8_0"}), HasSubstr("q8_0"));
  EXPECT_THAT(refused({.shape = "gpt5"}), HasSubstr("gpt2, smollm2-135m, llama-1b"));
  EXPECT_THAT(refused({.shape = "tiny", .out = folder_ / "no/such/m"}), HasSubstr("no/such/m"));
  put(folder_ / "huge.json", R"({"model_type": "gpt2", "n_embd": 1048576, "n_layer": 4096, "n_head": 1024,
                                 "vocab_size": 300})");
  EXPECT_THAT(refused({.shape = folder_ / "huge.json"}), HasSubstr("bytes of disk"));
  EXPECT_EQ(folder_.count(), 1u);
  std::filesystem::create_directory(folder_ / "m");
  EXPECT_EQ(refused({.shape = "tiny"}), "no error") << "an empty folder is taken";
  EXPECT_THAT(refused({.shape = "tiny"}), HasSubstr("not empty"));
}

}  // namespace
}  // namespace kvasir
