// The classic mistakes of KV caches, each made on purpose: verify (or bench) must catch every one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <kvasir/bench.h>
#include <kvasir/verify.h>

#include "arch/network.h"
#include "cache/layout.h"
#include "format/safetensors.h"

namespace kvasir {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A layout that forwards everything to dense; each mistake overrides what it gets wrong.
class Wrapped : public Layout {
 public:
  Wrapped(const LayoutInfo& info, const CacheShape& shape) : Layout(shape), info_(info) {
    inner_ = std::move(*(*find_layout("dense"))->make(shape));
  }
  const LayoutInfo& info() const override { return info_; }
  Result<std::unique_ptr<Growth>> prepare(int end) const override { return inner_->prepare(end); }
  void apply(std::unique_ptr<Growth> growth) override { inner_->apply(std::move(growth)); }
  Row row(int layer, int pos) override { return inner_->row(layer, pos); }
  void tiles(int layer, int end, std::vector<Tile>* out) const override { inner_->tiles(layer, end, out); }
  void commit(int length) override { inner_->commit(length); }
  int coverage() const override { return inner_->coverage(); }
  size_t bytes() const override { return inner_->bytes(); }
  size_t peak_bytes() const override { return inner_->peak_bytes(); }
  int capacity() const override { return inner_->capacity(); }
  int growths() const override { return inner_->growths(); }
  size_t copied_rows() const override { return inner_->copied_rows(); }

 protected:
  void cut(int length) override { (void)inner_->truncate(length); }

  const LayoutInfo& info_;
  std::shared_ptr<Layout> inner_;
};

// The length advances inside the layer loop: each layer of a decode step writes and reads one position further.
class LengthInLoop : public Wrapped {
 public:
  using Wrapped::Wrapped;
  Row row(int layer, int pos) override { return inner_->row(layer, std::min(pos + layer, shape().max_ctx - 1)); }
  void tiles(int layer, int end, std::vector<Tile>* out) const override {
    inner_->tiles(layer, std::min(end + layer, shape().max_ctx), out);
  }
};

// A decode mask with the shape of the new tokens only: it masks out all earlier positions.
class MaskOfNewTokens : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void tiles(int layer, int end, std::vector<Tile>* out) const override {
    inner_->tiles(layer, end, out);
    if (coverage() == 0) return;
    for (Tile& tile : *out) tile.live &= ~live_below(tile.first, coverage());
  }
};

// One bit of one cached row flips after the row is written.
class CorruptedRow : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void commit(int length) override {
    constexpr int kLayer = 1, kPosition = 3;
    if (coverage() <= kPosition && length > kPosition) inner_->row(kLayer, kPosition).k[9] ^= std::byte{1};
    inner_->commit(length);
  }
};

// A fork writes into shared rows without copying them.
class NoCopyOnWrite : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void commit(int length) override { length_ = length; }
  int coverage() const override { return length_; }

 protected:
  void cut(int length) override { length_ = length; }
  bool share(const Layout& from, int) override {
    const auto* other = dynamic_cast<const NoCopyOnWrite*>(&from);
    if (other != nullptr) inner_ = other->inner_;
    return other != nullptr;
  }

 private:
  int length_ = 0;
};

// Rows written after a truncation are not stored at positions that had rows before.
class KeepsTrimmedRows : public Wrapped {
 public:
  KeepsTrimmedRows(const LayoutInfo& info, const CacheShape& shape)
      : Wrapped(info, shape), nowhere_(shape.k_row_bytes() + shape.v_row_bytes()) {}
  Row row(int layer, int pos) override {
    return pos < reached_ ? Row{nowhere_.data(), nowhere_.data() + shape().k_row_bytes()} : inner_->row(layer, pos);
  }
  void commit(int length) override {
    reached_ = std::max(reached_, length);
    inner_->commit(length);
  }

 private:
  std::vector<std::byte> nowhere_;
  int reached_ = 0;
};

// Registers a layout of this kind and returns its name.
template <class Mistake>
std::string mistaken(std::string_view name) {
  static LayoutInfo info = **find_layout("dense");
  info.name = name;
  info.create = [](const CacheShape& shape, std::shared_ptr<BlockPool>) -> Result<std::unique_ptr<Layout>> {
    return std::make_unique<Mistake>(info, shape);
  };
  add_layout(info);
  return std::string(name);
}

