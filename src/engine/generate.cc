// One sequence, or several samples of one prompt. sched/generate_batch.cc runs many prompts.
#include <kvasir/generate.h>

#include <memory>
#include <optional>

#include <fmt/format.h>

#include "engine/batch.h"

namespace kvasir {

Result<Generation> generate(Engine& engine, Session& session, std::span<const int> prompt,
                            const GenerateOptions& options) {
  KVASIR_TRY(Task task, Task::begin(engine, session, prompt, options));
  Result<Generation> result = Generation{};
  Batch batch(engine, options.on_event, [&result](size_t, Result<Generation>&& done) { result = std::move(done); });
  batch.add(0, std::move(task));
  while (batch.size() > 0) batch.step();
  return result;
}

Result<std::vector<Generation>> generate_samples(Engine& engine, Session& session, std::span<const int> prompt,
                                                 int samples, const GenerateOptions& options) {
  if (samples < 1)
    return fail(Error::bad_argument, fmt::format("{} samples", samples), "generate_samples::samples", "1 or more");
  std::vector<Generation> all(static_cast<size_t>(samples));
  std::optional<Error> error;
  Batch batch(engine, options.on_event, [&](size_t sample, Result<Generation>&& done) {
    if (done)
      all[sample] = std::move(*done);
    else if (!error)
      error = std::move(done).error();
  });
  std::vector<Task> tasks;
  KVASIR_TRY(Task first, Task::begin(engine, session, prompt, options));
  tasks.push_back(std::move(first));
  const Feed feed = tasks[0].generator.next(session);
  PassOutput out;
  KVASIR_CHECK(engine.step({&feed, 1}, &out));
  if (out[0].error) return tl::unexpected(std::move(*out[0].error));
  for (int choice = 1; choice < samples; ++choice) {
    KVASIR_TRY(Session fork, session.fork());
    auto own = std::make_unique<Session>(std::move(fork));
    Generator generator = tasks[0].generator.fork(choice, *own);
    tasks.push_back({std::move(generator), own.get(), &options, tasks[0].known, std::move(own)});
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    KVASIR_CHECK(batch.take(i, tasks[i], out[0].logits));
    batch.add(i, std::move(tasks[i]));
  }
  while (batch.size() > 0) batch.step();
  if (error) return tl::unexpected(std::move(*error));
  return all;
}

}  // namespace kvasir
