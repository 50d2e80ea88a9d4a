// Binding weights and the forward pass, on tiny models: refusals and their texts, a failing pass changes nothing, items
// of a batch do not change each other's bits, and what a trace receives.
#include "arch/network.h"

#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/float_env.h"
#include "tests/support/tiny_models.h"

namespace kvasir {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using tiny::message_of;
using tiny::same_bits;

Result<std::unique_ptr<Network>> open(const tiny::fs::path& folder, WeightsMode mode = WeightsMode::resident) {
  KVASIR_TRY(const ConfigView view, ConfigView::read(folder / "config.json"));
  KVASIR_TRY(const Family* family, find_family(view));
  KVASIR_TRY(ModelConfig config, family->parse_config(view));
  KVASIR_TRY(TensorDir dir, open_safetensors(folder));
  return Network::load(*family, std::move(config), std::make_shared<TensorDir>(std::move(dir)), mode, folder.string());
}

Result<std::unique_ptr<Network>> written(const tiny::Model& model) {
  const tiny::TempFolder folder;
  model.write(folder.path());
  return open(folder.path());
}

struct Copied {
  std::vector<float> logits, hidden;
};

// Runs one pass. Returns its rows, or the error of the first item that has one.
Result<Copied> forward(const Network& network, std::vector<BatchItem> items, Compute& compute, Workspace& workspace,
                       bool hidden = false, const Trace* trace = nullptr) {
  Copied rows;
  size_t wanted = 0, tokens = 0;
  for (const BatchItem& item : items) {
    wanted += item.tokens.size() - std::min(item.tokens.size(), static_cast<size_t>(item.wanted_from));
    tokens += item.tokens.size();
  }
  const auto channels = static_cast<size_t>(network.config().hidden);
  rows.logits.resize(wanted * static_cast<size_t>(network.config().vocab));
  rows.hidden.resize(hidden ? tokens * channels : 0);
  size_t at = 0;
  for (BatchItem& item : items) {
    if (hidden) item.hidden = rows.hidden.data() + at * channels;
    at += item.tokens.size();
  }
  Network::Output out{.logits = rows.logits.data(), .errors = {}};
  KVASIR_CHECK(network.forward(items, compute, workspace, &out, trace));
  for (const auto& error : out.errors)
    if (error) return tl::unexpected(*error);
  return rows;
}

// A network with everything that a pass needs. Caches are "grow" in f32 by default.
class Runner {
 public:
  explicit Runner(const tiny::Model& model, int threads = 2) {
    auto network = written(model);
    EXPECT_TRUE(network) << message_of(network);
    network_ = std::move(*network);
    compute_ = std::move(*Compute::create(threads));
  }

  std::unique_ptr<Layout> cache(const char* layout = "grow", const Codec& codec = codec_f32(),
                                int max_ctx = 160) const {
    CacheShape shape = network_->family().cache_needs(network_->config());
    shape.k = shape.v = kv_type_of(codec);
    shape.max_ctx = max_ctx;
    return std::move(*(*find_layout(layout))->make(shape));
  }
  Result<Copied> run(std::vector<BatchItem> items, bool hidden = false, const Trace* trace = nullptr) {
    return forward(*network_, std::move(items), *compute_, workspace_, hidden, trace);
  }
  const Network& network() const { return *network_; }

