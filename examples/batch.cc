// batch [MODEL]: generates three texts in the same passes. Each is bit for bit the text that it is alone.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <kvasir/generate.h>

namespace {

struct Sequence {
  kvasir::Session session;
  kvasir::Generator generator;
};

// Runs one pass over all sequences that are not done; a long prompt takes several. Returns false if all are done.
kvasir::Result<bool> advance(kvasir::Engine& engine, std::vector<Sequence>& sequences) {
  std::vector<Sequence*> active;
  for (Sequence& s : sequences)
    if (!s.generator.done()) active.push_back(&s);
  if (active.empty()) return false;
  const int most = std::max(1, engine.pass_tokens() / static_cast<int>(active.size()));
  std::vector<kvasir::Feed> feeds;
  for (Sequence* s : active) feeds.push_back(s->generator.next(s->session, most));
  kvasir::PassOutput out;
  KVASIR_CHECK(engine.pass(feeds, &out));
  for (size_t i = 0; i < active.size(); ++i) {
    if (out[i].error) return tl::unexpected(*out[i].error);
    KVASIR_CHECK(active[i]->generator.take(out[i].logits));
  }
  return true;
}

kvasir::Result<void> run(const std::string& model_path) {
  KVASIR_TRY(const auto model, kvasir::Model::open(model_path));
  KVASIR_TRY(const auto engine, kvasir::Engine::create(model));
  kvasir::GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = 16;
  std::vector<Sequence> sequences;
  for (const char* prompt : {"Once upon a time", "The king said", "A little dog"}) {
    KVASIR_TRY(auto session, engine->open_session());
    KVASIR_TRY(auto ids, model->tokenizer()->encode(prompt));
    KVASIR_TRY(auto generator, kvasir::Generator::create(model, std::move(ids), options));
    sequences.push_back({std::move(session), std::move(generator)});
  }
  for (bool more = true; more;) {
    KVASIR_TRY(more, advance(*engine, sequences));
  }
  for (const Sequence& s : sequences) std::printf("%s\n", s.generator.result().text.c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto done = run(argc > 1 ? argv[1] : "tales");
  if (!done) std::fprintf(stderr, "batch: %s\n", done.error().message().c_str());
  return done ? 0 : 1;
}
