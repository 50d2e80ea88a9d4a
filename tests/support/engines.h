// Shared by the engine tests: a tiny or a shipped model with an engine over it; its fingerprints are stored in a folder
// of the test's own. Test code only.
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

/// A copy of the rows of all feeds, in order: an engine's own rows are valid only until its next pass.
struct Copied {
  std::vector<float> logits, hidden;

  void add(const FeedOutput& feed) {
    logits.insert(logits.end(), feed.logits.begin(), feed.logits.end());
    hidden.insert(hidden.end(), feed.hidden.begin(), feed.hidden.end());
  }
};

inline Result<void> copied(Result<void> done, PassOutput& rows, Copied* out) {
  if (!done) return done;
  *out = {};
  for (FeedOutput& feed : rows) {
    if (feed.error) return tl::unexpected(*feed.error);
    out->add(feed);
  }
  return {};
}
inline Result<void> step(Engine& engine, std::span<const Feed> feeds, Copied* out) {
  PassOutput rows;
  auto done = engine.step(feeds, &rows);
  return copied(std::move(done), rows, out);
}
inline Result<void> decode_step(Engine& engine, std::span<Session* const> sessions, std::span<const int> tokens,
                                Copied* out) {
  PassOutput rows;
  auto done = engine.decode_step(sessions, tokens, &rows);
  return copied(std::move(done), rows, out);
}
/// `to` is a session or a KVCache.
template <class To>
Result<void> prefill(Engine& engine, To& to, std::span<const int> tokens, Copied* out) {
  PassOutput rows(1);
  auto done = engine.prefill(to, tokens, &rows[0]);
  return copied(std::move(done), rows, out);
}
inline Result<void> decode_step(Engine& engine, KVCache& cache, std::span<const int> tokens, Copied* out) {
  PassOutput rows(1);
  auto done = engine.decode_step(cache, tokens, &rows[0]);
  return copied(std::move(done), rows, out);
}

/// A model in a temporary folder, and an engine over it.
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
  /// Returns the logits of the last token after feeding `ids` to a new session.
  std::vector<float> fresh(const std::vector<int>& ids, const SessionOptions& options = {}) {
    Session s = session(options);
    Copied out;
    const auto done = prefill(*engine_, s, ids, &out);
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

/// Requires: `mode` is the name of a mode.
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

/// Greedy decoding of n tokens; ignores the end of text.
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
