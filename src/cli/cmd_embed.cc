// kvasir embed: a text as one vector.
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/prompt_args.h"
#include "format/npy.h"

namespace kvasir::cli {
namespace {

struct Args {
  ModelArgs model;
  EngineArgs engine;
  PromptArgs prompt;
  std::string pooling = "mean", out;
  bool json = false;
};

Result<Pooling> find_pooling(const std::string& name) {
  if (name == "mean") return Pooling::mean;
  if (name == "last") return Pooling::last;
  return fail(fmt::format("\"{}\" is not a pooling", name), "--pooling", "mean, last");
}

Result<int> run(const Args& a) {
  KVASIR_TRY(const Pooling pooling, find_pooling(a.pooling));
  KVASIR_CHECK(check_output(a.out));
  KVASIR_TRY(const auto model, a.model.open());
  KVASIR_TRY(const auto ids, a.prompt.tokens(*model));
  KVASIR_TRY(const auto engine, Engine::create(model, a.engine.engine));
  KVASIR_TRY(auto session, engine->open_session(a.engine.session));
  KVASIR_TRY(const std::vector<float> vector, engine->embed(session, ids, pooling));
  if (!a.out.empty()) KVASIR_CHECK(write_npy_f32(a.out, vector, {static_cast<int64_t>(vector.size())}));
  if (a.json)
    print_json({{"tokens", ids.size()},
                {"hidden", vector.size()},
                {"pooling", a.pooling},
                {"embedding", vector},
                {"out", a.out.empty() ? nlohmann::json() : nlohmann::json(a.out)}});
  else if (a.out.empty())
    fmt::print("{}\n", fmt::join(vector, " "));
  else
    fmt::print("{}: float32 [{}]\n", a.out, vector.size());
  return kOk;
}

void add(CLI::App& app, Run* run_command) {
  auto a = std::make_shared<Args>();
  a->model.add(app);
  a->engine.add(app);
  a->prompt.add(app);
  app.add_option("--pooling", a->pooling, "mean of all positions, or the last one's state")->capture_default_str();
  app.add_option("-o,--out", a->out, "a .npy file for the vector, float32 [hidden]");
  app.add_flag("--json", a->json, "one JSON object on stdout: tokens, hidden, pooling, embedding, out");
  app.footer(
      "Examples:\n  kvasir embed tales -p \"a cat and a dog\" --json\n"
      "  kvasir embed tales -f story.txt --pooling last --out story.npy");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_embed;
const Command cmd_embed{"embed", "a text as one vector of length 1", add};

}  // namespace kvasir::cli
