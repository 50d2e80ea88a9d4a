// Which sequences are generated together: one, samples of one prompt, or many prompts.
#include <kvasir/generate.h>

#include <deque>
#include <memory>
#include <optional>
#include <utility>

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

namespace {

/// The sessions of a batch. All of them have the context that the first one is given, which has the memory to itself as
/// a prompt alone has it: an answer must not end sooner because others are there.
class Sessions {
 public:
  Sessions(const Engine& engine, const SessionOptions& options) : engine_(engine), options_(options) {}

  Result<std::unique_ptr<Session>> open() {
    if (spare_ != nullptr) return std::move(spare_);
    KVASIR_TRY(auto session, engine_.open_session(options_));
    if (ctx_ != 0 && session.ctx() < ctx_)
      return fail(Error::no_room, fmt::format("a context of {} positions is left, of {}", session.ctx(), ctx_),
                  "batch");
    ctx_ = session.ctx();
    if (!options_.slide) options_.ctx = ctx_;  // a window that slides is made of what was asked for
    return std::make_unique<Session>(std::move(session));
  }
  /// The context of all; the first session is kept for the next open().
  Result<int> ctx() {
    KVASIR_TRY(spare_, open());
    return ctx_;
  }

 private:
  const Engine& engine_;
  SessionOptions options_;
  int ctx_ = 0;
  std::unique_ptr<Session> spare_;
};

}  // namespace

Result<void> generate_batch(Engine& engine, const SessionOptions& session, std::span<const std::vector<int>> prompts,
                            int batch_size, const GenerateOptions& options, const OnDone& on_done) {
  if (batch_size < 1)
    return fail(Error::bad_argument, fmt::format("{} sequences in a batch", batch_size), "generate_batch::batch",
                "1 or more");
  KVASIR_CHECK(Generator::check(engine.model(), options));
  Sessions sessions(engine, session);
  KVASIR_TRY(const int ctx, sessions.ctx());
  std::deque<size_t> next;  // prompts that nothing is known against
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (auto good = check_prompt(engine.model(), prompts[i], 0, ctx))
      next.push_back(i);
    else
      on_done(i, tl::unexpected(std::move(good).error()));
  }
  Batch batch(engine, options.on_event, on_done);
  while (!next.empty() || batch.size() > 0) {
    while (!next.empty() && batch.size() < static_cast<size_t>(batch_size) && !batch.full()) {
      auto own = sessions.open();
      if (!own && own.error().kind == Error::no_room && batch.size() > 0) break;  // there is room when one is done
      const size_t prompt = next.front();
      next.pop_front();
      auto task = own ? Task::begin(engine, **own, prompts[prompt], options) : tl::unexpected(std::move(own).error());
      if (task) {
        task->own = std::move(*own);
        batch.add(prompt, std::move(*task));
      } else {
        on_done(prompt, tl::unexpected(std::move(task).error()));
      }
    }
    batch.step();
  }
  return {};
}

}  // namespace kvasir
