// Which sequences are generated together: one, samples of one prompt, or many prompts.
#include <kvasir/generate.h>

#include <algorithm>
#include <deque>
#include <list>

#include <fmt/format.h>

#include "engine/stream.h"

namespace kvasir {
namespace {

// A step of all streams in one: each gets its rows.
Result<void> step(Engine& engine, std::span<Stream* const> streams) {
  std::vector<Feed> feeds;
  for (Stream* stream : streams) feeds.push_back(stream->next());
  StepOutput out;
  KVASIR_CHECK(engine.step(feeds, &out));
  std::span<const float> rest = out.logits;
  for (size_t i = 0; i < streams.size(); ++i) {
    const size_t rows = feeds[i].all_logits ? feeds[i].tokens.size() : 1;
    const size_t floats = rows * static_cast<size_t>(engine.model().info().vocab);
    KVASIR_CHECK(streams[i]->take(rest.first(floats)));
    rest = rest.subspan(floats);
  }
  return {};
}

// Until all are done.
Result<void> run(Engine& engine, std::vector<Stream*> streams) {
  const auto drop = [&] { std::erase_if(streams, [](const Stream* s) { return s->done(); }); };
  for (drop(); !streams.empty(); drop()) KVASIR_CHECK(step(engine, streams));
  return {};
}

// A sequence of a batch.
struct Slot {
  Slot(size_t index, Session opened) : prompt(index), session(std::move(opened)) {}
  size_t prompt;
  Session session;
  std::optional<Stream> stream;
};

GenerateOptions silent(GenerateOptions options) {
  options.on_text = nullptr;
  return options;
}

}  // namespace

Result<Generation> generate(Engine& engine, Session& session, std::span<const int> prompt,
                            const GenerateOptions& options) {
  KVASIR_TRY(Stream stream, Stream::open(engine, session, prompt, options));
  KVASIR_CHECK(run(engine, {&stream}));
  return stream.finish();
}

Result<std::vector<Generation>> generate_samples(Engine& engine, Session& session, std::span<const int> prompt,
                                                 int samples, const GenerateOptions& asked) {
  if (samples < 1) return fail(fmt::format("{} samples", samples), "--samples", "1 or more");
  const GenerateOptions options = silent(asked);
  KVASIR_TRY(Stream first, Stream::open(engine, session, prompt, options));
  StepOutput out;
  KVASIR_CHECK(engine.prefill(session, first.prompt(), &out));
  std::deque<Session> forks;
  std::deque<Stream> others;
  std::vector<Stream*> streams{&first};
  for (int choice = 1; choice < samples; ++choice) {
    KVASIR_TRY(Session fork, session.fork());
    others.push_back(first.forked(forks.emplace_back(std::move(fork)), choice));
    streams.push_back(&others.back());
  }
  for (Stream* stream : streams) KVASIR_CHECK(stream->take(out.logits));
  KVASIR_CHECK(run(engine, streams));
  std::vector<Generation> all;
  for (Stream* stream : streams) all.push_back(stream->finish());
  return all;
}

Result<void> generate_batch(Engine& engine, const SessionOptions& session, std::span<const std::vector<int>> prompts,
                            int batch, const GenerateOptions& asked, const OnDone& on_done) {
  if (batch < 1) return fail(fmt::format("{} sequences in a batch", batch), "--batch", "1 or more");
  const GenerateOptions options = silent(asked);
  std::list<Slot> slots;
  for (size_t next = 0; next < prompts.size() || !slots.empty();) {
    while (next < prompts.size() && slots.size() < static_cast<size_t>(batch)) {
      auto opened = engine.open_session(session);
      if (!opened && !slots.empty()) break;  // there is room when one of them is done
      if (!opened) return tl::unexpected(opened.error());
      Slot& slot = slots.emplace_back(next, std::move(*opened));
      KVASIR_TRY(Stream stream, Stream::open(engine, slot.session, prompts[next], options));
      slot.stream.emplace(std::move(stream));
      ++next;
    }
    std::vector<Stream*> streams;
    for (Slot& slot : slots) streams.push_back(&*slot.stream);
    KVASIR_CHECK(step(engine, streams));
    for (Slot& slot : slots)
      if (slot.stream->done()) on_done(slot.prompt, slot.stream->finish());
    slots.remove_if([](const Slot& slot) { return slot.stream->done(); });
  }
  return {};
}

}  // namespace kvasir