std::shared_ptr<const Model> tales() {
  static const auto model = *Model::open(KVASIR_SOURCE_DIR "/models/tales");
  return model;
}

VerifyReport verify_layout(const std::string& layout, bool acts = false) {
  VerifyOptions options;
  options.prompts = {{5, 900, 33, 4, 71, 18}, {2000, 3, 77, 1024, 9}};
  options.new_tokens = 6;
  options.layouts = {layout};
  options.threads = {1, 2};
  options.chunks = {4, 0};
  options.batches = {1, 2};
  options.session.ctx = 64;
  options.acts = acts;
  options.others = false;
  return *verify(tales(), options);
}

TEST(Mistakes, UntouchedWrapperPasses) {
  const VerifyReport report = verify_layout(mistaken<Wrapped>("wrapped"));
  EXPECT_TRUE(report.pass);
  EXPECT_EQ(report.cases.size(), 8u);
  for (const VerifyCase& c : report.cases) EXPECT_EQ(c.compared_logits, 2u * 6u * 4096u) << c.name();
}

// Returns the names of the cases that differ.
std::string caught(const VerifyReport& report) {
  std::string names;
  for (const VerifyCase& c : report.cases)
    if (c.differing_logit_bits > 0) names += c.name() + "\n";
  return names;
}

TEST(Mistakes, TheUntouchedWrapperPassesEveryAct) {
  const VerifyReport report = verify_layout(mistaken<Wrapped>("wrapped"), true);
  EXPECT_TRUE(report.pass) << caught(report);
  EXPECT_EQ(report.cases.size(), 8u + 7u);
}

TEST(Mistakes, AForkThatDoesNotCopyWhatItWritesIsCaught) {
  const std::string names = caught(verify_layout(mistaken<NoCopyOnWrite>("no_copy_on_write"), true));
  EXPECT_THAT(names, AllOf(HasSubstr("fork"), HasSubstr("schedule"), Not(HasSubstr("threads"))));
}

TEST(Mistakes, RowsThatOutliveATruncationAreCaught) {
  const std::string names = caught(verify_layout(mistaken<KeepsTrimmedRows>("keeps_trimmed_rows"), true));
  EXPECT_THAT(names, AllOf(HasSubstr("truncate"), Not(HasSubstr("threads"))));
}

TEST(Mistakes, LengthAdvancedInsideTheLayerLoopIsCaught) {
  const VerifyReport report = verify_layout(mistaken<LengthInLoop>("length_in_loop"));
  EXPECT_FALSE(report.pass);
  EXPECT_GT(report.differing_logit_bits, 0u);
}

TEST(Mistakes, MaskOfTheWrongShapeIsCaught) {
  const VerifyReport report = verify_layout(mistaken<MaskOfNewTokens>("mask_of_new_tokens"));
  EXPECT_FALSE(report.pass);
  EXPECT_GT(report.differing_tokens, 0);
}

TEST(Mistakes, OneCorruptedBitOfOneCachedRowIsCaught) {
  const VerifyReport report = verify_layout(mistaken<CorruptedRow>("corrupted_row"));
  EXPECT_FALSE(report.pass);
  EXPECT_GT(report.differing_logit_bits, 0u);
}

TEST(Mistakes, SpeedBeforeEquivalenceIsRefused) {
  BenchOptions options;
  options.prompt = 16;
  options.generate = 4;
  options.repeats = 1;
  options.threads = {1};
  options.verify_layouts = {mistaken<CorruptedRow>("corrupted_row")};
  const auto refused = bench(tales(), options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("speeds are not shown"));
  options.verify_layouts.clear();
  const auto shown = bench(tales(), options);
  ASSERT_TRUE(shown) << shown.error().message();
  EXPECT_TRUE(shown->verified);
  EXPECT_EQ(shown->tests.size(), 2u);
}

