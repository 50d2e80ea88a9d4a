// Passes of every family take exactly what the dry pass counts; a family that takes more gets an error.
#include "arch/activation_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arch/network.h"
#include "cache/kv_type.h"
#include "tests/support/tiny_models.h"

namespace kvasir {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using tiny::message_of;

bool has_experts(std::string_view type) {
  return type.find("moe") != type.npos || type == "mixtral" || type == "deepseek" || type == "olmoe" ||
         type == "gpt_oss";
}

// The same numbers for all: 2 layers of 24 channels, 6 heads of width 8 that share 2 KV heads, 5 experts if the type
// has any.
std::string config_of(std::string_view type) {
  if (type == "gpt2") return tiny::gpt2().config;
  const std::string experts =
      has_experts(type) ? R"("num_experts":5,"num_experts_per_tok":2,"lm_head_bias":true,)" : "";
  return R"({"model_type":")" + std::string(type) +
         R"(","hidden_size":24,"num_hidden_layers":2,"num_attention_heads":6,"head_dim":)" +
         (type == "phi3" ? "4" : "8") + "," + experts +
         R"("num_key_value_heads":2,"intermediate_size":40,"vocab_size":50,"max_position_embeddings":160,
"rms_norm_eps":1e-5,"rope_theta":1000.0,"tie_word_embeddings":false,"eos_token_id":7,"pad_token_id":0})";
}

struct Opened {
  tiny::TempFolder folder;
  std::unique_ptr<Network> network;
};

// A model of the family with weights for each tensor of its table.
std::unique_ptr<Opened> opened(const Family& family, std::string_view type) {
  auto out = std::make_unique<Opened>();
  tiny::Model model;
  model.config = config_of(type);
  const auto config = family.parse_config(*ConfigView::parse(model.config, "test"));
  EXPECT_TRUE(config) << type << ": " << message_of(config);
  if (!config) return out;
  const TensorTable table = family.tensor_table(*config);
  std::vector<TensorSpec> specs = table.embed;
  for (const auto& layer : table.layers) specs.insert(specs.end(), layer.begin(), layer.end());
  specs.insert(specs.end(), table.head.begin(), table.head.end());
  for (const TensorSpec& spec : specs)
    if (spec.present && (&spec != &specs.back() || !config->tied_head))
      model.add(spec.name, codec_f32(), spec.shape, 0.3f);
  model.write(out->folder.path());
  auto network = Network::load(family, *config, std::make_shared<TensorDir>(*open_safetensors(out->folder.path())),
                               WeightsMode::resident, "test");
  EXPECT_TRUE(network) << message_of(network);
  if (network) out->network = std::move(*network);
  return out;
}

std::unique_ptr<Layout> cache_for(const Network& network) {
  CacheShape shape = network.family().cache_needs(network.config());
  shape.k = shape.v = kv_type_of(codec_f32());
  return std::move(*(*find_layout("dense"))->make(shape));
}

// One pass on one thread, so that no history is split. Returns the logits of the last token.
Result<std::vector<float>> pass_of(const Network& network, int tokens, Workspace* workspace) {
  const auto compute = *Compute::create(1);
  const auto cache = cache_for(network);
  const std::vector<int> ids = tiny::ids(tokens);
  const BatchItem item{cache.get(), 0, ids, tokens - 1};
  std::vector<float> logits(static_cast<size_t>(network.config().vocab));
  Network::Output out{.logits = logits.data(), .errors = {}};
  auto done = network.forward({&item, 1}, *compute, *workspace, &out);
  EXPECT_EQ(cache->coverage(), done ? tokens : 0) << "an error changes no length";
  if (!done) return tl::unexpected(std::move(done).error());
  return logits;
}

