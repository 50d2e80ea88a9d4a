// Collects the events of an answer's choices and sends them, whole or as a stream. writer.h formats them.
#include "serve/api/answer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "serve/api/format.h"

namespace kvasir::serve {
namespace {

constexpr double kPing = 10;          // seconds of silence before a comment keeps the connection alive
constexpr double kLongestQueue = 10;  // seconds after which a stream starts even though its request still waits

// Joins parts of one kind that a slow reader has not taken yet.
void add_parts(std::vector<AnswerPart> parts, News* news) {
  for (AnswerPart& part : parts) {
    const bool is_more = !news->parts.empty() && news->parts.back().kind == part.kind && part.kind != AnswerPart::call;
    if (is_more)
      news->parts.back().text += part.text;
    else
      news->parts.push_back(std::move(part));
  }
}

}  // namespace

Answer::Answer(std::shared_ptr<Exchange> exchange, RequestQueue& queue, Call call, ReplyOptions options)
    : exchange_(std::move(exchange)), queue_(queue), call_(std::move(call)), o_(std::move(options)) {
  started_ = last_sent_ = o_.now();
  writer_ = make_writer(call_);
}

void Answer::start(std::shared_ptr<Exchange> exchange, RequestQueue& queue, Call call,
                   std::vector<std::vector<int>> prompts, ReplyOptions options) {
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
  prompts_ = prompts;
  if (call_.make_parser)
    for (Choice& choice : choices_) choice.parser = call_.make_parser();
  for (size_t p = 0; p < prompts.size(); ++p) {
    for (size_t i = 0; i < n; ++i) choices_[p * n + i].prompt = static_cast<int>(p);
    if (static_cast<int>(prompts[p].size()) > queue_.ctx())
      return fail_with(too_long(queue_.ctx(), static_cast<int>(prompts[p].size())));
    Request request = call_.request;
    request.prompt = std::move(prompts[p]);
    // The queue holds the sink until the request's last event; the sink holds the answer.
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

Choice& Answer::choice_at(size_t prompt, int index) {
  return choices_[prompt * static_cast<size_t>(call_.request.choices) + static_cast<size_t>(index)];
}

void Answer::see(size_t prompt, RequestEvent& event) {
  if (ended_) return;
  Choice& choice = choice_at(prompt, event.choice);
  if (auto* admitted = std::get_if<Admitted>(&event.news)) {
    if (!asked_[prompt].admitted) asked_[prompt].admitted = std::move(*admitted);
    if (call_.stream) begin_stream();
  } else if (auto* tokens = std::get_if<Event>(&event.news)) {
    see_tokens(prompt, event.choice, *tokens);
  } else if (auto* done = std::get_if<Finished>(&event.news)) {
    end_choice(prompt, &choice, std::move(*done));
  } else {
    fail_with(api_error(std::get<Error>(event.news)));
  }
}

void Answer::see_tokens(size_t prompt, int index, Event& event) {
  Choice* const choice = &choice_at(prompt, index);
  const double now = o_.now();
  if (o_.on_token && !event.ids.empty()) {
    const bool first = choice->generated == 0;
    o_.on_token(first ? now - started_ : -1, first ? -1 : now - choice->last_token);
  }
  choice->last_token = now;
  choice->generated += static_cast<int>(event.ids.size());
  if (call_.nothing) return;
  News& news = choice->news;
  if (call_.kind == kChat)
    parse(prompt, index, event.ids.size(), event.text);
  else
    news.text += event.text;
  news.ids.insert(news.ids.end(), event.ids.begin(), event.ids.end());
  std::move(event.logprobs.begin(), event.logprobs.end(), std::back_inserter(news.logprobs));
  if (streaming_) exchange_->wake();
}

// Splits text into parts. If only one call is allowed, the first complete call ends the choice.
void Answer::parse(size_t prompt, int index, size_t tokens, const std::string& text) {
  Choice& choice = choice_at(prompt, index);
  if (!choice.parser) {
    if (!text.empty()) add_parts({{.text = text}}, &choice.news);
    return;
  }
  if (choice.parser->reasons()) choice.reasoning += static_cast<int>(tokens);
  const bool has_called = choice.parser->complete_calls() > 0;
  add_parts(choice.parser->push(text), &choice.news);
  if (call_.one_call && !has_called && choice.parser->complete_calls() > 0) queue_.cancel(asked_[prompt].id, index);
}

void Answer::end_choice(size_t prompt, Choice* choice, Finished&& done) {
  choice->done = std::move(done);
  if (choice->parser) add_parts(choice->parser->finish(), &choice->news);
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

// One failure ends all choices, since an answer cannot report a failure of some of them.
void Answer::fail_with(const ApiError& error) {
  cancel_all();
  if (streaming_) {
    stream_error_ = error;
    exchange_->wake();
    return;
  }
  HttpAnswer answer = error_answer(error, call_.dialect);
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
  for (const auto& ids : prompts_) usage.prompt += static_cast<int>(ids.size());
  for (const Asked& asked : asked_)
    if (asked.admitted) usage.cached += asked.admitted->reused;
  for (const Choice& choice : choices_) {
    usage.completion += choice.generated;
    usage.reasoning += choice.reasoning;
  }
  return usage;
}

HttpAnswer Answer::head() const {
  HttpAnswer answer;
  answer.headers = o_.headers;
  answer.headers.emplace_back("openai-processing-ms", fmt::format("{:.0f}", (o_.now() - started_) * 1e3));
  answer.headers.emplace_back("x-kvasir-cached-tokens", std::to_string(usage().cached));
  return answer;
}

AnswerFacts Answer::facts() {
  return {.call = call_,
          .envelope = o_.envelope,
          .model = queue_.model(),
          .choices = choices_,
          .prompts = prompts_,
          .usage = usage(),
          .timings = [this] { return timings_json(*choices_[0].done, choices_[0].generated); },
          .own = [this] { return own_json(); }};
}

// The member "kvasir" of an answer: what the cache contributed, and what is needed to reproduce the answer.
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
  const auto rest = std::span(prompts_[0]).subspan(std::min(at, prompts_[0].size()));
  // The last prompt token is always computed, even if it is in the cache; that is not a difference.
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
  answer.body = to_text(call_.kind == kEmbeddings ? embeddings_json() : writer_->whole(facts()));
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

StreamPart Answer::next() {
  StreamPart part;
  if (ended_) return {.last = true};
  if (std::exchange(ping_, false)) part.bytes = ": ping\n\n";
  const AnswerFacts now = facts();
  for (size_t i = 0; i < choices_.size(); ++i) part.bytes += writer_->news(now, i);
  if (stream_error_) {
    part.bytes += writer_->error(*stream_error_);
    part.last = true;
    over(stream_error_->status, stream_error_->code);
  } else if (left_ == 0) {
    part.bytes += writer_->end(now);
    part.last = true;
    over(200, {});
  }
  if (!part.bytes.empty()) last_sent_ = o_.now();
  return part;
}

}  // namespace kvasir::serve
