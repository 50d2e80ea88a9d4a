// The Law on the shipped models, at the size that the project promises: 20 prompts, 100 tokens each, every layout,
// thread count, chunk and batch.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include <kvasir/verify.h>

#include "cache/layout.h"

namespace kvasir {
namespace {

std::vector<std::vector<int>> shipped_prompts(const Model& model, size_t count) {
  std::ifstream in(KVASIR_SOURCE_DIR "/models/prompts.txt");
  std::vector<std::vector<int>> prompts;
  for (std::string line; prompts.size() < count && std::getline(in, line);)
    prompts.push_back(*model.tokenizer()->encode(line));
  return prompts;
}

void expect_pass(const std::string& name, size_t count, int new_tokens) {
  const auto model = *Model::open(std::string(KVASIR_SOURCE_DIR "/models/") + name);
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
  EXPECT_EQ(report->cases.size(), layouts().size() * 3 * 4 * 2);
  for (const VerifyCase& c : report->cases) {
    EXPECT_GT(c.compared_logits, 0u) << c.name;
    EXPECT_EQ(c.differing_logit_bits, 0u) << c.name;
  }
}

TEST(Law, TalesShort) { expect_pass("tales", 2, 8); }
TEST(Law, TalesGpt2Short) { expect_pass("tales-gpt2", 2, 8); }
TEST(SlowLaw, Tales) { expect_pass("tales", 20, 100); }
TEST(SlowLaw, TalesGpt2) { expect_pass("tales-gpt2", 20, 100); }

}  // namespace
}  // namespace kvasir
