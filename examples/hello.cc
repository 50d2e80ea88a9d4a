// hello [MODEL [PROMPT]]: opens a model and continues a text.
#include <cstdio>
#include <string>

#include <kvasir/generate.h>

namespace {

kvasir::Result<std::string> continued(const std::string& model_path, const std::string& prompt) {
  KVASIR_TRY(const auto model, kvasir::Model::open(model_path));
  KVASIR_TRY(const auto engine, kvasir::Engine::create(model));
  KVASIR_TRY(auto session, engine->open_session());
  KVASIR_TRY(const auto ids, model->tokenizer()->encode(prompt));

  kvasir::GenerateOptions options;
  options.sampling.temperature = 0;  // always the likeliest token
  options.max_tokens = 20;
  KVASIR_TRY(const kvasir::Generation done, kvasir::generate(*engine, session, ids, options));
  return prompt + done.text;
}

}  // namespace

int main(int argc, char** argv) {
  const auto text = continued(argc > 1 ? argv[1] : "tales", argc > 2 ? argv[2] : "Once upon a time");
  if (!text) {
    std::fprintf(stderr, "hello: %s\n", text.error().message().c_str());
    return 1;
  }
  std::printf("%s\n", text->c_str());
}
