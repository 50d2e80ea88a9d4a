// The Law on the shipped models: prompts with 100 new tokens each (20 prompts in the full run, the size that the
// project promises), every layout, thread count, chunk and batch, every KV type, and a window.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include <kvasir/verify.h>

#include "cache/kv_type.h"
#include "cache/layout.h"
#include "lab/quantize.h"
#include "lab/verify_acts.h"
#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

std::vector<std::vector<int>> shipped_prompts(const Model& model, size_t count) {
  std::ifstream in(KVASIR_SOURCE_DIR "/models/prompts.txt");
  std::vector<std::vector<int>> prompts;
  for (std::string line; prompts.size() < count && std::getline(in, line);)
    prompts.push_back(*model.tokenizer()->encode(line));
  return prompts;
}

std::string shipped(const std::string& name) { return std::string(KVASIR_SOURCE_DIR "/models/") + name; }

void expect_pass(const std::string& path, size_t count, int new_tokens) {
  const auto model = *Model::open(path);
  VerifyOptions options;
  options.prompts = shipped_prompts(*model, count);
  options.new_tokens = new_tokens;
  ASSERT_EQ(options.prompts.size(), count);
  const auto report = verify(model, options);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->pass);
  EXPECT_EQ(report->tokens, static_cast<int>(count) * new_tokens);
  EXPECT_EQ(report->differing_tokens, 0);
  EXPECT_EQ(report->differing_logit_bits, 0u);
  const size_t others = kv_types().size() - 1 + (model->info().takes_window ? 1 : 0);
  EXPECT_EQ(report->cases.size(), layouts().size() * (3 * 4 * 2 + verify_acts().size() + others));
  for (const VerifyCase& c : report->cases) {
    EXPECT_GT(c.compared_logits, 0u) << c.name();
    EXPECT_EQ(c.differing_logit_bits, 0u) << c.name();
  }
}

TEST(Law, TalesShort) { expect_pass(shipped("tales"), 2, 2); }
// All prompts only in the full run.
TEST(SlowLaw, Tales) { expect_pass(shipped("tales"), std::getenv("KVASIR_TEST_ALL") != nullptr ? 20 : 5, 100); }
TEST(SlowLaw, TalesGpt2) {
  expect_pass(shipped("tales-gpt2"), std::getenv("KVASIR_TEST_ALL") != nullptr ? 20 : 2, 100);
}

// The rows of tales have 192 and 512 channels: all are whole blocks of 32, only some are whole blocks of 256.
TEST(SlowLaw, WeightsOfEveryWrittenType) {
  const format_test::TempFolder folder;
  for (const std::string_view type : quantize_types()) {
    SCOPED_TRACE(type);
    const std::filesystem::path out = folder / (std::string(type) + ".gguf");
    const auto written = quantize({.model = shipped("tales"), .out = out, .type = std::string(type)});
    ASSERT_TRUE(written) << written.error().message();
    expect_pass(out.string(), 2, 12);
  }
}

}  // namespace
}  // namespace kvasir
