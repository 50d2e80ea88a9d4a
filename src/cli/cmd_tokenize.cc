// kvasir tokenize: turns a text into token ids and pieces, or ids into text.
#include <cstdio>

#include <fmt/format.h>

#include "cli/printable.h"
#include "cli/prompt_args.h"

namespace kvasir::cli {
namespace {

struct Args {
  std::string model = "tales", tokenizer;
  std::string text;
  std::vector<int> ids;
  bool from_stdin = false, no_bos = false, json = false;
};

// The tokenizer of the model, or the one of --tokenizer; if a model is given too, their vocabularies must match.
Result<std::shared_ptr<const Tokenizer>> find_tokenizer(const Args& a, bool model_given) {
  if (a.tokenizer.empty() || !model_given) return open_tokenizer(a.tokenizer.empty() ? a.model : a.tokenizer);
  KVASIR_TRY(const auto model, Model::open(a.model, {.weights = WeightsMode::mapped, .tokenizer = a.tokenizer}));
  return model->tokenizer();
}

Json to_json(const Tokenizer& tokenizer, const std::vector<int>& ids) {
  std::vector<std::string> pieces;
  for (int id : ids) pieces.push_back(tokenizer.piece(id));
  return {{"ids", ids}, {"pieces", pieces}};
}

Result<int> decode(const Args& a, const Tokenizer& tokenizer) {
  auto text = tokenizer.decode(a.ids);
  if (!text)
    return fail(Error::bad_argument, text.error().what, "--ids", fmt::format("ids 0..{}", tokenizer.vocab_size() - 1));
  if (a.json) {
    Json json = to_json(tokenizer, a.ids);
    json.set("text", *text);
    print_json(json);
    return kOk;
  }
  std::fwrite(text->data(), 1, text->size(), stdout);
  std::fputc('\n', stdout);
  return kOk;
}

Result<int> run(const Args& a, bool model_given) {
  KVASIR_TRY(const auto opened, find_tokenizer(a, model_given));
  const Tokenizer& tokenizer = *opened;
  print_note(tokenizer.ignored());
  if (!a.ids.empty()) return decode(a, tokenizer);
  KVASIR_TRY(const std::string text, a.from_stdin ? read_text_file("-") : Result<std::string>(a.text));
  KVASIR_TRY(const auto ids, tokenizer.encode(text, !a.no_bos));
  if (a.json) {
    print_json(to_json(tokenizer, ids));
    return kOk;
  }
  for (int id : ids) fmt::print("{:>7}  {}\n", id, printable(tokenizer.piece(id)));
  return kOk;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  flags.bind(flag::kTokenizeModel, &a->model);
  flags.bind(flag::kTokenizer, &a->tokenizer);
  flags.bind(flag::kText, &a->text);
  flags.bind(flag::kStdin, &a->from_stdin);
  flags.bind(flag::kNoBos, &a->no_bos);
  flags.bind(flag::kDecodeIds, &a->ids);
  flags.bind(with_help(flag::kJson, "one JSON object on stdout: ids, pieces; with --ids also text"), &a->json);
  flags.footer(
      "Examples:\n  kvasir tokenize tales \"Once upon a time\"\n"
      "  kvasir tokenize tales --stdin --json < story.txt\n"
      "  kvasir tokenize tales --ids 45,270,298");
  *run_command = [a, &flags] { return run(*a, flags.given(flag::kTokenizeModel)); };
}

}  // namespace

extern const Command cmd_tokenize;
const Command cmd_tokenize{"tokenize", "turn text into tokens, and tokens into text", add};

}  // namespace kvasir::cli
