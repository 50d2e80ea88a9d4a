// A GGUF file is recognised by its first bytes, not by its name; an error about a dangling link says that it is one.
#include <filesystem>

#include "lab/inspect.h"
#include "lab/quantize.h"
#include "tests/support/engines.h"
#include "tests/support/gguf_models.h"

namespace kvasir {
namespace {

using namespace engine_test;
namespace fs = std::filesystem;

class RegressNames : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  tiny::TempFolder folder_;
  tiny::ScopedEnv cache_{"XDG_CACHE_HOME", (folder_ / "cache").string()};
};

TEST_F(RegressNames, AGgufFileIsKnownByItsFirstBytes) {
  const std::string bytes = tiny::llama_gguf(tiny::llama()).data;
  tiny::put(path("m.gguf"), bytes);
  const auto usual = Model::open(path("m.gguf"));
  ASSERT_TRUE(usual) << message_of(usual);
  for (const char* name : {"sha256-0123", "T.GGUF", "ggml-model.bin", "m.json", "m.safetensors", "m.model"}) {
    tiny::put(path(name), bytes);
    const auto model = Model::open(path(name));
    ASSERT_TRUE(model) << message_of(model);
    EXPECT_EQ(*(*model)->fingerprint(), *(*usual)->fingerprint()) << name;
    const auto inspection = inspect(path(name));
    ASSERT_TRUE(inspection) << message_of(inspection);
    EXPECT_EQ(inspection->format, "GGUF v3") << name;
    EXPECT_EQ(inspection->fingerprint, *(*usual)->fingerprint()) << name;
    EXPECT_THAT(message_of(open_tokenizer(path(name))), HasSubstr("tokenizer.ggml")) << "it is looked for in it";
    QuantizeOptions options;
    options.model = path(name);
    options.out = path("out.gguf");
    options.type = "f16";
    options.with_tokenizer = false;
    options.force = true;
    const auto report = quantize(options);
    EXPECT_TRUE(report) << message_of(report) << name;
  }
}

TEST_F(RegressNames, ALinkToNothingIsNamed) {
  const auto refusal = [this](const std::string& model) { return message_of(Model::open(path(model))); };
  const auto linked = [](const std::string& to) { return HasSubstr("a link to " + to + ", which does not exist"); };
  fs::create_symlink("blobs/gone", folder_ / "model.gguf");
  EXPECT_THAT(refusal("model.gguf"), AllOf(HasSubstr(path("model.gguf")), linked("blobs/gone")));
  fs::create_symlink("gone", folder_ / "folder");
  EXPECT_THAT(refusal("folder"), linked("gone"));
  EXPECT_THAT(message_of(open_tokenizer(path("folder"))), linked("gone"));
  for (const std::string file :
       {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer.model"}) {
    tiny::llama().write(folder_ / "snapshot");
    fs::remove(folder_ / "snapshot" / file);
    fs::create_symlink("../blobs/" + file, folder_ / "snapshot" / file);
    EXPECT_THAT(refusal("snapshot"), AllOf(HasSubstr("snapshot/" + file), linked("../blobs/" + file)));
    fs::remove_all(folder_ / "snapshot");
  }
  tiny::llama().write_sharded(folder_ / "shards");
  fs::path shard;
  for (const auto& entry : fs::directory_iterator(folder_ / "shards"))
    if (entry.path().extension() == ".safetensors") shard = entry.path();
  fs::remove(shard);
  fs::create_symlink("gone", shard);
  EXPECT_THAT(refusal("shards"), AllOf(HasSubstr(shard.string()), linked("gone")));
  fs::remove(folder_ / "shards" / "model.safetensors.index.json");
  fs::create_symlink("gone.json", folder_ / "shards" / "model.safetensors.index.json");
  EXPECT_THAT(refusal("shards"), linked("gone.json"));
}

}  // namespace
}  // namespace kvasir
