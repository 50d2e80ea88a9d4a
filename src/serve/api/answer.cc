// Events in, chunks out.
#include "serve/api/answer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace kvasir::serve {
namespace {

constexpr double kPing = 10;          // seconds of silence before a comment keeps the connection alive
constexpr double kLongestQueue = 10;  // seconds before a stream's status is told though it still waits

std::string event_text(const Json& json) { return "data: " + to_text(json) + "\n\n"; }

}  // namespace

Answer::Answer(std::shared_ptr<Exchange> exchange, RequestQueue& queue, Call call, AnswerOptions options)
    : exchange_(std::move(exchange)), queue_(queue), call_(std::move(call)), o_(std::move(options)) {
  started_ = last_sent_ = o_.now();
}

void Answer::start(std::shared_ptr<Exchange> exchange, RequestQueue& queue, Call call,
                   std::vector<std::vector<int>> prompts, AnswerOptions options) {
  const std::shared_ptr<Answer> answer(new Answer(std::move(exchange), queue, std::move(call), std::move(options)));
  answer->exchange_->on_gone([weak = answer->weak_from_this()] {
    if (const auto self = weak.lock(); self && !self->ended_) {
      self->cancel_all();
      self->over(0, "gone");
    }
  });
  if (!answer->ended_) answer->submit(std::move(prompts));
}

void Answer::submit(std::vector<std::vector<int>> prompts) {
  const auto n = static_cast<size_t>(call_.request.choices);
  asked_.resize(prompts.size());
  choices_.resize(prompts.size() * n);
  left_ = choices_.size();
  for (size_t p = 0; p < prompts.size(); ++p) {
    for (size_t i = 0; i < n; ++i) choices_[p * n + i].prompt = static_cast<int>(p);
    if (static_cast<int>(prompts[p].size()) > queue_.ctx())
      return fail_with(too_long(queue_.ctx(), static_cast<int>(prompts[p].size())));
    asked_[p].ids = prompts[p];
    Request request = call_.request;
    request.prompt = std::move(prompts[p]);
    // The queue holds the sink until the request's last event, and the sink the answer.
    auto id = queue_.submit(std::move(request), [self = shared_from_this(), p](RequestEvent& e) { self->see(p, e); });
    if (!id) return fail_with(api_error(id.error()));
    asked_[p].id = *id;
    asked_[p].open = true;
  }
  if (!call_.stream) return;
  o_.after(kLongestQueue, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->begin_stream();
  });
}

// ---- events -------------------------------------------------------------------------------------------------------

void Answer::see(size_t prompt, RequestEvent& event) {
  if (ended_) return;
  Choice& choice = choices_[prompt * static_cast<size_t>(call_.request.choices) + static_cast<size_t>(event.choice)];
  if (auto* admitted = std::get_if<Admitted>(&event.news)) {
    if (!asked_[prompt].admitted) asked_[prompt].admitted = std::move(*admitted);
    if (call_.stream) begin_stream();
  } else if (auto* tokens = std::get_if<Event>(&event.news)) {
    see_tokens(&choice, *tokens);
  } else if (auto* done = std::get_if<Finished>(&event.news)) {
    end_choice(prompt, &choice, std::move(*done));
  } else {
    fail_with(api_error(std::get<Error>(event.news)));
  }
}

void Answer::see_tokens(Choice* choice, Event& event) {
  const double now = o_.now();
  if (o_.on_token && !event.ids.empty()) {
    const bool first = choice->generated == 0;
    o_.on_token(first ? now - started_ : -1, first ? -1 : now - choice->last_token);
  }
  choice->last_token = now;
  choice->generated += static_cast<int>(event.ids.size());
  if (call_.nothing) return;
  News& news = choice->news;
  news.text += event.text;
  news.ids.insert(news.ids.end(), event.ids.begin(), event.ids.end());
  std::move(event.logprobs.begin(), event.logprobs.end(), std::back_inserter(news.logprobs));
  if (streaming_) exchange_->wake();
}

void Answer::end_choice(size_t prompt, Choice* choice, Finished&& done) {
  choice->done = std::move(done);
  if (call_.nothing) {
    choice->generated = 0;
    choice->done->generation.stop_reason = StopReason::length;
  }
  const auto n = static_cast<size_t>(call_.request.choices);
  const auto own = std::span(choices_).subspan(prompt * n, n);
  asked_[prompt].open = std::any_of(own.begin(), own.end(), [](const Choice& c) { return !c.done; });
  --left_;
  if (call_.stream) {
    begin_stream();
    exchange_->wake();
  } else if (left_ == 0) {
    answer_whole();
  }
}

