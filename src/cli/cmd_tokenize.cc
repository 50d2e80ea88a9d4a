// kvasir tokenize: a text as token ids and pieces, and ids as text.
#include <cstdio>

#include <fmt/format.h>

#include "cli/printable.h"
#include "cli/prompt_args.h"

namespace kvasir::cli {
namespace {

struct Args {
  std::string model = "tales", tokenizer;
  std::optional<std::string> text;
  std::string ids;
  bool from_stdin = false, no_bos = false, json = false;
};

Result<std::string> read_stdin() {
  std::string text;
  char buffer[1 << 14];
  for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) text.append(buffer, got);
  if (std::ferror(stdin)) return fail("cannot be read", "stdin", "a file or a pipe");
  return text;
}

Result<std::string> input(const Args& a) {
  if (a.from_stdin && a.text) return fail("there is a text on the command line too", "--stdin", "one of the two");
  if (!a.from_stdin && !a.text) return fail("no text is given", "TEXT", "a text, --stdin or --ids");
  return a.from_stdin ? read_stdin() : Result<std::string>(*a.text);
}

nlohmann::json to_json(const Tokenizer& tokenizer, const std::vector<int>& ids) {
  std::vector<std::string> pieces;
  for (int id : ids) pieces.push_back(tokenizer.piece(id));
  return {{"ids", ids}, {"pieces", pieces}};
}

Result<int> decode(const Args& a, const Tokenizer& tokenizer) {
  if (a.text || a.from_stdin) return fail("there is a text too", "--ids", "one of the two");
  KVASIR_TRY(const auto ids, parse_ids(a.ids));
  auto text = tokenizer.decode(ids);
  if (!text) return fail(text.error().what, "--ids", fmt::format("ids 0..{}", tokenizer.vocab_size() - 1));
  if (a.json) {
    nlohmann::json json = to_json(tokenizer, ids);
    json["text"] = *text;
    print_json(json);
    return kOk;
  }
  std::fwrite(text->data(), 1, text->size(), stdout);
  std::fputc('\n', stdout);
  return kOk;
}

Result<int> run(const Args& a) {
  KVASIR_TRY(const auto opened, open_tokenizer(a.tokenizer.empty() ? a.model : a.tokenizer));
  const Tokenizer& tokenizer = *opened;
  print_note(tokenizer.ignored());
  if (!a.ids.empty()) return decode(a, tokenizer);
  KVASIR_TRY(const std::string text, input(a));
  KVASIR_TRY(const auto ids, tokenizer.encode(text, !a.no_bos));
  if (a.json) {
    print_json(to_json(tokenizer, ids));
    return kOk;
  }
  for (int id : ids) fmt::print("{:>7}  {}\n", id, printable(tokenizer.piece(id)));
  return kOk;
}

void add(CLI::App& app, Run* run_command) {
  auto a = std::make_shared<Args>();
  app.add_option("MODEL,-m,--model", a->model, "a model, or a tokenizer.json, tokenizer.model or .gguf")
      ->capture_default_str();
  app.add_option("--tokenizer", a->tokenizer, "tokenizer file, where it is not beside the model");
  app.add_option("TEXT", a->text, "the text");
  app.add_flag("--stdin", a->from_stdin, "the text is what stdin gives");
  app.add_flag("--no-bos", a->no_bos, "without the token that begins a text");
  app.add_option("--ids", a->ids, "the other way: the text of these ids, 1,2,3");
  app.add_flag("--json", a->json, "one JSON object on stdout: ids, pieces; with --ids also text");
  app.footer(
      "Examples:\n  kvasir tokenize tales \"Once upon a time\"\n"
      "  kvasir tokenize tales --stdin --json < story.txt\n"
      "  kvasir tokenize tales --ids 45,270,298");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_tokenize;
const Command cmd_tokenize{"tokenize", "a text as tokens, and tokens as text", add};

}  // namespace kvasir::cli