 private:
  std::unique_ptr<Network> network_;
  std::unique_ptr<Compute> compute_;
  Workspace workspace_;
};

struct Kind {
  const char* name;
  tiny::Model model;
};
std::vector<Kind> kinds() {
  return {{"llama", tiny::llama()},
          {"llama bf16 with biases", tiny::llama(codec_bf16(), true)},
          {"gpt2", tiny::gpt2()},
          {"gpt2 f16", tiny::gpt2(codec_f16())}};
}

// ---- loading ----------------------------------------------------------------------------------------------------

TEST(NetworkLoad, EveryTensorIsNeededAndNamed) {
  for (const Kind& kind : kinds())
    for (size_t i = 0; i < kind.model.tensors.size(); i += 3) {
      tiny::Model model = kind.model;
      const std::string name = model.tensors[i].decl.name;
      model.erase(name);
      const auto network = written(model);
      ASSERT_FALSE(network) << name;
      EXPECT_THAT(network.error().message(), AllOf(HasSubstr("missing"), HasSubstr(name.substr(name.find('.') + 1))))
          << kind.name;
    }
}

TEST(NetworkLoad, WrongShapesAreNamedWithBoth) {
  tiny::Model model = tiny::llama();
  model.at("model.layers.1.self_attn.k_proj.weight").decl.shape = {24, 16};
  EXPECT_THAT(message_of(written(model)),
              AllOf(HasSubstr("layers.1.self_attn.k_proj.weight"), HasSubstr("[24, 16]"), HasSubstr("[16, 24]")));
  model = tiny::gpt2();
  model.at("transformer.h.0.attn.c_attn.weight").decl.shape = {72, 24};
  EXPECT_THAT(message_of(written(model)), AllOf(HasSubstr("c_attn"), HasSubstr("[72, 24]"), HasSubstr("[24, 72]")));
  model = tiny::gpt2();
  model.at("transformer.ln_f.bias").decl.shape = {24, 1};
  EXPECT_THAT(message_of(written(model)), HasSubstr("ln_f.bias"));
}

TEST(NetworkLoad, UnknownTypesAreNamed) {
  for (const char* name : {"model.norm.weight", "lm_head.weight"}) {
    const tiny::TempFolder folder;
    tiny::llama().write(folder.path());
    std::string bytes = tiny::slurp(folder / "model.safetensors");
    const size_t at = bytes.find("F32", bytes.find(name));
    bytes.replace(at, 3, "I32");
    tiny::put(folder / "model.safetensors", bytes);
    EXPECT_THAT(message_of(open(folder.path())), AllOf(HasSubstr(name), HasSubstr("I32")));
  }
}

TEST(NetworkLoad, PrefixesAreOptional) {
  for (const Kind& kind : kinds()) {
    tiny::Model model = kind.model;
    for (auto& tensor : model.tensors)
      if (const size_t dot = tensor.decl.name.find('.'); !tensor.decl.name.starts_with("lm_head"))
        tensor.decl.name = tensor.decl.name.substr(dot + 1);
    const auto plain = written(model), prefixed = written(kind.model);
    ASSERT_TRUE(plain) << message_of(plain);
    EXPECT_EQ(*(*plain)->fingerprint(), *(*prefixed)->fingerprint());
  }
}

TEST(NetworkLoad, CountsParametersAndNamesTheType) {
  for (const Kind& kind : kinds()) {
    int64_t total = 0;
    size_t bytes = 0;
    for (const auto& tensor : kind.model.tensors) {
      total += static_cast<int64_t>(tensor.values.size());
      bytes += tensor.decl.codec->row_bytes(static_cast<int64_t>(tensor.values.size()));
    }
    const auto network = written(kind.model);
    ASSERT_TRUE(network);
    EXPECT_EQ((*network)->parameters(), total) << kind.name;
    EXPECT_EQ((*network)->weights_bytes(), bytes) << kind.name;
    EXPECT_EQ((*network)->weight_type(), kind.model.tensors[0].decl.codec->name);
  }
}

// ---- what is refused ---------------------------------------------------------------------------------------------

TEST(NetworkForward, RefusalsNameTheNumbersAndChangeNothing) {
  for (const Kind& kind : kinds()) {
    Runner runner(kind.model);
    const auto cache = runner.cache(), other = runner.cache();
    const std::vector<int> prompt = tiny::ids(70), more = tiny::ids(3, 1);
    ASSERT_TRUE(runner.run({{cache.get(), 0, prompt}}));
    const auto refused = [&](std::vector<BatchItem> items, auto matcher) {
      EXPECT_THAT(message_of(runner.run(std::move(items))), matcher) << kind.name;
      EXPECT_EQ(cache->coverage(), 70);
      EXPECT_EQ(other->coverage(), 0);
    };
    const std::vector<int> high{1, 50}, negative{-1}, many = tiny::ids(91);
    refused({{cache.get(), 70, {}}}, HasSubstr("no tokens"));
    refused({{cache.get(), 70, high}}, AllOf(HasSubstr("id 50"), HasSubstr("has 50")));
    refused({{cache.get(), 70, negative}}, HasSubstr("-1"));
    refused({{cache.get(), 69, more}}, AllOf(HasSubstr("69"), HasSubstr("70")));
    refused({{cache.get(), 71, more}}, AllOf(HasSubstr("71"), HasSubstr("70")));
    refused({{other.get(), 5, more}}, AllOf(HasSubstr("5"), HasSubstr("0")));
    refused({{cache.get(), 70, many}}, AllOf(HasSubstr("161"), HasSubstr("160")));
    refused({{other.get(), 0, more}, {cache.get(), 70, high}}, HasSubstr("50"));
    // After all these refusals the sequence continues as if nothing had been asked.
    const auto fresh = runner.cache();
    ASSERT_TRUE(runner.run({{fresh.get(), 0, prompt}}));
    EXPECT_TRUE(
        same_bits(runner.run({{cache.get(), 70, more}})->logits, runner.run({{fresh.get(), 70, more}})->logits));
  }
}

TEST(NetworkForward, TheCachesOwnLimitHolds) {
  Runner runner(tiny::llama());
  const auto cache = runner.cache("grow", codec_f32(), 20);
  const std::vector<int> fits = tiny::ids(20), one{3};
  ASSERT_TRUE(runner.run({{cache.get(), 0, fits}}));
  EXPECT_THAT(message_of(runner.run({{cache.get(), 20, one}})), AllOf(HasSubstr("21"), HasSubstr("20")));
  EXPECT_EQ(cache->coverage(), 20);
}

TEST(NetworkForward, NonFiniteLogitsAreAnErrorThatChangesNothing) {
  struct Spoil {
    const char* tensor;
    float value;
  };
  for (const Spoil& spoil : {Spoil{"lm_head.weight", std::numeric_limits<float>::infinity()},
                             Spoil{"model.layers.1.mlp.up_proj.weight", std::numeric_limits<float>::quiet_NaN()},
                             Spoil{"model.norm.weight", 3e38f}}) {
    tiny::Model model = tiny::llama();
    for (float& x : model.at(spoil.tensor).values) x = spoil.value;
    Runner runner(model);
    const auto a = runner.cache(), b = runner.cache();
    const std::vector<int> prompt = tiny::ids(5);
    const auto out = runner.run({{a.get(), 0, prompt}, {b.get(), 0, prompt, 4}});
    ASSERT_FALSE(out) << spoil.tensor;
    EXPECT_THAT(out.error().message(), AllOf(HasSubstr("not finite"), HasSubstr("position")));
    EXPECT_EQ(a->coverage(), 0);
    EXPECT_EQ(b->coverage(), 0);
  }
}

// ---- batches -----------------------------------------------------------------------------------------------------

TEST(NetworkForward, ABatchOfRaggedItemsEqualsEachAloneInBits) {
  for (const Kind& kind : kinds())
    for (const char* layout : {"grow", "dense", "concat"}) {
      Runner runner(kind.model);
      const int lengths[] = {67, 1, 12};
      std::vector<std::vector<int>> prompts, next;
      std::vector<std::unique_ptr<Layout>> together, alone;
      std::vector<BatchItem> first, second;
      for (size_t i = 0; i < 3; ++i) {
        prompts.push_back(tiny::ids(lengths[i], i));
        next.push_back(tiny::ids(1 + static_cast<int>(i) * 2, 10 + i));
        together.push_back(runner.cache(layout));
        alone.push_back(runner.cache(layout));
      }
      for (size_t i = 0; i < 3; ++i) {
        first.push_back({together[i].get(), 0, prompts[i]});
        second.push_back({together[i].get(), lengths[i], next[i]});
      }
      const auto prefill = runner.run(first), step = runner.run(second);
      ASSERT_TRUE(prefill && step);
      std::vector<float> prefill_alone, step_alone;
      for (size_t i = 0; i < 3; ++i) {
        const auto p = runner.run({{alone[i].get(), 0, prompts[i]}}),
                   s = runner.run({{alone[i].get(), lengths[i], next[i]}});
        ASSERT_TRUE(p && s);
        prefill_alone.insert(prefill_alone.end(), p->logits.begin(), p->logits.end());
        step_alone.insert(step_alone.end(), s->logits.begin(), s->logits.end());
        EXPECT_EQ(together[i]->coverage(), lengths[i] + static_cast<int>(next[i].size()));
      }
      EXPECT_TRUE(same_bits(prefill->logits, prefill_alone)) << kind.name << " " << layout;
      EXPECT_TRUE(same_bits(step->logits, step_alone)) << kind.name << " " << layout;
    }
}

TEST(NetworkForward, PiecesEqualTheWholeInBits) {
  for (const Kind& kind : kinds())
    for (const Codec* codec : {&codec_f32(), &codec_f16(), &codec_bf16()}) {
      Runner runner(kind.model);
      const std::vector<int> prompt = tiny::ids(140);
      const auto whole = runner.cache("grow", *codec), pieces = runner.cache("grow", *codec);
      const auto expected = runner.run({{whole.get(), 0, prompt}});
      ASSERT_TRUE(expected);
      std::vector<float> got;
      int at = 0;
      for (const int n : {1, 2, 61, 1, 5, 30, 40}) {
        const auto part = runner.run(
            {{pieces.get(), at, std::span(prompt).subspan(static_cast<size_t>(at), static_cast<size_t>(n))}});
        ASSERT_TRUE(part);
        got.insert(got.end(), part->logits.begin(), part->logits.end());
        at += n;
      }
      ASSERT_EQ(at, 140);
      EXPECT_TRUE(same_bits(got, expected->logits)) << kind.name << " " << codec->name;
    }
}

TEST(NetworkForward, WantedFromSelectsRows) {
  Runner runner(tiny::llama());
  const std::vector<int> prompt = tiny::ids(9), other = tiny::ids(4, 3);
  const auto all = runner.run({{runner.cache().get(), 0, prompt}});
  ASSERT_TRUE(all);
  ASSERT_EQ(all->logits.size(), 9u * 50);
  for (int from = 0; from <= 9; ++from) {
    const auto a = runner.cache(), b = runner.cache();
    const auto some = runner.run({{b.get(), 0, other, 4}, {a.get(), 0, prompt, from}});
    ASSERT_TRUE(some);
    EXPECT_TRUE(same_bits(some->logits, std::span(all->logits).subspan(static_cast<size_t>(from) * 50))) << from;
  }
}

TEST(NetworkForward, ThreadsAndModesDoNotChangeBits) {
  for (const Kind& kind : kinds()) {
    const tiny::TempFolder folder;
    kind.model.write(folder.path());
    const std::vector<int> prompt = tiny::ids(80);
    Runner one(kind.model, 1), five(kind.model, 5);
    const auto a = one.run({{one.cache().get(), 0, prompt}}), b = five.run({{five.cache().get(), 0, prompt}});
    ASSERT_TRUE(a && b);
    EXPECT_TRUE(same_bits(a->logits, b->logits)) << kind.name;
    const auto all = one.run({{one.cache().get(), 0, prompt, 0}});
    ASSERT_TRUE(all);
    const auto compute = std::move(*Compute::create(3));
    Workspace workspace;
    for (const WeightsMode mode : {WeightsMode::mapped, WeightsMode::streamed}) {
      const auto network = open(folder.path(), mode);
      ASSERT_TRUE(network) << message_of(network);
      for (int wanted_from : {0, 79, 80}) {  // 80: a pass without the vocabulary head
        const auto cache = one.cache();
        const BatchItem item{cache.get(), 0, prompt, wanted_from};
        const auto out = forward(**network, {item}, *compute, workspace);
        ASSERT_TRUE(out);
        const size_t vocab = all->logits.size() / 80;
        EXPECT_TRUE(same_bits(std::span(all->logits).subspan(static_cast<size_t>(wanted_from) * vocab), out->logits))
            << kind.name;
      }
    }
  }
}

// A caller with another rounding mode and flushed denormals gets the same model and the same bits.
TEST(NetworkForward, TheCallersFloatModesDoNotMatter) {
#if defined(__x86_64__)
  for (const Kind& kind : kinds()) {
    const std::vector<int> prompt = tiny::ids(20);
    Runner plain(kind.model);
    const auto expected = plain.run({{plain.cache().get(), 0, prompt}});
    const unsigned saved = _mm_getcsr();
    const tiny::TempFolder folder;
    kind.model.write(folder.path());
    _mm_setcsr(0x1f80 | 0x8040 | 0x4000);  // flush to zero, denormals are zero, round up
    const auto network = open(folder.path());
    Workspace workspace;
    const auto compute = std::move(*Compute::create(1));
    const auto cache = plain.cache();
    const BatchItem item{cache.get(), 0, prompt};
    const auto done = forward(**network, {item}, *compute, workspace);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(saved);
    ASSERT_TRUE(done) << message_of(done);
    EXPECT_EQ(after & 0xffc0, 0x1f80u | 0x8040 | 0x4000) << "restored on the way out";
    EXPECT_TRUE(same_bits(done->logits, expected->logits)) << kind.name;
  }
#else
  GTEST_SKIP() << "written for x86";
#endif
}

// ---- trace and hidden --------------------------------------------------------------------------------------------

struct Seen {
  std::vector<std::pair<int, std::string>> order;
  std::map<std::pair<int, std::string>, std::vector<float>> values;

