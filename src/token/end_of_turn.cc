// The texts that end a turn. Source of the list and of its two exceptions: ggml-org/llama.cpp src/llama-vocab.cpp,
// special_eog_ids.
#include "token/end_of_turn.h"

#include <algorithm>
#include <string_view>

namespace kvasir {
namespace {

constexpr std::string_view kTexts[] = {"<|eot_id|>",
                                       "<|im_end|>",
                                       "<|end|>",
                                       "<|return|>",
                                       "<|call|>",
                                       "<|flush|>",
                                       "<|calls|>",
                                       "<end_of_turn>",
                                       "<|endoftext|>",
                                       "</s>",
                                       "<|eom_id|>",
                                       "<EOT>",
                                       "_<EOT>",
                                       "[EOT]",
                                       "[EOS]",
                                       "<|end_of_text|>",
                                       "<end_of_utterance>",
                                       "<eos>",
                                       "<turn|>",
                                       "<|tool_response>",
                                       "[e~[",
                                       "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"};

}  // namespace

std::vector<int> end_of_turn_ids(const TokenModel& model) {
  const auto find = [&](std::string_view text) {
    const auto id = model.vocabulary().find(text);
    return id && (model.is_added(*id) || model.is_special(*id)) ? *id : -1;
  };
  const auto has = [&](std::string_view text) { return find(text) >= 0; };
  // Exceptions: in some vocabularies <|end|> ends only a part of an answer; in others </s> belongs to another model.
  const bool end_goes_on = (has("<|call|>") || has("<|calls|>")) && (has("<|return|>") || has("<|flush|>"));
  const bool other_s = has("<|tool_response>");
  std::vector<int> ids;
  for (const std::string_view text : kTexts) {
    const int id = find(text);
    if (id < 0 || (text == "<|end|>" && end_goes_on) || (text == "</s>" && other_s)) continue;
    ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace kvasir
