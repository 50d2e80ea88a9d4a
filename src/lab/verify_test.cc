// Names of verify's cases, and its refusals. tests/conformance checks that it catches deliberate mistakes.
#include <kvasir/verify.h>

#include "tests/support/engines.h"

namespace kvasir {
namespace {

using engine_test::HasSubstr;
using engine_test::message_of;
using engine_test::Opened;

TEST(Verify, NamesOfCases) {
  VerifyCase c{.layout = "dense", .threads = 2, .chunk = 0, .batch = 4};
  EXPECT_EQ(c.name(), "dense threads=2 chunk=all batch=4");
  c.chunk = 7;
  c.kv_type = "q8_0";
  EXPECT_EQ(c.name(), "kv=q8_0 dense threads=2 chunk=7 batch=4");
  c.kv_type.clear();
  c.window = 24;
  c.sinks = 3;
  EXPECT_EQ(c.name(), "window=24+3 dense threads=2 chunk=7 batch=4");
  EXPECT_EQ((VerifyCase{.layout = "paged", .threads = 1, .chunk = 7, .batch = 1, .act = "fork"}.name()), "paged fork");
}

TEST(Verify, EveryCaseOfALayoutHasItsFields) {
  Opened opened(tiny::llama());
  VerifyOptions options;
  options.prompts = {tiny::ids(9), tiny::ids(6)};
  options.new_tokens = 3;
  options.layouts = {"paged"};
  options.threads = {2};
  options.chunks = {5};
  options.batches = {2};
  const auto report = verify(opened.shared(), options);
  ASSERT_TRUE(report) << message_of(report);
  EXPECT_TRUE(report->pass);
  int plain = 0, acts = 0, types = 0, windows = 0;
  for (const VerifyCase& c : report->cases) {
    EXPECT_EQ(c.layout, "paged");
    EXPECT_EQ(c.threads, 2);
    EXPECT_EQ(c.chunk, 5);
    EXPECT_EQ(c.batch, c.act.empty() ? 2 : 1) << c.name();
    EXPECT_EQ(c.sinks, c.window > 0 ? kDefaultSinks : 0);
    ++(!c.act.empty() ? acts : !c.kv_type.empty() ? types : c.window > 0 ? windows : plain);
  }
  EXPECT_EQ(plain, 1);
  EXPECT_EQ(acts, 7);
  EXPECT_EQ(types, static_cast<int>(catalog::kv_types().size()) - 1);
  EXPECT_EQ(windows, opened.model().info().takes_window ? 1 : 0);
}

TEST(Verify, RefusesALayoutThatIsNotThere) {
  Opened opened(tiny::gpt2());
  VerifyOptions options;
  options.prompts = {tiny::ids(4)};
  options.new_tokens = 1;
  options.layouts = {"heap"};
  EXPECT_THAT(message_of(verify(opened.shared(), options)), HasSubstr("\"heap\" is not a cache layout"));
}

}  // namespace
}  // namespace kvasir
