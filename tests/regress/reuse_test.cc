// Mistakes of other engines in reusing, sharing or restoring a KV cache. Each comes from a bug report.
#include <filesystem>

#include "base/buffer.h"
#include "cache/layout.h"
#include "tests/support/engines.h"

namespace kvasir {
namespace {

using namespace engine_test;

constexpr size_t kPlenty = size_t{64} << 20;

GenerateOptions whole_text(int n) {
  GenerateOptions options = with_receipt(greedy_tokens(n));
  options.whole_text = true;
  return options;
}

Generation asked(Engine& engine, std::span<const int> text, SessionOptions options = {.layout = "paged"}) {
  auto session = engine.open_session(options);
  EXPECT_TRUE(session) << message_of(session);
  auto g = generate(engine, *session, text, whole_text(20));
  EXPECT_TRUE(g) << message_of(g);
  return g ? std::move(*g) : Generation{};
}

std::vector<int> joined(std::vector<int> a, const std::vector<int>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// vllm#40896, vllm#5543, sglang#22819, llama.cpp#4902, lmcache#4463: the same greedy request, repeated, is answered
// from the cache with another text.
TEST(Regress, AReusedPrefixGivesTheSameAnswer) {
  Opened opened(tiny::llama(), {.threads = 2, .prefill_chunk = 32, .prefix_ram = kPlenty});
  const std::vector<int> text = tiny::ids(130);
  const Generation cold = asked(opened.engine(), text);
  EXPECT_EQ(cold.cached_tokens, 0);
  for (int i = 0; i < 4; ++i) {
    const Generation warm = asked(opened.engine(), text);
    EXPECT_EQ(warm.cached_tokens, 129);
    EXPECT_EQ(warm.receipt, cold.receipt);
  }
}

// llama.cpp#7052, vllm#23138, transformers#26869: one prompt in eight slots gives up to eight texts.
TEST(Regress, CompanyDoesNotChangeAnAnswer) {
  Opened opened(tiny::llama(), {.threads = 2, .prefill_chunk = 32});
  std::vector<std::vector<int>> prompts(8, tiny::ids(40));
  for (int i = 0; i < 8; ++i) prompts.push_back(tiny::ids(3 + 15 * i, static_cast<uint64_t>(i)));
  const std::string alone = asked(opened.engine(), prompts[0]).receipt;
  int same = 0;
  const auto done =
      generate_batch(opened.engine(), {}, prompts, 16, whole_text(20), [&](size_t i, Result<Generation>&& g) {
        EXPECT_TRUE(g && (i >= 8 || g->receipt == alone)) << i;
        same += i < 8;
      });
  EXPECT_TRUE(done) << message_of(done);
  EXPECT_EQ(same, 8);
}

// llama.cpp#25913: a restore that succeeds, after which everything is computed again; #26676: a no-op after a restart;
// #14434: an empty slot crashes; #28276: a restored slot hides a longer stored prefix of the text.
TEST(Regress, ARestoredSessionIsThere) {
  Opened opened(tiny::llama(), {.threads = 1, .prefix_ram = kPlenty});
  const std::string path = (opened.folder() / "s.kv").string();
  const std::vector<int> text = tiny::ids(120);
  {
    Session session = opened.session();
    engine_test::Copied out;
    ASSERT_TRUE(session.save(path)) << "an empty one";
    ASSERT_TRUE(session.load(path));
    ASSERT_TRUE(engine_test::prefill(opened.engine(), session, std::span(text).first(60), &out));
    ASSERT_TRUE(session.save(path));
  }
  const auto model = Model::open((opened.folder() / "model").string());  // as after a restart
  const auto engine = Engine::create(*model, {.threads = 2});
  Session session = std::move(*(*engine)->open_session({.layout = "dense"}));
  ASSERT_TRUE(session.load(path));
  const auto g = generate(**engine, session, text, whole_text(20));
  ASSERT_TRUE(g) << message_of(g);
  EXPECT_EQ(g->cached_tokens, 60);
  const Generation known = asked(opened.engine(), text);
  EXPECT_EQ(g->receipt, known.receipt);
  Session restored = opened.session({.layout = "paged"});
  ASSERT_TRUE(restored.load(path));
  const auto longest = generate(opened.engine(), restored, text, whole_text(20));
  ASSERT_TRUE(longest);
  EXPECT_EQ(longest->cached_tokens, 119) << "more is kept of it than the file has";
  EXPECT_EQ(longest->receipt, known.receipt);
}

// llama.cpp#27068: a rejected file leaves half of its data in the live cache.
TEST(Regress, ARejectedFileLeavesNothing) {
  Opened opened(tiny::llama(), {.threads = 1});
  const std::string path = (opened.folder() / "s.kv").string();
  Session saved = opened.session(), session = opened.session();
  engine_test::Copied out;
  ASSERT_TRUE(engine_test::prefill(opened.engine(), saved, tiny::ids(130), &out));
  ASSERT_TRUE(saved.save(path));
  std::string bytes = format_test::slurp(path);
  bytes[bytes.size() - 40] ^= 1;  // in the last block, after two that are right
  format_test::put(path, bytes);
  EXPECT_FALSE(session.load(path));
  EXPECT_EQ(session.pos(), 0);
  ASSERT_TRUE(engine_test::prefill(opened.engine(), session, tiny::ids(90, 4), &out));
  EXPECT_TRUE(same_bits(out.logits, opened.fresh(tiny::ids(90, 4))));
}

// lmcache#4385, sglang#26747, GHSA-rm76-4mrf-v9r8: an answer from another user's text, because the key did not tell
// them apart; mlx-lm#1494: rows appended after a trim meet the trimmed rows.
TEST(Regress, NobodyGetsAnothersText) {
  Opened opened(tiny::llama(), {.threads = 1, .prefix_ram = kPlenty});
  const std::vector<int> text = tiny::ids(100);
  asked(opened.engine(), text, {.layout = "paged", .salt = "one"});
  EXPECT_EQ(asked(opened.engine(), text, {.layout = "paged", .salt = "other"}).cached_tokens, 0);
  for (size_t i = 0; i < text.size(); i += 9) {  // a text that differs in one token shares what is before it
    std::vector<int> near = text;
    near[i] = (near[i] + 1) % 50;
    const Generation g = asked(opened.engine(), near, {.layout = "paged", .salt = "one"});
    EXPECT_EQ(g.cached_tokens, static_cast<int>(i));
    Session fresh = opened.session();
    EXPECT_EQ(g.receipt, generate(opened.engine(), fresh, near, with_receipt(greedy_tokens(20)))->receipt) << i;
  }
  for (const LayoutInfo* layout : layouts()) {
    Session session = opened.session({.layout = std::string(layout->name)});
    engine_test::Copied out;
    ASSERT_TRUE(engine_test::prefill(opened.engine(), session, text, &out));
    ASSERT_TRUE(session.truncate(70));
    ASSERT_TRUE(engine_test::prefill(opened.engine(), session, tiny::ids(20, 6), &out));
    EXPECT_TRUE(same_bits(out.logits, opened.fresh(joined({text.begin(), text.begin() + 70}, tiny::ids(20, 6)))))
        << layout->name;
  }
}

// llama.cpp#22629, #20509, #27725, ik#2320, production-stack#923: a limit that is not enforced until the system runs
// out of memory.
TEST(Regress, ALimitOfBytesIsOne) {
  ModelOptions limited;
  limited.kv_ram = 200000;
  const size_t before = live_bytes(Owner::kv);
  Opened opened(tiny::llama(), {.threads = 1, .prefix_ram = 120000}, limited);
  for (int i = 0; i < 100; ++i) {
    asked(opened.engine(), tiny::ids(20 + i, static_cast<uint64_t>(i % 7)));
    ASSERT_LE(opened.engine().prefix_stats().bytes, 120000u);
    ASSERT_LE(live_bytes(Owner::kv) - before, 200000u);
  }
  EXPECT_GT(opened.engine().prefix_stats().hits, 10);
}

// llama.cpp#3817: a crash at the limit of the context; llamafile#771: endless retries; ik#1619: a full cache fails
// fresh sessions.
TEST(Regress, AFullContextHarmsNobody) {
  ModelOptions limited;
  limited.kv_ram = 150000;
  Opened opened(tiny::llama(), {.threads = 1, .prefix_ram = kPlenty}, limited);
  for (int i = 0; i < 6; ++i) {
    Session full = opened.session({.layout = "paged"});
    const auto to_the_end = generate(opened.engine(), full, tiny::ids(150, static_cast<uint64_t>(i)), whole_text(-1));
    ASSERT_TRUE(to_the_end) << message_of(to_the_end);
    EXPECT_EQ(to_the_end->stop_reason, StopReason::length);
    EXPECT_EQ(full.pos(), 160);
    engine_test::Copied out;
    EXPECT_THAT(message_of(engine_test::prefill(opened.engine(), full, tiny::ids(1), &out)),
                AllOf(HasSubstr("161"), HasSubstr("160")));
    EXPECT_EQ(full.pos(), 160);
  }
}

// lmcache#2136, #1095, #2511: keys that differ between processes, so that no stored cache is found.
TEST(Regress, AnotherProcessFindsWhatWasSaved) {
  Opened one(tiny::llama()), other(tiny::llama());  // the same model in another folder
  const std::string path = (one.folder() / "s.kv").string();
  EXPECT_EQ(*one.model().fingerprint(), *other.model().fingerprint());
  Session saved = one.session(), loaded = other.session({.layout = "reserve"});
  engine_test::Copied out;
  ASSERT_TRUE(engine_test::prefill(one.engine(), saved, tiny::ids(50), &out));
  ASSERT_TRUE(saved.save(path));
  const auto read = loaded.load(path);
  ASSERT_TRUE(read) << message_of(read);
  EXPECT_EQ(loaded.pos(), 50);
}

// lmcache#2206: chunks whose size differs from the block size mix two generations.
TEST(Regress, NoSplitPointIsSpecial) {
  for (const int chunk : {1, 3, 63, 64, 65}) {
    Opened opened(tiny::llama(), {.threads = 1, .prefill_chunk = chunk, .prefix_ram = kPlenty});
    const std::vector<int> text = tiny::ids(140);
    asked(opened.engine(), text);
    for (const int shared : {1, 16, 63, 64, 65, 100, 127, 128, 129}) {
      const std::vector<int> next = joined({text.begin(), text.begin() + shared}, {49, 3, 8});
      const Generation g = asked(opened.engine(), next);
      EXPECT_GE(g.cached_tokens, shared);
      Session fresh = opened.session();
      EXPECT_EQ(g.receipt, generate(opened.engine(), fresh, next, with_receipt(greedy_tokens(20)))->receipt)
          << chunk << " " << shared;
    }
  }
}

// llama.cpp#13404: a template that rewrites earlier turns breaks every prefix, without a report.
TEST(Regress, ARewrittenHistoryIsTold) {
  Opened opened(tiny::llama());
  Session session = opened.session();
  const std::vector<int> first = tiny::ids(40);
  ASSERT_TRUE(generate(opened.engine(), session, first, whole_text(10)));
  std::vector<int> next(session.tokens().begin(), session.tokens().end());
  next = joined(next, tiny::ids(8, 3));
  const auto kept = generate(opened.engine(), session, next, whole_text(10));
  EXPECT_EQ(kept->cached_tokens, 49);
  EXPECT_EQ(kept->differs, -1);
  next = joined(next, kept->tokens);
  next[12] = (next[12] + 5) % 50;
  const auto rewritten = generate(opened.engine(), session, next, whole_text(10));
  EXPECT_EQ(rewritten->cached_tokens, 12);
  EXPECT_EQ(rewritten->differs, 12);
}

}  // namespace
}  // namespace kvasir
