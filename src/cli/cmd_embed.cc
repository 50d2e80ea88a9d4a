// kvasir embed: a text as one vector.
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/npy.h"
#include "cli/prompt_args.h"

namespace kvasir::cli {
namespace {

struct Args {
  ModelArgs model;
  EngineArgs engine;
  PromptArgs prompt;
  std::string pooling = "mean", out;
  bool json = false;
};

Result<int> run(const Args& a) {
  const Pooling pooling = a.pooling == "last" ? Pooling::last : Pooling::mean;
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
                {"out", a.out.empty() ? Json() : Json(a.out)}});
  else if (a.out.empty())
    fmt::print("{}\n", fmt::join(vector, " "));
  else
    fmt::print("{}: float32 [{}]\n", a.out, vector.size());
  return kOk;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  a->model.add(flags);
  a->engine.add(flags);
  add_kv_types(flags, a->engine.session);
  a->prompt.add(flags);
  flags.bind(flag::kPooling, &a->pooling);
  flags.bind(flag::kVectorOut, &a->out);
  flags.bind(with_help(flag::kJson, "one JSON object on stdout: tokens, hidden, pooling, embedding, out"), &a->json);
  flags.footer(
      "Examples:\n  kvasir embed tales -p \"a cat and a dog\" --json\n"
      "  kvasir embed tales -f story.txt --pooling last --out story.npy");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_embed;
const Command cmd_embed{"embed", "embed a text as one vector of norm 1", add};

}  // namespace kvasir::cli
