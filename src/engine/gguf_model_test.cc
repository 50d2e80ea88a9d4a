// A folder and a GGUF file of one model give the same receipt; GGUF contents that Kvasir cannot run are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/inspect.h"
#include "tests/support/engines.h"
#include "tests/support/gguf_models.h"

namespace kvasir {
namespace {

using engine_test::AllOf;
using engine_test::greedy_tokens;
using engine_test::HasSubstr;
using engine_test::message_of;
using engine_test::with_receipt;
using gguf_test::Bytes;
using tiny::put;
using tiny::TempFolder;

std::string receipt_of(const std::string& path, const std::string& weights = "auto") {
  const auto model = Model::open(path, engine_test::with_weights(weights));
  if (!model) return message_of(model);
  auto engine = Engine::create(*model, {.threads = 2});
  auto session = (*engine)->open_session({});
  const auto g = generate(**engine, *session, tiny::ids(70), with_receipt(greedy_tokens(5)));
  return g ? g->receipt : message_of(g);
}

class GgufModel : public testing::Test {
 protected:
  std::string gguf(const Bytes& bytes) const {
    put(folder_ / "m.gguf", bytes.data);
    return (folder_ / "m.gguf").string();
  }
  std::string error_of(const Bytes& bytes) const { return message_of(Model::open(gguf(bytes))); }

