// Reading a prompt's options into token ids.
#include "cli/prompt_args.h"

#include <filesystem>

#include <fmt/format.h>

namespace kvasir::cli {

void PromptArgs::add(CLI::App& app) {
  app.add_option("-p,--prompt", text, "the text");
  app.add_option("-f,--file", file, "a file with the text");
  app.add_option("--ids", ids, "token ids instead of a text, 1,2,3");
}

namespace {

Result<std::vector<int>> checked_ids(const std::string& text, const Model& model) {
  KVASIR_TRY(auto list, parse_ids(text));
  const int vocab = model.info().vocab;
  for (int id : list)
    if (id < 0 || id >= vocab)
      return fail(fmt::format("token id {} is out of range, the vocabulary has {}", id, vocab), "--ids",
                  fmt::format("ids 0..{}", vocab - 1));
  return list;
}

std::string text_of(const std::vector<int>& ids, const Model& model) {
  std::string out;
  if (model.tokenizer() == nullptr) return out;
  StreamDecoder decoder(model.tokenizer());
  for (int id : ids) out += decoder.push(id);
  return out;
}

}  // namespace

Result<std::vector<int>> PromptArgs::tokens(const Model& model, std::string* echo) const {
  if (!ids.empty()) {
    KVASIR_TRY(auto list, checked_ids(ids, model));
    if (echo != nullptr) *echo = text_of(list, model);
    return list;
  }
  std::string content = text;
  if (!file.empty()) {
    KVASIR_TRY(content, read_text_file(file));
  }
  if (echo != nullptr) *echo = content;
  return encode(model, content);
}

Result<void> check_output(const std::string& path) {
  namespace fs = std::filesystem;
  if (path.empty()) return {};
  std::error_code ec;
  if (fs::is_directory(path, ec)) return fail("is a folder", path, "the name of a file");
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ec))
    return fail("cannot be created, its folder does not exist", path, "an output in a folder that exists");
  return {};
}

}  // namespace kvasir::cli
