// The repetition penalty from a model's generation_config.json used to cover the last 64 tokens; in transformers it
// covers all tokens.
#include <algorithm>
#include <set>

#include "tests/support/engines.h"

namespace kvasir {
namespace {

using namespace engine_test;

// Greedy decoding, written out: the logit of every token among the last `window` (0: all) is divided by the penalty, or
// multiplied if below 0.
std::vector<int> expected(Opened& opened, std::vector<int> text, int n, float penalty, size_t window) {
  std::vector<int> chosen;
  for (int i = 0; i < n; ++i) {
    std::vector<float> logits = opened.fresh(text);
    const size_t from = window == 0 || window > text.size() ? 0 : text.size() - window;
    for (const int id : std::set<int>(text.begin() + static_cast<std::ptrdiff_t>(from), text.end())) {
      float& x = logits[static_cast<size_t>(id)];
      x = x < 0 ? x * penalty : x / penalty;
    }
    chosen.push_back(static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    text.push_back(chosen.back());
  }
  return chosen;
}

std::vector<int> generated(Opened& opened, const std::vector<int>& text, int n, const SamplingParams& params) {
  GenerateOptions options = greedy_tokens(n);
  options.sampling = params;
  options.sampling.temperature = 0;
  Session session = opened.session();
  const auto g = generate(opened.engine(), session, text, options);
  EXPECT_TRUE(g) << message_of(g);
  return g ? g->tokens : std::vector<int>();
}

TEST(Regress, TheModelsOwnPenaltyReachesOverTheWholeText) {
  Opened opened("tales");
  // The tokens that greedy decoding would choose next stand at the start, more than 64 tokens back.
  std::vector<int> text = expected(opened, tiny::ids(3), 20, 1.0f, 0);
  const std::vector<int> filler = tiny::ids(90, 5);
  text.insert(text.end(), filler.begin(), filler.end());
  const std::vector<int> whole = expected(opened, text, 24, 4.0f, 0), last = expected(opened, text, 24, 4.0f, 64);
  ASSERT_NE(whole, last) << "this text does not tell them apart";
  EXPECT_EQ(generated(opened, text, 24, {.repeat_penalty = 4.0, .repeat_last_n = -1}), whole);
  EXPECT_EQ(generated(opened, text, 24, {.repeat_penalty = 4.0}), last)
      << "of the flag, unless --repeat-last-n says more";

  const tiny::TempFolder folder;
  tiny::llama().write(folder.path());
  tiny::put(folder / "generation_config.json", R"({"repetition_penalty": 4.0})");
  const auto model = Model::open(folder.path().string());
  ASSERT_TRUE(model) << message_of(model);
  EXPECT_EQ((*model)->sampling_defaults().repeat_penalty, 4.0);
  EXPECT_EQ((*model)->sampling_defaults().repeat_last_n, -1);
}

}  // namespace
}  // namespace kvasir
