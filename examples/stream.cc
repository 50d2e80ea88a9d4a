// stream [MODEL [PROMPT]]: prints every token as it is generated, with its id and log probability.
#include <cstdio>
#include <string>

#include <kvasir/generate.h>

namespace {

void show(const kvasir::Event& event) {
  for (size_t i = 0; i < event.ids.size(); ++i) std::printf("%6d %8.4f\n", event.ids[i], event.logprobs[i].logprob);
  if (!event.text.empty()) std::printf("\"%s\"\n", event.text.c_str());  // whole characters; may lag behind the ids
  if (event.stop) std::printf("stopped by: %s\n", std::string(kvasir::stop_reason_name(*event.stop)).c_str());
  std::fflush(stdout);
}

kvasir::Result<void> stream(const std::string& model_path, const std::string& prompt) {
  KVASIR_TRY(const auto model, kvasir::Model::open(model_path));
  KVASIR_TRY(const auto engine, kvasir::Engine::create(model));
  KVASIR_TRY(auto session, engine->open_session());
  KVASIR_TRY(auto ids, model->tokenizer()->encode(prompt));

  kvasir::GenerateOptions options;
  options.sampling.seed = 7;
  options.max_tokens = 20;
  options.logprobs = 0;
  KVASIR_TRY(auto generator, kvasir::Generator::create(model, std::move(ids), options));
  kvasir::PassOutput out;
  while (!generator.done()) {
    const kvasir::Feed feed = generator.next(session, engine->pass_tokens());
    KVASIR_CHECK(engine->pass({&feed, 1}, &out));
    if (out[0].error) return tl::unexpected(*out[0].error);
    KVASIR_TRY(const kvasir::Event event, generator.take(out[0].logits));
    show(event);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto done = stream(argc > 1 ? argv[1] : "tales", argc > 2 ? argv[2] : "Once upon a time");
  if (!done) std::fprintf(stderr, "stream: %s\n", done.error().message().c_str());
  return done ? 0 : 1;
}
