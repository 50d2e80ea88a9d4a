// gpt-nano-sort: a trained GPT-2 of 3 layers with every intermediate tensor of one batch, as its own runtime computed
// it. Kvasir's traced values must be equal within rounding. oracle.py makes the files from the outside data.
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include <gtest/gtest.h>

#include "arch/network.h"
#include "tests/support/tiny_models.h"

namespace kvasir {
namespace {

using tiny::message_of;

constexpr size_t kBatch = 3, kTokens = 11, kChannels = 48, kHeads = 3, kHeadDim = 16, kVocab = 3;
constexpr double kTolerance = 1e-5;

struct Array {
  std::vector<size_t> shape;
  std::vector<float> values;
};

// Reads a little-endian float32 .npy of format 1.0 in C order, as NumPy saves it.
Array read_npy(const tiny::fs::path& path) {
  const std::string bytes = tiny::slurp(path);
  Array array;
  if (bytes.size() < 10 || !bytes.starts_with("\x93NUMPY\x01")) {
    ADD_FAILURE() << path << " is no .npy file";
    return array;
  }
  const size_t length = static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  const std::string header = bytes.substr(10, length);
  EXPECT_NE(header.find("'<f4'"), std::string::npos) << header;
  EXPECT_NE(header.find("'fortran_order': False"), std::string::npos) << header;
  size_t count = 1;
  for (size_t at = header.find('(') + 1; header[at] != ')';) {
    char* end = nullptr;
    array.shape.push_back(std::strtoul(header.c_str() + at, &end, 10));
    count *= array.shape.back();
    at = static_cast<size_t>(end - header.c_str());
    while (header[at] == ',' || header[at] == ' ') ++at;
  }
  array.values.resize(count);
  EXPECT_EQ(bytes.size(), 10 + length + count * sizeof(float));
  std::memcpy(array.values.data(), bytes.data() + 10 + length,
              std::min(bytes.size() - 10 - length, count * sizeof(float)));
  return array;
}

using Values = std::map<std::pair<int, std::string>, std::vector<float>>;

class GoldenNano : public testing::Test {
 protected:
  void SetUp() override {
    const tiny::fs::path data = tiny::outside_data() / "models/gpt-nano-sort";
    if (tiny::outside_data().empty() || !tiny::fs::exists(data)) GTEST_SKIP() << "outside data folder is absent";
    const std::string command =
        "PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 '" KVASIR_SOURCE_DIR "/tests/golden/oracle.py' --nano '" +
        (data / "gpt-nano-sort-model.json").string() + "' '" + (data / "gpt-nano-sort-t0-partials.json").string() +
        "' --out '" + folder_.path().string() + "'";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    open();
  }

  // Runs the batch in one pass and records [batch * tokens] rows of every traced value.
  void run() {
    const Array idx = stored("idx");
    ASSERT_EQ(idx.shape, (std::vector<size_t>{kBatch, kTokens}));
    std::vector<std::vector<int>> prompts(kBatch);
    for (size_t i = 0; i < idx.values.size(); ++i) prompts[i / kTokens].push_back(static_cast<int>(idx.values[i]));
    CacheShape shape = network_->family().cache_needs(network_->config());
    shape.k = shape.v = kv_type_of(codec_f32());
    std::vector<std::unique_ptr<Layout>> caches;
    std::vector<BatchItem> items;
    for (const auto& prompt : prompts) {
      caches.push_back(std::move(*(*find_layout("grow"))->make(shape)));
      items.push_back({caches.back().get(), 0, prompt});
    }
    const Trace trace = [&](int layer, std::string_view name, const Rows& rows) {
      std::vector<float>& flat = seen_[{layer, std::string(name)}];
      for (int t = 0; t < rows.n; ++t) flat.insert(flat.end(), rows.row(t), rows.row(t) + rows.cols);
    };
    Workspace workspace;
    std::vector<float> logits;
    for (const auto& prompt : prompts)
      logits.resize(logits.size() + prompt.size() * static_cast<size_t>(network_->config().vocab));
    Network::Output out{.logits = logits.data(), .errors = {}};
    const auto compute = std::move(*Compute::create(2));
    const auto done = network_->forward(items, *compute, workspace, &out, &trace);
    ASSERT_TRUE(done) << message_of(done);
    seen_[{-1, "logits"}] = logits;
  }

  Array stored(const std::string& name) const { return read_npy(folder_ / ("partials/" + name + ".npy")); }
  std::vector<float> seen(int layer, const std::string& name) const {
    const auto it = seen_.find({layer, name});
    EXPECT_NE(it, seen_.end()) << name << " of layer " << layer << " is not traced";
    return it == seen_.end() ? std::vector<float>() : it->second;
  }

  void expect_close(const std::vector<float>& ours, const Array& theirs, const std::string& name) const {
    ASSERT_EQ(ours.size(), theirs.values.size()) << name;
    double most = 0;
    for (size_t i = 0; i < ours.size(); ++i)
      most = std::max(most, std::fabs(static_cast<double>(ours[i]) - static_cast<double>(theirs.values[i])));
    EXPECT_LE(most, kTolerance) << name;
  }

  std::unique_ptr<Network> network_;
  std::shared_ptr<TensorDir> dir_;

 private:
  void open() {
    const auto view = ConfigView::read(folder_ / "config.json");
    ASSERT_TRUE(view) << message_of(view);
    const Family* family = *find_family(*view);
    const auto config = family->parse_config(*view);
    ASSERT_TRUE(config) << message_of(config);
    auto dir = open_safetensors(folder_.path());
    ASSERT_TRUE(dir) << message_of(dir);
    dir_ = std::make_shared<TensorDir>(std::move(*dir));
    auto network = Network::load(*family, *config, dir_, WeightsMode::resident, "gpt-nano-sort");
    ASSERT_TRUE(network) << message_of(network);
    network_ = std::move(*network);
  }

