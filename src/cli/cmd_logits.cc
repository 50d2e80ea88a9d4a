// kvasir logits: the logits at every position of a prompt, as a .npy file or the best few on stdout.
#include <algorithm>
#include <cstdio>
#include <numeric>

#include <fmt/format.h>

#include "base/npy.h"
#include "cli/printable.h"
#include "cli/prompt_args.h"

namespace kvasir::cli {
namespace {

struct Args {
  ModelArgs model;
  EngineArgs engine;
  PromptArgs prompt;
  std::string out;
  int top = 5;
  bool json = false;
};

// The ids of the n largest logits of a row, the lower id first among equals.
std::vector<int> best_ids(std::span<const float> row, int n) {
  std::vector<int> ids(row.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto at = [&](int id) { return row[static_cast<size_t>(id)]; };
  const size_t keep = std::min(row.size(), static_cast<size_t>(n));
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(keep), ids.end(),
                    [&](int a, int b) { return at(a) != at(b) ? at(a) > at(b) : a < b; });
  ids.resize(keep);
  return ids;
}

void print_best(const Model& model, std::span<const float> row, int n) {
  for (int id : best_ids(row, n))
    fmt::print("{:>7}  {:>10.4f}  {}\n", id, row[static_cast<size_t>(id)],
               model.tokenizer() != nullptr ? printable(model.tokenizer()->piece(id)) : std::string());
}

Json best_json(const Model& model, std::span<const float> row, int n) {
  Json list = Json::array();
  for (int id : best_ids(row, n))
    list.push_back({{"id", id},
                    {"logit", row[static_cast<size_t>(id)]},
                    {"piece", model.tokenizer() != nullptr ? model.tokenizer()->piece(id) : std::string()}});
  return list;
}

Result<int> run(Args a, bool top_given) {
  KVASIR_TRY(const auto model, a.model.open());
  if (!top_given) a.top = std::min(a.top, model->info().vocab);
  if (a.top > model->info().vocab)
    return fail(Error::bad_argument, fmt::format("{} tokens, the vocabulary has {}", a.top, model->info().vocab),
                "--top", "fewer");
  KVASIR_TRY(const auto ids, a.prompt.tokens(*model));
  KVASIR_TRY(const auto engine, Engine::create(model, a.engine.engine));
  KVASIR_TRY(auto session, engine->open_session(a.engine.session));
  PassOutput out;
  const Feed feed{.session = &session, .tokens = ids, .logits = Logits::all};
  KVASIR_CHECK(engine->step({&feed, 1}, &out));
  if (out[0].error) return tl::unexpected(std::move(*out[0].error));
  const auto tokens = static_cast<int64_t>(ids.size()), vocab = static_cast<int64_t>(model->info().vocab);
  if (!a.out.empty()) KVASIR_CHECK(write_npy_f32(a.out, out[0].logits, {tokens, vocab}));
  const auto last = out[0].logits.last(static_cast<size_t>(vocab));
  if (a.json)
    print_json({{"tokens", tokens},
                {"vocab", vocab},
                {"ids", ids},
                {"out", a.out.empty() ? Json() : Json(a.out)},
                {"top", a.out.empty() ? best_json(*model, last, a.top) : Json()}});
  else if (a.out.empty())
    print_best(*model, last, a.top);
  else
    fmt::print("{}: float32 [{}, {}]\n", a.out, tokens, vocab);
  return kOk;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  a->model.add(flags);
  a->engine.add(flags);
  add_kv_types(flags, a->engine.session);
  a->prompt.add(flags);
  flags.bind(flag::kLogitsOut, &a->out);
  flags.bind(flag::kTop, &a->top);
  flags.bind(with_help(flag::kJson, "one JSON object on stdout: tokens, vocab, ids, out; top, without --out"),
             &a->json);
  flags.footer(
      "Examples:\n  kvasir logits tales -p \"Once upon a time\"\n"
      "  kvasir logits tales --ids 1,2,3 --out logits.npy");
  *run_command = [a, &flags] { return run(*a, flags.given(flag::kTop)); };
}

}  // namespace

extern const Command cmd_logits;
const Command cmd_logits{"logits", "compute the logits at every position of a prompt", add};

}  // namespace kvasir::cli
