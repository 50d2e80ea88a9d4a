// fork_and_save [MODEL [FILE]]: continues one text in two ways, and saves a session and loads it into another one.
#include <cstdio>
#include <string>

#include <kvasir/generate.h>

namespace {

kvasir::Result<void> run(const std::string& model_path, const std::string& file) {
  KVASIR_TRY(const auto model, kvasir::Model::open(model_path));
  KVASIR_TRY(const auto engine, kvasir::Engine::create(model));
  kvasir::SessionOptions shape;
  shape.layout = "paged";  // forks share their blocks
  KVASIR_TRY(auto session, engine->open_session(shape));
  KVASIR_TRY(const auto ids, model->tokenizer()->encode("Once upon a time there was a"));
  kvasir::GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = 8;
  KVASIR_TRY(const auto begin, kvasir::generate(*engine, session, ids, options));
  std::printf("begin: %s\n", begin.text.c_str());

  KVASIR_TRY(auto other, session.fork());
  KVASIR_CHECK(session.save(file));

  options.sampling.temperature = 0.9;
  KVASIR_TRY(const auto first, kvasir::generate(*engine, session, {}, options));
  options.sampling.seed = 1;
  KVASIR_TRY(const auto second, kvasir::generate(*engine, other, {}, options));
  std::printf("first: %s\nsecond: %s\n", first.text.c_str(), second.text.c_str());

  KVASIR_TRY(auto loaded, engine->open_session());  // a loaded session may have any layout
  KVASIR_CHECK(loaded.load(file));
  options.sampling.seed = 0;
  KVASIR_TRY(const auto again, kvasir::generate(*engine, loaded, {}, options));
  std::printf("loaded: %s\n", again.text.c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto done = run(argc > 1 ? argv[1] : "tales", argc > 2 ? argv[2] : "once.kv");
  if (!done) std::fprintf(stderr, "fork_and_save: %s\n", done.error().message().c_str());
  return done ? 0 : 1;
}
