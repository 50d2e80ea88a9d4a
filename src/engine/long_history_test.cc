// One token that attends to many tiles: split over threads at tile boundaries, in any layout, it has the bits of one
// thread. Also run under TSan, for the merging of the tiles.
#include "tests/support/engines.h"

namespace kvasir {
namespace {

using engine_test::Opened;
using tiny::message_of;
using tiny::same_bits;

constexpr int kPrompt = 440, kSteps = 12;  // crosses a tile boundary (448)

// Logits of every step after the prompt, one row after the other.
std::vector<float> steps(int threads, const SessionOptions& options) {
  tiny::Model model = tiny::llama();
  model.edit_config("\"max_position_embeddings\":160", "\"max_position_embeddings\":600");
  Opened opened(model, {.threads = threads, .prefill_chunk = 96});
  Session session = opened.session(options);
  engine_test::Copied out;
  std::vector<float> all;
  EXPECT_TRUE(engine_test::prefill(opened.engine(), session, tiny::ids(kPrompt), &out));
  for (int id : tiny::ids(kSteps, 5)) {
    const auto done = engine_test::prefill(opened.engine(), session, {&id, 1}, &out);
    EXPECT_TRUE(done) << message_of(done);
    all.insert(all.end(), out.logits.begin(), out.logits.end());
  }
  return all;
}

TEST(ThreadsLongHistory, EveryThreadCountGivesTheBitsOfOne) {
  for (const char* type : {"f32", "f16"}) {
    const SessionOptions options{.layout = "grow", .kv_type_k = type, .kv_type_v = type};
    const std::vector<float> one = steps(1, options);
    ASSERT_EQ(one.size(), size_t{kSteps} * 50);
    for (int threads : {2, 3, 8}) EXPECT_TRUE(same_bits(steps(threads, options), one)) << threads << " " << type;
  }
}

TEST(ThreadsLongHistory, EveryLayoutGivesTheBitsOfNone) {
  const std::vector<float> none = steps(1, {.layout = "none"});
  for (const char* layout : {"concat", "dense", "grow"})
    EXPECT_TRUE(same_bits(steps(4, {.layout = layout}), none)) << layout;
}

}  // namespace
}  // namespace kvasir