void Answer::cancel_all() {
  for (Asked& asked : asked_)
    if (std::exchange(asked.open, false)) queue_.cancel(asked.id);
}

// One failure ends all: the client cannot be told half an answer.
void Answer::fail_with(const ApiError& error) {
  cancel_all();
  if (streaming_) {
    stream_error_ = error;
    exchange_->wake();
    return;
  }
  HttpAnswer answer = error_answer(error);
  answer.headers.insert(answer.headers.end(), o_.headers.begin(), o_.headers.end());
  exchange_->answer(std::move(answer));
  over(error.status, error.code);
}

void Answer::over(int status, const std::string& code) {
  if (std::exchange(ended_, true)) return;
  AnswerRecord record{.status = status, .error_code = code, .usage = usage(), .streamed = streaming_};
  record.gone = code == "gone";
  record.ignored = call_.ignored;
  record.total_s = o_.now() - started_;
  for (const Choice& choice : choices_)
    if (choice.done) record.preemptions += choice.done->preemptions;
  if (!choices_.empty() && choices_[0].done) {
    record.queued_s = choices_[0].done->queued_s;
    record.first_token_s = choices_[0].done->first_token_s;
  }
  if (o_.on_over) o_.on_over(record);
}

// ---- whole --------------------------------------------------------------------------------------------------------

Usage Answer::usage() const {
  Usage usage;
  for (const Asked& asked : asked_) {
    usage.prompt += static_cast<int>(asked.ids.size());
    if (asked.admitted) usage.cached += asked.admitted->reused;
  }
  for (const Choice& choice : choices_) usage.completion += choice.generated;
  return usage;
}

HttpAnswer Answer::head() const {
  HttpAnswer answer;
  answer.headers = o_.headers;
  answer.headers.emplace_back("openai-processing-ms", fmt::format("{:.0f}", (o_.now() - started_) * 1e3));
  answer.headers.emplace_back("x-kvasir-cached-tokens", std::to_string(usage().cached));
  return answer;
}

Json Answer::logprobs_of(const Choice& choice) const {
  if (call_.request.options.logprobs < 0 || queue_.model().tokenizer() == nullptr) return {};
  return logprobs_json(call_.kind, choice.news.logprobs, *queue_.model().tokenizer(), choice.offset);
}

// A token's place in the text does not depend on when its text was sent.
size_t Answer::token_characters(const Choice& choice) const {
  const auto& tokenizer = queue_.model().tokenizer();
  size_t count = 0;
  for (const TokenLogprob& one : choice.news.logprobs)
    if (tokenizer != nullptr) count += characters(tokenizer->token_text(one.id));
  return count;
}

// Kvasir's own object: what the cache gave, and what makes the answer again.
Json Answer::own_json() const {
  Json own = {{"seed", static_cast<int64_t>(call_.request.options.sampling.seed)}};
  int computed = 0, preempted = 0;
  Json receipts = Json::array();
  for (const Choice& choice : choices_) {
    if (!choice.done) continue;
    preempted += choice.done->preemptions;
    if (&choice == &choices_[0] || choice.prompt != (&choice - 1)->prompt) computed += choice.done->computed;
    receipts.push_back(choice.done->generation.receipt);
  }
  own["computed_tokens"] = computed;
  own["preempted"] = preempted;
  if (call_.request.options.receipt) {
    if (receipts.size() == 1)
      own["receipt"] = receipts[0];
    else
      own["receipts"] = receipts;
  }
  const Asked& first = asked_[0];
  const auto at = static_cast<size_t>(first.admitted ? first.admitted->reused : 0);
  const auto rest = std::span(first.ids).subspan(std::min(at, first.ids.size()));
  // The last token is computed though it is kept: that is no difference.
  if (first.admitted && !first.admitted->kept_ids.empty() && !rest.empty() && rest[0] != first.admitted->kept_ids[0] &&
      queue_.model().tokenizer() != nullptr) {
    const Tokenizer& tokenizer = *queue_.model().tokenizer();
    own["differs_at"] = at;
    own["cache_text"] = tokenizer.decode(first.admitted->kept_ids).value_or("");
    own["request_text"] = tokenizer.decode(rest.first(std::min<size_t>(16, rest.size()))).value_or("");
  }
  if (!call_.ignored.empty()) own["ignored"] = call_.ignored;
  return own;
}

