// Building a job from a request, and the result of a choice.
#include "sched/request.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace kvasir::sched {

std::span<const int> Sequence::known() const {
  return std::visit(
      [](const auto& w) -> std::span<const int> {
        if constexpr (std::is_same_v<std::decay_t<decltype(w)>, Generator>)
          return w.tokens();
        else
          return w.text();
      },
      work);
}

bool Sequence::is_done() const {
  return std::visit([](const auto& w) { return w.done(); }, work);
}

int Sequence::lacks() const {
  if (const Generator* g = generator()) return g->lacks(*session);
  return static_cast<int>(known().size()) - session->computed();
}

Feed Sequence::next(int most, std::span<const int> guesses) {
  if (Generator* g = generator()) return g->next(*session, most, guesses);
  return pooler()->next(*session, most);
}

bool Sequence::is_prefilling() const {
  return session != nullptr && session->computed() + 1 < static_cast<int>(job->request.prompt.size());
}

namespace {

constexpr int kMostChoices = 1024;

Result<void> check(const Request& request) {
  if (request.choices < 1 || request.choices > kMostChoices)
    return fail(Error::bad_argument, fmt::format("{} choices", request.choices), "Request::choices",
                fmt::format("1..{}", kMostChoices));
  if (request.resume.size() > static_cast<size_t>(request.choices))
    return fail(Error::bad_argument,
                fmt::format("tokens to resume for {} choices of {}", request.resume.size(), request.choices),
                "Request::resume", "one list for each choice");
  if (!(request.weight > 0))
    return fail(Error::bad_argument, fmt::format("a weight of {}", request.weight), "Request::weight", "more than 0");
  if (request.timeout_s < 0)
    return fail(Error::bad_argument, fmt::format("{} seconds", request.timeout_s), "Request::timeout_s", "0 or more");
  if (request.prompt.empty())
    return fail(Error::bad_argument, "the prompt is empty", "Generator::prompt", "a prompt of at least one token");
  if (request.pooling && request.choices > 1)
    return fail(Error::bad_argument, "an embedding has no choices", "Request::choices", "1");
  return {};
}

Result<std::unique_ptr<Sequence>> make_sequence(const std::shared_ptr<const Model>& model, Job* job, int choice) {
  const Request& request = job->request;
  if (request.pooling) {
    Pooler pooler(*request.pooling, request.prompt, static_cast<size_t>(model->info().hidden));
    return std::unique_ptr<Sequence>(new Sequence{.job = job, .choice = choice, .work = std::move(pooler)});
  }
  const auto at = static_cast<size_t>(choice);
  const std::span<const int> resume = at < request.resume.size() ? request.resume[at] : std::span<const int>();
  KVASIR_TRY(Generator generator, Generator::create(model, request.prompt, request.options, choice, resume));
  return std::unique_ptr<Sequence>(new Sequence{.job = job, .choice = choice, .work = std::move(generator)});
}

}  // namespace

Result<std::unique_ptr<Job>> make_job(const std::shared_ptr<const Model>& model, Request request) {
  KVASIR_CHECK(check(request));
  KVASIR_CHECK(model->check_ids(request.prompt, "Generator::prompt"));
  auto job = std::make_unique<Job>();
  job->request = std::move(request);
  job->left = job->request.choices;
  for (int choice = 0; choice < job->left; ++choice) {
    KVASIR_TRY(auto sequence, make_sequence(model, job.get(), choice));
    sequence->waits_for_prompt = sequence->known().size() == job->request.prompt.size();
    job->choices.push_back(std::move(sequence));
  }
  job->lead_next();
  return job;
}

void Job::lead_next() {
  for (const auto& sequence : choices)
    if (!sequence->over && sequence->waits_for_prompt) {
      sequence->waits_for_prompt = false;
      sequence->forks = true;
      return;
    }
}

Finished finished(const Sequence& sequence, double now) {
  const Job& job = *sequence.job;
  Finished done;
  if (const Generator* generator = sequence.generator())
    done.generation = generator->result();
  else if (sequence.is_done())
    done.embedding = std::get<Pooler>(sequence.work).result();
  else
    done.generation.stop_reason = StopReason::cancelled;
  done.generation.prompt_tokens = job.prompt_tokens();
  done.generation.cached_tokens = job.reused;
  done.generation.waited = sequence.preemptions;
  if (sequence.session != nullptr) done.generation.stats.cache = sequence.session->cache_stats();
  done.computed = job.computed;
  done.recomputed = job.recomputed;
  done.preemptions = sequence.preemptions;
  done.queued_s = job.admitted.value_or(now) - job.submitted;
  done.first_token_s = sequence.first_token.value_or(job.submitted) - job.submitted;
  done.total_s = now - job.submitted;
  return done;
}

}  // namespace kvasir::sched
