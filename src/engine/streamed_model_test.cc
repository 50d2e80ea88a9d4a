// A model whose weights are read again in every pass: sessions are unchanged by a failed read.
#include <fstream>
#include <sstream>

#include "tests/support/engines.h"

namespace kvasir {
namespace {

using namespace engine_test;

std::string contents(const tiny::fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The file is truncated in the middle of two conversations, and restored.
TEST(StreamedModel, AFailedPassChangesNoSession) {
  ModelOptions streamed;
  streamed.weights = WeightsMode::streamed;
  Opened cut(tiny::llama(), {.threads = 2}, streamed), whole("tales");
  Opened resident(tiny::llama());
  const tiny::fs::path file = cut.folder() / "model" / "model.safetensors";
  const std::string bytes = contents(file);
  Session a = cut.session(), b = cut.session(), other = whole.session();
  engine_test::Copied out;
  ASSERT_TRUE(engine_test::prefill(cut.engine(), a, tiny::ids(9), &out));
  ASSERT_TRUE(engine_test::prefill(cut.engine(), b, tiny::ids(5), &out));
  tiny::fs::resize_file(file, bytes.size() / 2);
  const std::vector<int> next{3};
  const auto failed = engine_test::prefill(cut.engine(), a, next, &out);
  EXPECT_THAT(message_of(failed), AllOf(HasSubstr(file.string()), HasSubstr("truncated while in use")));
  EXPECT_THAT(message_of(failed), testing::ContainsRegex("layer [0-9]|vocabulary head"));
  EXPECT_EQ(a.pos(), 9);
  EXPECT_FALSE(engine_test::prefill(cut.engine(), b, next, &out));
  EXPECT_EQ(b.pos(), 5);
  EXPECT_TRUE(engine_test::prefill(whole.engine(), other, tiny::ids(4), &out)) << "another model runs on";
  std::fstream(file, std::ios::binary | std::ios::in | std::ios::out) << bytes;
  for (Session* session : {&a, &b}) {
    std::vector<int> ids(session->tokens().begin(), session->tokens().end());
    ids.push_back(3);
    ASSERT_TRUE(engine_test::prefill(cut.engine(), *session, next, &out));
    EXPECT_TRUE(same_bits(out.logits, resident.fresh(ids)));
  }
}

}  // namespace
}  // namespace kvasir
