// Memory of layouts at the size of SmolLM2-135M: in counters and in the resident set.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include <kvasir/engine.h>
#include <kvasir/plan.h>

#include "cache/layout.h"
#include "lab/synth.h"
#include "tests/support/engines.h"
#include "tests/support/layout_model.h"

namespace kvasir::conformance {
namespace {

using engine_test::message_of;

constexpr size_t kMiB = size_t{1} << 20;

struct Peak {
  size_t counted = 0, final_bytes = 0, resident = 0;
};

size_t status_bytes(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;)
    if (word == key + ":") {
      size_t kib = 0;
      in >> kib;
      return kib * 1024;
    }
  return 0;
}

// Appends 8,192 positions one by one and writes all their rows.
Peak type_all(const LayoutInfo& info) {
  const CacheShape s{30, 3, 64, 8192, kv_type_of(codec_f32()), kv_type_of(codec_f32())};
  const size_t before = status_bytes("VmRSS");
  const auto layout = *info.make(s);
  const std::vector<float> row(3 * 64, 1.5f);
  for (int pos = 0; pos < s.max_ctx; ++pos) {
    layout->apply(std::move(*layout->prepare(pos + 1)));
    for (int layer = 0; layer < s.layers; ++layer) layout->write(layer, pos, row.data(), row.data());
    layout->commit(pos + 1);
  }
  return {layout->peak_bytes(), layout->bytes(), status_bytes("VmHWM") - before};
}

// Measures in a separate process, so that the peak is only this layout's.
Peak measured(std::string_view name) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::ofstream("/proc/self/clear_refs") << 5;  // the peak counts from here
    const Peak peak = type_all(**find_layout(name));
    _exit(write(ends[1], &peak, sizeof peak) == sizeof peak ? 0 : 1);
  }
  Peak peak;
  EXPECT_EQ(read(ends[0], &peak, sizeof peak), static_cast<ssize_t>(sizeof peak));
  int status = 1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(ends[0]);
  close(ends[1]);
  return peak;
}

// For grow, the counted peak is the old and the new rows together. They are never all resident: of the new rows only
// the copied ones have pages, as many as the old ones, so the moment of growth holds no more than the end.
TEST(SlowLayoutMemory, ReserveAndPagedPeakAtWhatTheyEndWithAndGrowAtHalfMore) {
  constexpr size_t kFinal = 377'487'360;
  for (const auto& [name, counted] : {std::pair{"reserve", kFinal}, {"paged", kFinal}, {"grow", kFinal * 3 / 2}}) {
    const Peak peak = measured(name);
    EXPECT_EQ(peak.final_bytes, kFinal) << name;
    EXPECT_EQ(peak.counted, counted) << name;
    EXPECT_NEAR(static_cast<double>(peak.resident) / kMiB, static_cast<double>(kFinal) / kMiB, 6.0) << name;
  }
}

// A model with SmolLM2's KV shape and almost no weights.
std::string small_model(const std::filesystem::path& folder) {
  std::ofstream(folder / "config.json") << R"({"model_type": "llama", "hidden_size": 32, "num_attention_heads": 3,
"num_key_value_heads": 3, "head_dim": 64, "num_hidden_layers": 30, "intermediate_size": 32, "vocab_size": 300,
"max_position_embeddings": 8192, "rms_norm_eps": 1e-6, "hidden_act": "silu"})";
  const auto made = synthesize({.shape = (folder / "config.json").string(), .out = folder / "model", .dtype = "f16"});
  EXPECT_TRUE(made) << message_of(made);
  return (folder / "model").string();
}

// Number of chats of 1,024 tokens that run before the memory for KV refuses one.
int chats_that_run(const std::string& path, const SessionOptions& options) {
  ModelOptions limited;
  limited.with_tokenizer = false;
  limited.kv_ram = 512 * kMiB;
  const auto model = Model::open(path, limited);
  EXPECT_TRUE(model) << message_of(model);
  const auto engine = Engine::create(*model, {.threads = 2});
  const std::vector<int> ids = tiny::ids(1024, 0, 300);
  std::vector<Session> sessions;
  for (;;) {
    auto session = (*engine)->open_session(options);
    engine_test::Copied out;
    if (!session || !engine_test::prefill(**engine, *session, ids, &out)) return static_cast<int>(sessions.size());
    sessions.push_back(std::move(*session));
  }
}

TEST(SlowLayoutMemory, AsManyChatsRunAsPlanSays) {
  const tiny::TempFolder folder;
  const std::string model = small_model(folder.path());
  const bool all = std::getenv("KVASIR_TEST_ALL") != nullptr;
  const struct {
    const char *layout, *type;
    int64_t chats;
    bool always;
  } cases[] = {{"dense", "f32", 1, true},  {"paged", "f32", 11, true}, {"paged", "f16", 22, all},
               {"paged", "q8_0", 42, all}, {"paged", "q4_0", 80, all}, {"paged", "q4_0h", 80, all}};
  for (const auto& c : cases) {
    const SessionOptions options{.layout = c.layout, .ctx = 8192, .kv_type_k = c.type, .kv_type_v = c.type};
    PlanRequest request;
    request.model = model;
    request.session = options;
    request.chat = 1024;
    request.kv_ram = 512 * kMiB;
    const auto planned = plan(request);
    ASSERT_TRUE(planned) << message_of(planned);
    EXPECT_EQ(planned->users_that_fit, c.chats) << c.layout << " " << c.type;
    if (!c.always) continue;
    EXPECT_EQ(chats_that_run(model, options), c.chats) << c.layout << " " << c.type;
  }
}

}  // namespace
}  // namespace kvasir::conformance