  tiny::TempFolder folder_;
  Values seen_;
};

TEST_F(GoldenNano, EveryTracedTensorIsTheStoredOne) {
  run();
  struct Pair {
    int layer;
    const char* ours;
    const char* theirs;
  };
  for (const Pair& p : {Pair{-1, "embedding", "x"},
                        {0, "ln_1", "ln1"},
                        {0, "qkv", "qkv"},
                        {0, "attention", "y"},
                        {0, "projection", "yProj"},
                        {0, "residual", "attnResid"},
                        {0, "ln_2", "ln2"},
                        {0, "fc", "fc"},
                        {0, "gelu", "gelu"},
                        {0, "mlp", "mlp"},
                        {0, "block", "mlpResid"},
                        {0, "block", "block0"},
                        {1, "block", "block1"},
                        {2, "block", "block2"},
                        {-1, "final_norm", "ln_f"},
                        {-1, "logits", "lm_head"}})
    expect_close(seen(p.layer, p.ours), stored(p.theirs), p.theirs);
}

// The embeddings are sums of the tables' rows, formed before the first traced value, so the rows are compared directly.
TEST_F(GoldenNano, EmbeddingsAreTheTablesRows) {
  const Array idx = stored("idx"), tokens = stored("tok_emb"), positions = stored("pos_emb");
  const auto row = [&](const char* table, size_t r) {
    const auto data = dir_->data(*dir_->find(table));
    return reinterpret_cast<const float*>(data.data()) + r * kChannels;
  };
  for (size_t t = 0; t < kBatch * kTokens; ++t)
    for (size_t d = 0; d < kChannels; ++d) {
      ASSERT_EQ(row("transformer.wte.weight", static_cast<size_t>(idx.values[t]))[d], tokens.values[t * kChannels + d]);
      ASSERT_EQ(row("transformer.wpe.weight", t % kTokens)[d], positions.values[t % kTokens * kChannels + d]);
    }
}

// An element of queries, keys or values by head, in the order of the stored tensors: [batch][head][token][channel].
float part_of(const std::vector<float>& qkv, size_t part, size_t b, size_t h, size_t t, size_t d) {
  return qkv[(b * kTokens + t) * 3 * kChannels + part * kChannels + h * kHeadDim + d];
}

TEST_F(GoldenNano, HeadsOfTheTracedQkvAreTheStoredOnes) {
  run();
  const std::vector<float> qkv = seen(0, "qkv");
  const char* names[] = {"q", "k", "v"};
  for (size_t part = 0; part < 3; ++part) {
    std::vector<float> ours;
    for (size_t b = 0; b < kBatch; ++b)
      for (size_t h = 0; h < kHeads; ++h)
        for (size_t t = 0; t < kTokens; ++t)
          for (size_t d = 0; d < kHeadDim; ++d) ours.push_back(part_of(qkv, part, b, h, t, d));
    expect_close(ours, stored(names[part]), names[part]);
  }
}

// Kvasir never forms the attention matrix, so the test computes it in double from the traced queries and keys.
TEST_F(GoldenNano, AttentionFromTheTracedQkvIsTheStoredOne) {
  run();
  const std::vector<float> qkv = seen(0, "qkv");
  const Array scores = stored("att"), weights = stored("attSm");
  ASSERT_EQ(scores.values.size(), kBatch * kHeads * kTokens * kTokens);
  for (size_t i = 0; i < kBatch * kHeads * kTokens; ++i) {
    const size_t b = i / (kHeads * kTokens), h = i / kTokens % kHeads, t = i % kTokens;
    std::vector<double> row;
    double total = 0;
    for (size_t s = 0; s <= t; ++s) {
      double dot = 0;
      for (size_t d = 0; d < kHeadDim; ++d)
        dot += static_cast<double>(part_of(qkv, 0, b, h, t, d)) * static_cast<double>(part_of(qkv, 1, b, h, s, d));
      row.push_back(dot / 4);
      total += std::exp(row.back());
    }
    for (size_t s = 0; s < kTokens; ++s) {
      const float score = scores.values[i * kTokens + s], weight = weights.values[i * kTokens + s];
      ASSERT_EQ(std::isfinite(score), s <= t) << "the mask";
      if (s <= t) {
        ASSERT_NEAR(static_cast<double>(score), row[s], kTolerance);
      }
      ASSERT_NEAR(static_cast<double>(weight), s <= t ? std::exp(row[s]) / total : 0.0, kTolerance);
    }
  }
}

TEST_F(GoldenNano, ProbabilitiesOfTheLogitsAreTheStoredOnes) {
  run();
  const std::vector<float> logits = seen(-1, "logits");
  const Array probabilities = stored("probs");
  ASSERT_EQ(logits.size(), probabilities.values.size());
  for (size_t t = 0; t < kBatch * kTokens; ++t) {
    double total = 0;
    for (size_t v = 0; v < kVocab; ++v) total += std::exp(static_cast<double>(logits[t * kVocab + v]));
    for (size_t v = 0; v < kVocab; ++v)
      ASSERT_NEAR(static_cast<double>(probabilities.values[t * kVocab + v]),
                  std::exp(static_cast<double>(logits[t * kVocab + v])) / total, kTolerance);
  }
}

}  // namespace
}  // namespace kvasir
