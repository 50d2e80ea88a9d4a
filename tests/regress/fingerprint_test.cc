// A model's fingerprint decides whether a cache may be used. It must be that of the weights in use, whatever names,
// sizes and times say, and whatever happened to the file that stores it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <fmt/format.h>

#include "base/files.h"
#include "tests/support/engines.h"

namespace kvasir {
namespace {

using namespace engine_test;
using tiny::fs::path;
namespace fs = std::filesystem;

// Another model of the same shape and size.
tiny::Model other_llama() {
  tiny::Model model = tiny::llama();
  for (float& value : model.at("model.layers.1.mlp.up_proj.weight").values) value = -value;
  return model;
}

std::string fingerprint_of(const path& folder, const std::string& weights = "mapped") {
  const auto model = Model::open(folder.string(), with_weights(weights));
  EXPECT_TRUE(model) << message_of(model);
  const auto fingerprint = (*model)->fingerprint();
  EXPECT_TRUE(fingerprint) << message_of(fingerprint);
  return fingerprint.value_or("");
}

std::string unremembered(const tiny::Model& model) {
  const tiny::TempFolder folder;
  const tiny::ScopedEnv nowhere("XDG_CACHE_HOME", "/proc/nowhere");
  model.write(folder / "m");
  return fingerprint_of(folder / "m");
}

// Does what `rsync --inplace -t` and `cp -p` do: same file, other bytes, the old time restored.
void overwrite_keeping_time(const path& file, const std::string& bytes) {
  struct stat before {};
  ASSERT_EQ(::stat(file.c_str(), &before), 0);
  ASSERT_EQ(before.st_size, static_cast<off_t>(bytes.size()));
  std::fstream(file, std::ios::binary | std::ios::in | std::ios::out) << bytes;
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
}

// A model in its own folder, with a folder for stored fingerprints.
class RegressFingerprint : public testing::Test {
 protected:
  RegressFingerprint() {
    tiny::llama().write(folder_ / "model");
    other_llama().write(folder_ / "other");
    other_bytes_ = tiny::slurp(folder_ / "other" / "model.safetensors");
  }

  path model() const { return folder_ / "model"; }
  path weights() const { return model() / "model.safetensors"; }

  /// Returns the file that stores the fingerprint, written as if the model had been there for long: a recent one is not
  /// trusted.
  path remembered() {
    fingerprint_of(model());
    std::vector<path> stored;
    for (const auto& entry : fs::directory_iterator(folder_ / "cache" / "kvasir")) stored.push_back(entry.path());
    EXPECT_EQ(stored.size(), 1u);
    remember(stored[0], kLlama);
    return stored[0];
  }

  void remember(const path& store, const std::string& value) {
    const std::string text = tiny::slurp(store), key = text.substr(0, text.find('\n'));
    const std::string entry = key + "\n" + value + "\n9000000000000000000\n";
    tiny::put(store, entry + fmt::format("{:016x}\n", XXH3_64bits(entry.data(), entry.size())));
  }

