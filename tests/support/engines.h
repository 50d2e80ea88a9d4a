// What the engine tests share: a tiny or a shipped model with an engine over it, its fingerprints remembered in a
// folder of the test's own. Test code only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kvasir/engine.h>
#include <kvasir/generate.h>

#include "cache/layout.h"
#include "tests/support/tiny_models.h"

namespace kvasir::engine_test {

using testing::AllOf;
using testing::HasSubstr;
using tiny::message_of;
using tiny::same_bits;

/// A model in a folder that lives as long as this, and an engine.
class Opened {
 public:
  explicit Opened(const tiny::Model& model, const EngineOptions& options = {.threads = 2},
                  const ModelOptions& model_options = {})
      : remembered_("XDG_CACHE_HOME", (folder_ / "cache").string()) {
    model.write(folder_ / "model");
    open((folder_ / "model").string(), options, model_options);
  }
  /// A model that ships with Kvasir.
  explicit Opened(const std::string& name, const EngineOptions& options = {.threads = 2})
      : remembered_("XDG_CACHE_HOME", (folder_ / "cache").string()) {
    open(std::string(KVASIR_SOURCE_DIR "/models/") + name, options, {});
  }

  Engine& engine() { return *engine_; }
  const Model& model() const { return *model_; }
  const std::shared_ptr<const Model>& shared() const { return model_; }
  const tiny::TempFolder& folder() const { return folder_; }
  Session session(const SessionOptions& options = {}) const {
    auto session = engine_->open_session(options);
    EXPECT_TRUE(session) << message_of(session);
    return std::move(*session);
  }
  /// Logits of the last token after typing `ids` into a new session.
  std::vector<float> fresh(const std::vector<int>& ids, const SessionOptions& options = {}) {
    Session s = session(options);
    StepOutput out;
    const auto done = engine_->prefill(s, ids, &out);
    EXPECT_TRUE(done) << message_of(done);
    return out.logits;
  }

 private:
  void open(const std::string& path, const EngineOptions& options, const ModelOptions& model_options) {
    auto model = Model::open(path, model_options);
    ASSERT_TRUE(model) << message_of(model);
    model_ = *model;
    auto engine = Engine::create(model_, options);
    ASSERT_TRUE(engine) << message_of(engine);
    engine_ = std::move(*engine);
  }

  tiny::TempFolder folder_;
  tiny::ScopedEnv remembered_;
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Engine> engine_;
};

inline std::vector<std::string> layout_names() {
  std::vector<std::string> names;
  for (const LayoutInfo* info : layouts()) names.emplace_back(info->name);
  return names;
}

/// Requires: the name of a mode.
inline ModelOptions with_weights(std::string_view mode) {
  ModelOptions options;
  options.weights = *parse_weights_mode(mode);
  return options;
}
inline ModelOptions with_tokenizer(std::string path) {
  ModelOptions options;
  options.tokenizer = std::move(path);
  return options;
}

inline SamplingParams greedy() { return {.temperature = 0}; }

/// Greedy, past any end of text.
inline GenerateOptions greedy_tokens(int n) {
  GenerateOptions options;
  options.sampling = greedy();
  options.max_tokens = n;
  options.ignore_eos = true;
  return options;
}
inline GenerateOptions with_receipt(GenerateOptions options) {
  options.receipt = true;
  return options;
}

}  // namespace kvasir::engine_test