Json Answer::whole_json() const {
  Json answer = envelope_json(call_.kind, o_.envelope, false);
  Json list = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Choice& c = choices_[i];
    Json one = choice_json(call_.kind, static_cast<int>(i), c.news, logprobs_of(c), c.done->generation.stop_reason);
    if (call_.return_ids) one["token_ids"] = c.news.ids;
    if (call_.return_ids) one["prompt_token_ids"] = asked_[static_cast<size_t>(c.prompt)].ids;
    list.push_back(std::move(one));
  }
  answer["choices"] = std::move(list);
  answer["usage"] = usage_json(usage());
  answer["timings"] = timings_json(*choices_[0].done, choices_[0].generated);
  answer["kvasir"] = own_json();
  return answer;
}

Json Answer::embeddings_json() const {
  Json data = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i)
    data.push_back(embedding_json(static_cast<int>(i), choices_[i].done->embedding, call_.base64));
  const Usage u = usage();
  return {{"object", "list"},
          {"data", std::move(data)},
          {"model", o_.envelope.model},
          {"usage", {{"prompt_tokens", u.prompt}, {"total_tokens", u.prompt}}}};
}

void Answer::answer_whole() {
  HttpAnswer answer = head();
  answer.body = to_text(call_.kind == kEmbeddings ? embeddings_json() : whole_json());
  exchange_->answer(std::move(answer));
  over(200, {});
}

// ---- streams ------------------------------------------------------------------------------------------------------

void Answer::begin_stream() {
  if (ended_ || std::exchange(streaming_, true)) return;
  HttpAnswer answer = head();
  answer.content_type = "text/event-stream; charset=utf-8";
  exchange_->stream(std::move(answer), [self = shared_from_this()] { return self->next(); });
  ping_later();
}

void Answer::ping_later() {
  o_.after(kPing, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->ended_) return;
    self->ping_ = self->o_.now() - self->last_sent_ >= kPing * 0.9;
    if (self->ping_) self->exchange_->wake();
    self->ping_later();
  });
}

std::string Answer::chunk(Json choices, bool last_of_choices) {
  Json json = envelope_json(call_.kind, o_.envelope, true);
  json["choices"] = std::move(choices);
  if (call_.usage_in_all)
    json["usage"] = usage_json(usage());
  else if (call_.include_usage)
    json["usage"] = nullptr;
  if (last_of_choices) {
    json["timings"] = timings_json(*choices_[0].done, choices_[0].generated);
    json["kvasir"] = own_json();
  }
  return event_text(json);
}

void Answer::add_chunks(Choice* c, int index, std::string* out) {
  if (!std::exchange(c->begun, true) && (call_.kind == kChat || call_.return_ids)) {
    Json first = chunk_choice(call_.kind, index, true, {}, {}, {});
    if (call_.return_ids) first["prompt_token_ids"] = asked_[static_cast<size_t>(c->prompt)].ids;
    *out += chunk(Json::array({std::move(first)}), false);
  }
  if (!c->news.text.empty() || !c->news.ids.empty()) {
    Json one = chunk_choice(call_.kind, index, false, c->news, logprobs_of(*c), {});
    if (call_.return_ids) one["token_ids"] = c->news.ids;
    *out += chunk(Json::array({std::move(one)}), false);
    c->offset += token_characters(*c);
    c->news = {};
  }
  if (!c->done || std::exchange(c->told, true)) return;
  Json end = chunk_choice(call_.kind, index, false, {}, {}, c->done->generation.stop_reason);
  const bool last = left_ == 0 && std::all_of(choices_.begin(), choices_.end(), [](const Choice& x) { return x.told; });
  *out += chunk(Json::array({std::move(end)}), last);
}

StreamPart Answer::next() {
  StreamPart part;
  if (ended_) return {.last = true};
  if (std::exchange(ping_, false)) part.bytes = ": ping\n\n";
  for (size_t i = 0; i < choices_.size(); ++i) add_chunks(&choices_[i], static_cast<int>(i), &part.bytes);
  if (stream_error_) {
    part.bytes += event_text(error_json(*stream_error_));
    part.last = true;
    over(stream_error_->status, stream_error_->code);
  } else if (left_ == 0) {
    if (call_.include_usage) {
      Json json = envelope_json(call_.kind, o_.envelope, true);
      json["choices"] = Json::array();
      json["usage"] = usage_json(usage());
      part.bytes += event_text(json);
    }
    part.bytes += "data: [DONE]\n\n";
    part.last = true;
    over(200, {});
  }
  if (!part.bytes.empty()) last_sent_ = o_.now();
  return part;
}

}  // namespace kvasir::serve
