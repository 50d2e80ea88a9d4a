// A model whose weights are read again in every pass: sessions are unchanged by a failed read.
#include <fstream>
#include <sstream>

#include "tests/support/engines.h"
#include "tests/support/tiny_experts.h"

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

constexpr int kCtx = 40;

// Logits of one text, fed in passes of several sizes.
std::vector<float> logits_of(Opened& opened) {
  Session session = opened.session({.layout = "grow", .ctx = kCtx});
  engine_test::Copied out;
  std::vector<float> all;
  for (const int n : {9, 1, 1, 1, 5, 1}) {
    const std::vector<int> ids = tiny::ids(session.pos() + n);
    const auto fed = std::span(ids).subspan(static_cast<size_t>(session.pos()));
    EXPECT_TRUE(engine_test::prefill(opened.engine(), session, fed, &out));
    all.insert(all.end(), out.logits.begin(), out.logits.end());
  }
  return all;
}

// Whether a session of kCtx positions opens.
bool opens(const std::string& path, const ModelOptions& options) {
  const auto model = Model::open(path, options);
  if (!model) return false;
  const auto engine = Engine::create(*model, {.threads = 2, .prefill_chunk = 8});
  return engine && (*engine)->open_session({.layout = "grow", .ctx = kCtx});
}

// The smallest budget, in steps of a page, in which a session opens.
size_t least_budget(const std::string& path, ModelOptions options) {
  constexpr size_t kPage = 4096;
  size_t fits = size_t{64} << 20, too_small = 0;
  while (fits - too_small > kPage) {
    options.ram = (too_small + fits) / 2 / kPage * kPage;
    const bool enough = opens(path, options);
    (enough ? fits : too_small) = options.ram;
  }
  return fits;
}

// A larger budget keeps more layers and experts, and changes no bit.
TEST(StreamedModel, KeepsWhatTheBudgetHasRoomFor) {
  for (const tiny::Model& model : {tiny::llama(), tiny::experts("qwen3_moe", 3), tiny::experts("mixtral", 3)}) {
    Opened resident(model);
    const std::vector<float> expected = logits_of(resident);
    ModelOptions options;
    options.weights = WeightsMode::streamed;
    options.with_tokenizer = false;
    const size_t least = least_budget((resident.folder() / "model").string(), options);
    size_t before = 0;
    for (const size_t more : {0, 20'000, 60'000, 3'000'000}) {
      options.ram = least + more;
      Opened streamed(model, {.threads = 2, .prefill_chunk = 8}, options);
      EXPECT_TRUE(same_bits(logits_of(streamed), expected)) << more;
      EXPECT_TRUE(same_bits(logits_of(streamed), expected)) << "with what the first left in memory";
      const size_t held = streamed.model().weight_stats().memory_bytes;
      EXPECT_GE(held, before) << more;
      before = held;
    }
    EXPECT_GT(before, resident.model().info().weights_bytes / 2);
  }
}

// A session that needs the memory of kept weights gets it.
TEST(StreamedModel, KeptWeightsGiveWayToSessions) {
  const tiny::Model model = tiny::experts("qwen3_moe", 3);
  ModelOptions options;
  options.weights = WeightsMode::streamed;
  options.with_tokenizer = false;
  Opened resident(model);
  options.ram = least_budget((resident.folder() / "model").string(), options) + 150'000;
  Opened streamed(model, {.threads = 2, .prefill_chunk = 8}, options);
  const std::vector<float> expected = logits_of(resident);
  EXPECT_TRUE(same_bits(logits_of(streamed), expected));
  const size_t full = streamed.model().weight_stats().memory_bytes;
  std::vector<Session> sessions;
  for (;;) {
    auto session = streamed.engine().open_session({.layout = "grow", .ctx = kCtx});
    if (!session) break;
    sessions.push_back(std::move(*session));
  }
  EXPECT_GE(sessions.size(), 5u);
  EXPECT_LT(streamed.model().weight_stats().memory_bytes, full);
  sessions.pop_back();
  EXPECT_TRUE(same_bits(logits_of(streamed), expected));
}

}  // namespace
}  // namespace kvasir