  tiny::TempFolder folder_;
  tiny::ScopedEnv cache_{"XDG_CACHE_HOME", (folder_ / "cache").string()};
  std::string other_bytes_;
  const std::string kLlama = unremembered(tiny::llama()), kOther = unremembered(other_llama());
};

TEST_F(RegressFingerprint, OfAFileReplacedInPlaceWithItsTimeKept) {
  ASSERT_NE(kLlama, kOther);
  const path store = remembered();
  const std::string invented(32, 'a');
  remember(store, invented);
  ASSERT_EQ(fingerprint_of(model()), invented) << "this test needs a file that is believed";
  overwrite_keeping_time(weights(), other_bytes_);
  for (const char* mode : {"mapped", "resident", "streamed"}) EXPECT_EQ(fingerprint_of(model(), mode), kOther) << mode;
}

TEST_F(RegressFingerprint, OfAFileThatChangedAMomentAgoIsComputedAgain) {
  fingerprint_of(model());
  const path store = *fs::directory_iterator(folder_ / "cache" / "kvasir");
  const std::string text = tiny::slurp(store), invented(32, 'a');
  const size_t begin = text.find('\n') + 1;
  std::string entry = text.substr(0, text.size() - 17);
  entry.replace(begin, 32, invented);
  tiny::put(store, entry + fmt::format("{:016x}\n", XXH3_64bits(entry.data(), entry.size())));
  EXPECT_EQ(fingerprint_of(model()), kLlama) << "a second change within the clock's tick would not show";
}

TEST_F(RegressFingerprint, ACacheOfTheModelThatWasThereIsRefused) {
  remembered();
  const std::string file = (folder_ / "a.kv").string();
  const auto session_of = [&](const std::shared_ptr<const Model>& opened) {
    return std::move(*(*Engine::create(opened, {.threads = 1}))->open_session());
  };
  {
    const auto first = *Model::open(model().string());
    const auto engine = *Engine::create(first, {.threads = 1});
    Session session = *engine->open_session();
    engine_test::Copied out;
    ASSERT_TRUE(engine_test::prefill(*engine, session, tiny::ids(70), &out));
    ASSERT_TRUE(session.save(file));
    EXPECT_TRUE(session_of(first).load(file));
  }
  overwrite_keeping_time(weights(), other_bytes_);
  const auto second = *Model::open(model().string());
  Session session = session_of(second);
  EXPECT_THAT(message_of(session.load(file)), HasSubstr("the snapshot is of model " + kLlama + ", not " + kOther));
}

TEST_F(RegressFingerprint, DamagedValuesAreNoValues) {
  const path store = remembered();
  const std::string good = tiny::slurp(store), key = good.substr(0, good.find('\n') + 1);
  const auto same = [&](const std::string& what) { EXPECT_EQ(fingerprint_of(model()), kLlama) << what; };
  for (const std::string& value :
       {std::string(32, 'z'), std::string(32, 'A'), std::string(32, '\0'), std::string(32, '0'), std::string(31, 'a'),
        std::string(33, 'a'), std::string(), kOther, "0x" + std::string(30, '1')}) {
    std::string text = good;
    text.replace(key.size(), 32, value);
    tiny::put(store, text);
    same("with the sum of another: " + value);
  }
  for (const size_t bytes : {size_t{0}, key.size() - 1, key.size() + 5, key.size() + 32, good.size() - 1}) {
    tiny::put(store, good.substr(0, bytes));
    same(fmt::format("cut to {}", bytes));
  }
  tiny::put(store, key + kOther + "\n");
  same("without a sum");
  std::string flipped = good;
  flipped[key.size() + 3] = flipped[key.size() + 3] == '0' ? '1' : '0';
  for (const std::string& text : {good + good, good + "\n", "\n" + good, std::string(good.size(), '\0'), flipped}) {
    tiny::put(store, text);
    same(text);
  }
}

TEST_F(RegressFingerprint, SomethingElseInThePlaceOfTheValueIsNone) {
  const path store = remembered();
  fs::remove(store);
  fs::create_directory(store);
  EXPECT_EQ(fingerprint_of(model()), kLlama) << "a folder";
  fs::remove(store);
  ASSERT_EQ(::mkfifo(store.c_str(), 0600), 0);
  EXPECT_EQ(fingerprint_of(model()), kLlama) << "a pipe that nobody writes to";
  fs::remove(store);
  fs::create_symlink("nowhere", store);
  EXPECT_EQ(fingerprint_of(model()), kLlama) << "a link to nothing";
  fs::remove_all(folder_ / "cache");
  tiny::put(folder_ / "cache", "a file where the folder should be");
  EXPECT_EQ(fingerprint_of(model()), kLlama);
}

// Weights in memory are still the old ones and keep their fingerprint; others are no longer known.
TEST_F(RegressFingerprint, OfAFileThatChangesWhileItIsInUse) {
  for (const char* mode : {"resident", "mapped", "streamed"}) {
    tiny::llama().write(model());
    const auto opened = *Model::open(model().string(), with_weights(mode));
    overwrite_keeping_time(weights(), other_bytes_);
    const auto fingerprint = opened->fingerprint();
    if (std::string(mode) == "resident")
      EXPECT_EQ(*fingerprint, kLlama);
    else
      EXPECT_THAT(message_of(fingerprint), HasSubstr("were changed while they are in use")) << mode;
    EXPECT_EQ(fingerprint_of(model(), mode), kOther) << "nothing wrong was remembered";
  }
}

TEST_F(RegressFingerprint, OfAFileThatIsTouchedWhileItIsInUseStays) {
  const auto opened = *Model::open(model().string(), with_weights("mapped"));
  ASSERT_EQ(*opened->fingerprint(), kLlama);
  fs::permissions(weights(), fs::perms::owner_read);  // changes its ctime
  EXPECT_EQ(*opened->fingerprint(), kLlama);
  fs::permissions(weights(), fs::perms::owner_read | fs::perms::owner_write);
  overwrite_keeping_time(weights(), other_bytes_);
  EXPECT_THAT(message_of(opened->fingerprint()), HasSubstr("were changed while they are in use"));
}

TEST_F(RegressFingerprint, AReceiptIsOfOneModelFromItsBeginningToItsEnd) {
  const auto opened = *Model::open(model().string(), with_weights("streamed"));
  const auto engine = *Engine::create(opened, {.threads = 1});
  Session session = *engine->open_session();
  GenerateOptions options = with_receipt(greedy_tokens(5));
  int tokens = 0;
  options.sampling.temperature = 0;
  ASSERT_TRUE(generate(*engine, session, tiny::ids(5), options));
  std::vector<std::vector<int>> prompts(2, tiny::ids(6));
  const auto done = generate_batch(*engine, {}, prompts, 1, options, [&](size_t i, Result<Generation>&& g) {
    if (i == 0) overwrite_keeping_time(weights(), other_bytes_);
    EXPECT_THAT(message_of(g), HasSubstr(i == 0 ? "no error" : "were changed while they are in use"));
    ++tokens;
  });
  EXPECT_TRUE(done);
  EXPECT_EQ(tokens, 2);
}

}  // namespace
}  // namespace kvasir
