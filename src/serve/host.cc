// The engine's thread, and its events' way to the thread of the sockets.
#include "serve/host.h"

#include <utility>

#include "base/system.h"

namespace kvasir::serve {

namespace {

// A mapped file that somebody cuts ends the process, so that is left to who asks for it: weights are read where they
// fit.
Result<std::shared_ptr<const Model>> open_model(const HostOptions& options) {
  KVASIR_TRY(auto model, Model::open(options.model, options.open));
  if (options.open.weights != WeightsMode::automatic || model->info().weights_mode != WeightsMode::mapped) return model;
  ModelOptions read = options.open;
  const bool fits = model->info().weights_bytes <= available_memory_bytes() / 5 * 4;
  read.weights = fits ? WeightsMode::resident : WeightsMode::streamed;
  return Model::open(options.model, read);
}

}  // namespace

Result<std::unique_ptr<Host>> Host::open(const HostOptions& options, Post post) {
  KVASIR_TRY(auto model, open_model(options));
  std::unique_ptr<Host> host(new Host);
  KVASIR_TRY(host->fingerprint_, model->fingerprint());
  KVASIR_TRY(host->engine_, Engine::create(std::move(model), options.engine));
  KVASIR_TRY(host->scheduler_, Scheduler::create(*host->engine_, options.scheduler));
  host->thread_ = std::thread([h = host.get(), post = std::move(post)] { h->run(post); });
  return host;
}

Host::~Host() { close(); }

void Host::close() {
  if (!thread_.joinable()) return;
  quiet_ = true;
  scheduler_->drain(0);
  thread_.join();
}

void Host::run(const Post& post) {
  scheduler_->run([&](std::span<RequestEvent> events) {
    if (quiet_) return;
    auto news = std::make_shared<std::vector<RequestEvent>>(std::make_move_iterator(events.begin()),
                                                            std::make_move_iterator(events.end()));
    post([sinks = sinks_, news] { deliver(*sinks, *news); });
  });
  if (on_drained_ && !quiet_) post(on_drained_);
}

// A sink may submit and cancel, and so the table may change under it.
void Host::deliver(Sinks& sinks, std::vector<RequestEvent>& events) {
  for (RequestEvent& event : events) {
    const auto found = sinks.find(event.request);
    if (found == sinks.end()) continue;
    const bool last = std::holds_alternative<Finished>(event.news) || std::holds_alternative<Error>(event.news);
    const Sink sink = found->second.sink;
    if (last && --found->second.left == 0) sinks.erase(found);
    sink(event);
  }
}

Result<RequestId> Host::submit(Request request, Sink sink) {
  const int choices = request.choices;
  KVASIR_TRY(const RequestId id, scheduler_->submit(std::move(request)));
  // Its events come through post(), so none is there before this.
  sinks_->emplace(id, Waiting{std::move(sink), choices});
  return id;
}

void Host::drain(double timeout_s, std::function<void()> on_drained) {
  on_drained_ = std::move(on_drained);
  scheduler_->drain(timeout_s);
}

bool Host::is_alive(double now, double seconds) {
  const SchedulerStats s = stats();
  const bool idle = s.running + s.waiting == 0;
  if (s.passes != passes_ || idle) passed_ = now;
  passes_ = s.passes;
  return now - passed_ < seconds;
}

}  // namespace kvasir::serve
