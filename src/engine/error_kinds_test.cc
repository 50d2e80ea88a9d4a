// The kind of the error for each cause that a caller of the library can meet.
#include <limits>
#include <set>
#include <string>

#include <kvasir/catalog.h>
#include <kvasir/plan.h>

#include "arch/network.h"
#include "base/thread_pool.h"
#include "engine/model_impl.h"
#include "tests/support/engines.h"

namespace kvasir {
namespace {

using namespace engine_test;
using testing::ElementsAre;
using tiny::put;
using tiny::TempFolder;

template <class T>
std::string kind_of(const Result<T>& result) {
  return result ? "no error" : std::string(kind_name(result.error().kind));
}

TEST(ErrorKinds, OfModelsOnDisk) {
  const TempFolder folder;
  const std::string gguf = folder / "m.gguf", model = folder / "model";
  EXPECT_EQ(kind_of(Model::open("no-such-model")), "not_found");
  EXPECT_EQ(kind_of(Model::open(folder.path())), "not_found") << "a folder without a config.json";
  put(gguf, "GGUF\3");
  EXPECT_EQ(kind_of(Model::open(gguf)), "damaged");
  put(folder / "m.onnx", "x");
  EXPECT_EQ(kind_of(Model::open(folder / "m.onnx")), "unsupported");
  tiny::llama().write(model);
  put(model + "/config.json", R"({"model_type": "mamba"})");
  EXPECT_EQ(kind_of(Model::open(model)), "unsupported");
  put(model + "/config.json", "{");
  EXPECT_EQ(kind_of(Model::open(model)), "damaged");
  put(model + "/config.json", tiny::llama().config);
  tiny::fs::remove(model + "/model.safetensors");
  EXPECT_EQ(kind_of(Model::open(model)), "not_found");
}

TEST(ErrorKinds, OfOptions) {
  Opened opened(tiny::llama());
  const auto open = [&](const SessionOptions& options) { return opened.engine().open_session(options); };
  EXPECT_EQ(kind_of(open({.ctx = 161})), "bad_argument");
  EXPECT_EQ(kind_of(open({.layout = "hash"})), "bad_argument");
  EXPECT_EQ(kind_of(open({.window = -1})), "bad_argument");
  EXPECT_EQ(kind_of(open({.kv_type_v = "f31"})), "bad_argument");
  EXPECT_EQ(open({.kv_type_v = "f31"}).error().where, "SessionOptions::kv_type_v");
  EXPECT_EQ(kind_of(ThreadPool::create(0)), "bad_argument");
  PlanRequest request;
  request.chat = -3;
  EXPECT_EQ(kind_of(plan(request)), "bad_argument");
  EXPECT_EQ(kind_of(parse_weights_mode("light")), "bad_argument");
}

// The hints of all refusals, for budgets from one without room for the tokenizer up to one with room for the model.
std::set<std::string> hints_of_refusals(const std::string& weights) {
  std::set<std::string> hints;
  ModelOptions options = with_weights(weights);
  for (options.ram = 10'000'000;; options.ram += 500'000) {
    const auto opened = Model::open("tales", options);
    if (opened) return hints;
    EXPECT_EQ(kind_of(opened), "no_room");
    EXPECT_EQ(opened.error().where, "ModelOptions::ram");
    hints.insert(opened.error().hint);
  }
}

TEST(ErrorKinds, OfABudget) {
  const std::string more = "a larger ModelOptions::ram";
  EXPECT_THAT(hints_of_refusals("resident"), ElementsAre(more, more + ", or ModelOptions::weights = streamed"));
  EXPECT_THAT(hints_of_refusals("streamed"), ElementsAre(more));
  EXPECT_THAT(hints_of_refusals("auto"), ElementsAre(more)) << "it streams what does not fit";
}

TEST(ErrorKinds, OfSnapshots) {
  Opened opened(tiny::llama());
  Session session = opened.session();
  Copied out;
  ASSERT_TRUE(prefill(opened.engine(), session, tiny::ids(20), &out));
  const std::string path = opened.folder() / "s.kv";
  ASSERT_TRUE(session.save(path));
  EXPECT_EQ(kind_of(session.save(opened.folder().path())), "io") << "a folder is in the way";
  EXPECT_EQ(kind_of(session.save(opened.folder() / "none" / "s.kv")), "not_found");
  EXPECT_EQ(kind_of(session.truncate(21)), "bad_argument");
  Session other = opened.session({.ctx = 19});
  EXPECT_EQ(kind_of(other.load(path)), "too_long");
  EXPECT_EQ(kind_of(other.load(path + "2")), "not_found");
  other = opened.session({.kv_type_k = "f16"});
  EXPECT_EQ(kind_of(other.load(path)), "bad_argument");
  tiny::fs::resize_file(path, tiny::fs::file_size(path) - 1);
  EXPECT_EQ(kind_of(session.load(path)), "damaged");
}

TEST(ErrorKinds, OfAPass) {
  tiny::Model model = tiny::llama();
  for (float& x : model.at("lm_head.weight").values) x = std::numeric_limits<float>::infinity();
  Opened opened(model);
  Session session = opened.session();
  Copied out;
  EXPECT_EQ(kind_of(prefill(opened.engine(), session, tiny::ids(5), &out)), "not_finite");
  const auto pool = *ThreadPool::create(1);
  WeightSource& source = opened.model().impl().network->source();
  EXPECT_EQ(kind_of(source.acquire(source.groups(), -1, *pool)), "internal");
}

}  // namespace
}  // namespace kvasir
