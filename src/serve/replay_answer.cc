// Counts tokens in chunks. A chunk with `token_ids` counts their number; one with text only counts as one token.
#include "serve/replay_answer.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace kvasir::serve {
namespace {

constexpr const char* kWhere = "the stream";
constexpr int kMost = 1 << 30;

std::string message_of(const Json& error) {
  const Json* message = member(error, "message");
  return message != nullptr && message->is_string() ? message->get<std::string>() : to_text(error);
}

}  // namespace

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

std::optional<int> count_in(const Json& object, const char* key) {
  const Json* value = member(object, key);
  if (value == nullptr || !value->is_number_integer() || *value < 0 || *value > kMost) return {};
  return value->get<int>();
}

std::string told_error(std::string_view body) {
  const auto json = parse_json(body);
  const Json* error = json ? member(*json, "error") : nullptr;
  return error != nullptr ? message_of(*error) : std::string(body.substr(0, 200));
}

Result<std::vector<StreamedAnswer::Tokens>> StreamedAnswer::read(std::string_view bytes) {
  std::vector<Tokens> news;
  Result<void> taken;
  KVASIR_CHECK(events_.read(bytes, [&](std::string_view data) {
    if (taken && !done_) taken = take(data, &news);
  }));
  KVASIR_CHECK(taken);
  return news;
}

Result<void> StreamedAnswer::take(std::string_view data, std::vector<Tokens>* news) {
  done_ = data == "[DONE]";
  if (done_) return {};
  const auto json = parse_json(data);
  if (!json || !json->is_object()) return fail(Error::damaged, "an event that is no JSON object", kWhere);
  if (const Json* error = member(*json, "error")) return fail(Error::io, message_of(*error), "the server");
  if (const Json* usage = member(*json, "usage")) take_usage(*usage);
  const Json* choices = member(*json, "choices");
  if (choices == nullptr || !choices->is_array()) return {};
  for (const Json& choice : *choices) KVASIR_CHECK(take_choice(choice, news));
  return {};
}

Result<void> StreamedAnswer::take_choice(const Json& choice, std::vector<Tokens>* news) {
  const int index = count_in(choice, "index").value_or(0);
  if (index >= static_cast<int>(tokens_.size()))
    return fail(Error::damaged, fmt::format("choice {} of {}", index, tokens_.size()), kWhere);
  const auto at = static_cast<size_t>(index);
  int count = 0;
  if (const Json* ids = member(choice, "token_ids"); ids != nullptr && ids->is_array()) {
    count = static_cast<int>(ids->size());
    for (const Json& id : *ids)
      if (index == 0 && id.is_number_integer()) ids_.push_back(id.get<int>());
  } else if (const Json* text = member(choice, "text"); text != nullptr && text->is_string()) {
    count = text->get_ref<const std::string&>().empty() ? 0 : 1;
  }
  tokens_[at] += count;
  if (count > 0) news->push_back({index, count});
  if (member(choice, "finish_reason") != nullptr) ended_[at] = true;
  return {};
}

void StreamedAnswer::take_usage(const Json& usage) {
  const auto prompt = count_in(usage, "prompt_tokens"), completion = count_in(usage, "completion_tokens");
  if (!prompt || !completion) return;
  usage_ = Usage{*prompt, *completion};
  if (const Json* details = member(usage, "prompt_tokens_details"))
    usage_->cached = count_in(*details, "cached_tokens");
}

bool StreamedAnswer::is_complete() const {
  return done_ || std::all_of(ended_.begin(), ended_.end(), [](bool ended) { return ended; });
}

int StreamedAnswer::generated() const {
  return usage_ ? usage_->completion : std::accumulate(tokens_.begin(), tokens_.end(), 0);
}

int StreamedAnswer::answer_tokens() const { return usage_ && tokens_.size() == 1 ? usage_->completion : tokens_[0]; }

}  // namespace kvasir::serve