  TempFolder folder_;
  tiny::ScopedEnv remembered_{"XDG_CACHE_HOME", (folder_ / "cache").string()};
};

TEST_F(GgufModel, GivesTheFoldersReceipt) {
  for (const bool biases : {false, true}) {
    const tiny::Model model = tiny::llama(codec_f16(), biases);
    model.write(folder_ / "model");
    const std::string folder = receipt_of((folder_ / "model").string());
    EXPECT_EQ(folder.size(), 32u) << folder;
    const std::string path = gguf(tiny::llama_gguf(model, 1));
    EXPECT_EQ(receipt_of(path, "resident"), folder);
    EXPECT_EQ(receipt_of(path, "mapped"), folder);
  }
}

TEST_F(GgufModel, RowsOutOfOrderWouldBeSeen) {
  tiny::Model model = tiny::llama();
  model.write(folder_ / "model");
  // Pairing the rows twice puts them in an order that no reader expects.
  tiny::Tensor& q = model.at("model.layers.0.self_attn.q_proj.weight");
  q.values = tiny::paired_rows(q);
  EXPECT_NE(receipt_of(gguf(tiny::llama_gguf(model))), receipt_of((folder_ / "model").string()));
}

TEST_F(GgufModel, WithoutATokenizerOnlyIdsWork) {
  const auto model = Model::open(gguf(tiny::llama_gguf(tiny::llama())));
  ASSERT_TRUE(model) << message_of(model);
  EXPECT_EQ((*model)->tokenizer(), nullptr);
  EXPECT_EQ((*model)->info().vocab, 50);
  EXPECT_EQ((*model)->info().eos, std::vector<int>{7});
}

// A GGUF file in which one entry, or the first occurrence of one name, is changed.
Bytes renamed(std::string_view from, std::string_view to) {
  Bytes b = tiny::llama_gguf(tiny::llama());
  const size_t at = b.data.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_EQ(from.size(), to.size());
  b.data.replace(at, from.size(), to);
  return b;
}

TEST_F(GgufModel, WhatCannotRunIsNamed) {
  EXPECT_THAT(error_of(renamed("general.architecture", "general.architectura")), HasSubstr("general.architecture"));
  EXPECT_THAT(error_of(renamed("llama.block_count", "llama.block_cound")), HasSubstr("llama.block_count"));
  EXPECT_THAT(error_of(renamed("blk.1.attn_k.weight", "blk.1.attn_x.weight")), HasSubstr("layers.1.self_attn.k_proj"));
  EXPECT_THAT(error_of(renamed("token_embd.weight", "token_embx.weight")), HasSubstr("token_embd.weight"));
  Bytes mamba = tiny::llama_gguf(tiny::llama());
  mamba.data.replace(mamba.data.find("llama"), 5, "mamba");
  EXPECT_THAT(error_of(mamba), AllOf(HasSubstr("\"mamba\""), HasSubstr("qwen2")));
}

TEST_F(GgufModel, ListsWhereANumberIsWantedAreRefused) {
  const auto with = [&](std::string_view key) {
    Bytes more;
    more.array(key, GgufType::u32, 2).number<uint32_t>(2).number<uint32_t>(4);
    return error_of(tiny::llama_gguf(tiny::llama(), 0, more, 1));
  };
  EXPECT_THAT(with("llama.attention.sliding_window"),
              AllOf(HasSubstr("sliding_window"), HasSubstr("differs between layers")));
  EXPECT_THAT(with("llama.nobody.asks"), HasSubstr("\"llama.nobody.asks\" is not known"));
  EXPECT_EQ(with("nobody.asks"), "no error") << "listed, and noted";
}

TEST_F(GgufModel, UnknownRotationsAreRefusedByName) {
  const auto with = [&](auto add) {
    Bytes more;
    add(more);
    return error_of(tiny::llama_gguf(tiny::llama(), 0, more, 1));
  };
  EXPECT_THAT(with([](Bytes& b) { b.text_entry("llama.rope.scaling.type", "xpos"); }), HasSubstr("\"xpos\""));
  EXPECT_EQ(with([](Bytes& b) { b.text_entry("llama.rope.scaling.type", "none"); }), "no error");
  EXPECT_THAT(with([](Bytes& b) { b.text_entry("llama.rope.scaling.type", "linear"); }), HasSubstr("factor"));
  EXPECT_EQ(with([](Bytes& b) { b.entry("llama.rope.dimension_count", GgufType::u32, uint32_t{4}); }), "no error");
  EXPECT_THAT(with([](Bytes& b) { b.entry("llama.rope.dimension_count", GgufType::u32, uint32_t{3}); }),
              HasSubstr("3 of the 8 channels"));
}

TEST_F(GgufModel, AWindowIsTheModelsOwn) {
  Bytes more;
  more.entry("llama.attention.sliding_window", GgufType::u32, uint32_t{99});
  const auto model = Model::open(gguf(tiny::llama_gguf(tiny::llama(), 0, more, 1)));
  ASSERT_TRUE(model) << message_of(model);
  const auto engine = Engine::create(*model, {.threads = 1});
  const auto session = (*engine)->open_session();
  ASSERT_TRUE(session);
  EXPECT_EQ(session->ctx(), (*model)->info().max_ctx);
  EXPECT_EQ(session->cache_stats().window, "99");
}

TEST_F(GgufModel, InspectShowsWhatTheFileHolds) {
  const std::string path = gguf(tiny::llama_gguf(tiny::llama()));
  const auto report = inspect(path);
  ASSERT_TRUE(report) << message_of(report);
  EXPECT_EQ(report->format, "GGUF v3");
  EXPECT_EQ(report->metadata.size(), 11u);
  EXPECT_EQ(report->metadata[0].key, "general.architecture");
  EXPECT_EQ(report->metadata[0].value, "\"llama\"");
  EXPECT_EQ(report->tensors.size(), tiny::llama().tensors.size());
  EXPECT_EQ(report->tensors[0].name, "blk.0.attn_k.weight") << "the file's own name";
  EXPECT_EQ(report->fingerprint, *(*Model::open(path))->fingerprint());
  EXPECT_EQ(report->reason, "");
}

TEST_F(GgufModel, InspectShowsAFileThatCannotRunToo) {
  const auto report = inspect(gguf(renamed("blk.1.attn_k.weight", "blk.1.attn_x.weight")));
  ASSERT_TRUE(report) << message_of(report);
  EXPECT_EQ(report->fingerprint, "");
  EXPECT_THAT(report->reason, HasSubstr("k_proj"));
  EXPECT_FALSE(inspect(gguf({"GGUF"})));
}

}  // namespace
}  // namespace kvasir
