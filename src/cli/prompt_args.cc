// Turns the flags of a prompt into token ids.
#include "cli/prompt_args.h"

#include <fmt/format.h>

namespace kvasir::cli {

void PromptArgs::add(Flags& flags) {
  flags.bind(flag::kPrompt, &text);
  flags.bind(flag::kPromptFile, &file);
  flags.bind(flag::kPromptIds, &ids);
}

Result<std::string> PromptArgs::content() const {
  if (file.empty()) return text;
  return read_text_file(file);
}

namespace {

Result<void> check_ids(const std::vector<int>& ids, const Model& model) {
  const int vocab = model.info().vocab;
  for (int id : ids)
    if (id < 0 || id >= vocab)
      return fail(Error::bad_argument, fmt::format("token id {} is out of range, the vocabulary has {}", id, vocab),
                  "--ids", fmt::format("ids 0..{}", vocab - 1));
  return {};
}

}  // namespace

Result<std::vector<int>> PromptArgs::tokens(const Model& model, std::string* echo) const {
  if (!ids.empty()) {
    KVASIR_CHECK(check_ids(ids, model));
    if (echo != nullptr && model.tokenizer() != nullptr) *echo = visible_text(model.tokenizer(), ids);
    return ids;
  }
  KVASIR_TRY(const std::string asked, content());
  if (echo != nullptr) *echo = asked;
  return encode(model, asked);
}

}  // namespace kvasir::cli