TEST(Mistakes, TheQuadraticOfConcatIsCounted) {
  constexpr int kSteps = 200;
  const auto concat = measure_steps(tales(), {.layout = "concat"}, 1, kSteps, 1);
  const auto grow = measure_steps(tales(), {.layout = "grow"}, 1, kSteps, 1);
  ASSERT_TRUE(concat && grow);
  EXPECT_EQ(concat->copied_rows, size_t{kSteps} * (kSteps - 1) / 2);
  EXPECT_EQ(grow->copied_rows, 64u + 128u);  // 64 -> 128 -> 256
}

// Position 0 on decode, built into copies of the real families: a single new token gets the embedding (GPT-2) or the
// rotation (Llama) of position 0.
void rope_at_zero(Pass& pass, int l, const Weights& w) {
  if (pass.tokens() == 1) {
    const int half = pass.config().head_dim / 2;
    std::fill_n(const_cast<float*>(pass.angles()[0].cos.row(0)), half, 1.0f);
    std::fill_n(const_cast<float*>(pass.angles()[0].sin.row(0)), half, 0.0f);
  }
  (*find_family(*ConfigView::parse(R"({"model_type": "llama"})", "test")))->layer(pass, l, w);
}

void embed_at_zero(Pass& pass, const Weights& w) {
  static std::vector<std::byte> row_of_zero;
  std::vector<Matrix> rows(w.matrices.begin(), w.matrices.end());
  if (pass.tokens() > 0 && pass.position(0) == 0) row_of_zero.assign(rows[1].data, rows[1].data + rows[1].row_bytes());
  if (pass.tokens() == 1) rows[1].data = row_of_zero.data();
  (*find_family(*ConfigView::parse(R"({"model_type": "gpt2"})", "test")))->embed(pass, {rows, w.vectors});
}

// Logits of the last of six tokens with the given family: five prefilled and one decoded, or all at once.
std::vector<float> decode_last(const std::string& folder, const Family* family, bool at_once) {
  const auto config = *ConfigView::read(folder + "/config.json");
  if (family == nullptr) family = *find_family(config);
  auto net = *Network::load(*family, *family->parse_config(config),
                            std::make_shared<TensorDir>(*open_safetensors(folder)), WeightsMode::mapped, folder);
  CacheShape shape = family->cache_needs(net->config());
  shape.k = shape.v = kv_type_of(codec_f32());
  const auto cache = *(*find_layout("grow"))->make(shape);
  const auto compute = *Compute::create(1);
  Workspace workspace;
  std::vector<float> logits(static_cast<size_t>(net->config().vocab));
  Network::Output out{.logits = logits.data(), .errors = {}};
  const std::vector<int> ids{7, 1500, 44, 90, 3021, 8};
  const std::span<const int> all(ids);
  if (at_once) {
    const BatchItem item{cache.get(), 0, all, 5};
    EXPECT_TRUE(net->forward({&item, 1}, *compute, workspace, &out));
    return logits;
  }
  const BatchItem prompt{cache.get(), 0, all.first(5), 5}, step{cache.get(), 5, all.subspan(5), 0};
  EXPECT_TRUE(net->forward({&prompt, 1}, *compute, workspace, &out));
  EXPECT_TRUE(net->forward({&step, 1}, *compute, workspace, &out));
  return logits;
}

void expect_caught(const std::string& folder, const Family& mistaken) {
  const std::vector<float> reference = decode_last(folder, nullptr, true);
  EXPECT_EQ(decode_last(folder, nullptr, false), reference);
  EXPECT_NE(decode_last(folder, &mistaken, false), reference);
}

TEST(Mistakes, PositionZeroOnDecodeIsCaughtInLlama) {
  Family family = **find_family(*ConfigView::parse(R"({"model_type": "llama"})", "test"));
  family.layer = rope_at_zero;
  expect_caught(KVASIR_SOURCE_DIR "/models/tales", family);
}

TEST(Mistakes, PositionZeroOnDecodeIsCaughtInGpt2) {
  Family family = **find_family(*ConfigView::parse(R"({"model_type": "gpt2"})", "test"));
  family.embed = embed_at_zero;
  expect_caught(KVASIR_SOURCE_DIR "/models/tales-gpt2", family);
}

}  // namespace
}  // namespace kvasir
