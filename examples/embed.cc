// embed [MODEL]: embeds texts as vectors and prints their similarity.
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include <kvasir/engine.h>

namespace {

kvasir::Result<void> run(const std::string& model_path) {
  KVASIR_TRY(const auto model, kvasir::Model::open(model_path));
  KVASIR_TRY(const auto engine, kvasir::Engine::create(model));
  KVASIR_TRY(auto session, engine->open_session());
  std::vector<std::vector<float>> vectors;
  for (const char* text : {"The king was old.", "The queen was old.", "A boat sailed on the sea."}) {
    KVASIR_TRY(const auto ids, model->tokenizer()->encode(text));
    KVASIR_TRY(vectors.emplace_back(), engine->embed(session, ids));  // of length 1
  }
  for (const auto& a : vectors) {
    for (const auto& b : vectors) std::printf("%7.4f", std::inner_product(a.begin(), a.end(), b.begin(), 0.0));
    std::printf("\n");
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto done = run(argc > 1 ? argv[1] : "tales");
  if (!done) std::fprintf(stderr, "embed: %s\n", done.error().message().c_str());
  return done ? 0 : 1;
}