  Trace trace() {
    return [this](int layer, std::string_view name, const Rows& rows) {
      order.emplace_back(layer, name);
      std::vector<float>& flat = values[order.back()];
      for (int t = 0; t < rows.n; ++t) flat.insert(flat.end(), rows.row(t), rows.row(t) + rows.cols);
    };
  }
};

TEST(NetworkTrace, SeesNamedValuesInOrderAndChangesNothing) {
  for (const Kind& kind : kinds()) {
    Runner runner(kind.model);
    const std::vector<int> prompt = tiny::ids(6);
    Seen seen;
    const Trace trace = seen.trace();
    const auto plain = runner.run({{runner.cache().get(), 0, prompt}});
    const auto traced = runner.run({{runner.cache().get(), 0, prompt}}, true, &trace);
    ASSERT_TRUE(plain && traced);
    EXPECT_TRUE(same_bits(traced->logits, plain->logits));
    EXPECT_EQ(seen.order.front(), (std::pair<int, std::string>(-1, "embedding")));
    EXPECT_EQ(seen.order.back(), (std::pair<int, std::string>(-1, "final_norm")));
    EXPECT_EQ(seen.order.size(), seen.values.size()) << "a name twice";
    for (int layer = 0; layer < 2; ++layer)
      for (const char* name : {"attention", "projection", "residual", "mlp", "block"})
        EXPECT_EQ(seen.values.count({layer, name}), 1u) << kind.name << " " << name;
    EXPECT_TRUE(same_bits(traced->hidden, (seen.values[{-1, "final_norm"}])));
    for (size_t i = 0; i < 6 * 24; ++i)
      ASSERT_EQ((seen.values[{1, "block"}][i]), (seen.values[{1, "residual"}][i] + seen.values[{1, "mlp"}][i]));
  }
}

TEST(NetworkTrace, EmbeddingAndHeadAreTheTablesRows) {
  tiny::Model model = tiny::gpt2();
  Runner runner(model);
  const std::vector<int> prompt = tiny::ids(6);
  Seen seen;
  const Trace trace = seen.trace();
  const auto out = runner.run({{runner.cache().get(), 0, prompt}}, true, &trace);
  ASSERT_TRUE(out);
  const auto& wte = model.at("transformer.wte.weight").values;
  const auto& wpe = model.at("transformer.wpe.weight").values;
  for (size_t t = 0; t < 6; ++t) {
    for (size_t d = 0; d < 24; ++d)
      ASSERT_EQ((seen.values[{-1, "embedding"}][t * 24 + d]),
                wte[static_cast<size_t>(prompt[t]) * 24 + d] + wpe[t * 24 + d]);
    for (size_t v = 0; v < 50; ++v)
      ASSERT_EQ(out->logits[t * 50 + v],
                codec_f32().dot(reinterpret_cast<const std::byte*>(wte.data() + v * 24),
                                reinterpret_cast<const std::byte*>(out->hidden.data() + t * 24), 24));
  }
}

}  // namespace
}  // namespace kvasir