TEST(Footprint, EqualsWhatAPassTakes) {
  for (const Family* family : families())
    for (const std::string_view alias : family->aliases) {
      const auto model = opened(*family, alias);
      ASSERT_NE(model->network, nullptr) << alias;
      for (const int tokens : {1, 2, 5, 64, 100}) {
        Workspace workspace;
        const auto logits = pass_of(*model->network, tokens, &workspace);
        ASSERT_TRUE(logits) << alias << ": " << message_of(logits);
        EXPECT_EQ(workspace.most(), model->network->footprint().workspace_floats(tokens)) << alias << " " << tokens;
      }
    }
}

const Family& llama() { return **find_family(*ConfigView::parse(R"({"model_type":"llama"})", "test")); }

// Columns that do not follow from any number of the config.
constexpr int64_t kMoreColumns = 1000;
void wider_layer(Pass& pass, int l, const Weights& w) {
  const Rows more = pass.take(kMoreColumns);
  for (int t = 0; t < more.n; ++t) std::fill_n(more.row(t), more.cols, 1.0f);
  llama().layer(pass, l, w);
}

TEST(Footprint, ALayerThatTakesMoreIsCountedWithIt) {
  Family family = llama();
  family.layer = wider_layer;
  const auto plain = opened(llama(), "llama"), wider = opened(family, "llama");
  EXPECT_EQ(wider->network->footprint().workspace_floats(16),
            plain->network->footprint().workspace_floats(16) + 16 * kMoreColumns);
  Workspace a, b;
  const auto expected = pass_of(*plain->network, 16, &a), got = pass_of(*wider->network, 16, &b);
  ASSERT_TRUE(expected && got);
  EXPECT_TRUE(tiny::same_bits(*got, *expected));
}

// Takes more than Llama's layer, except in the dry pass.
void overrunning_layer(Pass& pass, int l, const Weights& w) {
  if (pass.tokens() > 0) {
    wider_layer(pass, l, w);
  } else {
    llama().layer(pass, l, w);
  }
}

TEST(Footprint, ALayerThatTakesMoreThanItsDryPassIsAnError) {
  Family family = llama();
  family.layer = overrunning_layer;
  const auto plain = opened(llama(), "llama"), liar = opened(family, "llama");
  const size_t counted = plain->network->footprint().workspace_floats(16);
  Workspace workspace;
  ASSERT_TRUE(pass_of(*plain->network, 100, &workspace)) << "memory that would hide the overrun of a smaller pass";
  const auto refused = pass_of(*liar->network, 16, &workspace);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::internal);
  EXPECT_THAT(refused.error().what, AllOf(HasSubstr("llama"), HasSubstr(std::to_string(counted)),
                                          HasSubstr(std::to_string(counted + 16 * kMoreColumns))));
  Workspace fresh;
  const auto expected = pass_of(*plain->network, 16, &fresh), after = pass_of(*plain->network, 16, &workspace);
  ASSERT_TRUE(expected && after);
  EXPECT_TRUE(tiny::same_bits(*after, *expected));
}

TEST(Workspace, RowsPastTheReserveAreMemoryOfTheirOwn) {
  Workspace workspace;
  ASSERT_TRUE(workspace.reserve(32));
  const Rows first = workspace.take(2, 16), past = workspace.take(3, 2000), further = workspace.take(1, 5);
  for (const Rows& rows : {first, past, further})
    for (int t = 0; t < rows.n; ++t) std::fill_n(rows.row(t), rows.cols, static_cast<float>(rows.cols + t));
  EXPECT_EQ(*first.row(1), 17.0f);
  EXPECT_EQ(past.row(2)[1999], 2002.0f);
  EXPECT_EQ(further.row(0)[4], 5.0f);
  EXPECT_EQ(workspace.reserved(), 32u);
  EXPECT_EQ(workspace.most(), 32u + 6000 + 16);
  workspace.back_to(0);
  EXPECT_EQ(workspace.take(2, 16).data, first.data);
  ASSERT_TRUE(workspace.reserve(16));
  EXPECT_EQ(workspace.most(), 0u);
}

}  // namespace
}  // namespace kvasir
