// The engine's thread, and the delivery of its events to the thread of the sockets.
#include "serve/host.h"

#include <chrono>
#include <semaphore>
#include <utility>

#include "base/clock.h"
#include "base/system.h"

namespace kvasir::serve {

namespace {

// Truncating a memory-mapped file kills the process that uses it, so a server maps weights only if asked to. Otherwise
// weights are read into memory if they fit, and streamed if not.
Result<std::shared_ptr<const Model>> open_model(const HostOptions& options) {
  KVASIR_TRY(auto model, Model::open(options.model, options.open));
  if (options.open.weights != WeightsMode::automatic || model->info().weights_mode != WeightsMode::mapped) return model;
  ModelOptions read = options.open;
  const bool fits = model->info().weights_bytes <= available_memory_bytes() / 5 * 4;
  read.weights = fits ? WeightsMode::resident : WeightsMode::streamed;
  return Model::open(options.model, read);
}

// A model without a usable template still serves everything except chats.
Result<ChatFormat> open_chat(const HostOptions& options) {
  ChatFormat format{.options = options.chat};
  if (options.chat_format == "plain") {
    format.is_plain = true;
  } else if (options.chat_format == "none") {
    format.why_none = "this server was started without a chat format";
  } else {
    auto made = ChatTemplate::of_model(options.model, options.chat_template);
    if (made)
      format.chat_template = std::move(*made);
    else if (!options.chat_template.empty())
      return tl::unexpected(std::move(made).error());
    else
      format.why_none = made.error().message();
  }
  return format;
}

}  // namespace

Result<std::unique_ptr<Host>> Host::open(const HostOptions& options, Post post) {
  KVASIR_TRY(auto model, open_model(options));
  std::unique_ptr<Host> host(new Host);
  KVASIR_TRY(host->fingerprint_, model->fingerprint());
  KVASIR_TRY(host->chat_, open_chat(options));
  KVASIR_TRY(host->engine_, Engine::create(std::move(model), options.engine));
  KVASIR_TRY(host->scheduler_, Scheduler::create(*host->engine_, options.scheduler));
  host->post_ = post;
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

// The next pass occupies all cores for milliseconds. So that events are written to clients before it rather than after
// it, the engine's thread yields its core to the thread of the sockets until they are written, at most for kHandOver.
void Host::run(const Post& post) {
  constexpr auto kHandOver = std::chrono::milliseconds(1);
  constexpr size_t kLittle = 4;
  scheduler_->run([&](std::span<RequestEvent> events) {
    if (quiet_) return;
    auto news = std::make_shared<std::vector<RequestEvent>>(std::make_move_iterator(events.begin()),
                                                            std::make_move_iterator(events.end()));
    auto written = std::make_shared<std::binary_semaphore>(0);
    post([inbox = inbox_, news, post, written] {
      deliver(*inbox, *news);
      post([written] { written->release(); });  // runs after the connections that deliver() woke
    });
    if (events.size() <= kLittle) (void)written->try_acquire_for(kHandOver);
  });
  if (on_drained_ && !quiet_) post(on_drained_);
}

// A sink may submit and cancel requests, so the table may change during the call.
void Host::deliver(Inbox& inbox, std::vector<RequestEvent>& events) {
  inbox.moved = now_seconds();
  for (RequestEvent& event : events) {
    const auto found = inbox.waiting.find(event.request);
    if (found == inbox.waiting.end()) continue;
    const bool last = std::holds_alternative<Finished>(event.news) || std::holds_alternative<Error>(event.news);
    const Sink sink = found->second.sink;
    if (last && --found->second.left == 0) inbox.waiting.erase(found);
    sink(event);
  }
}

Result<RequestId> Host::submit(Request request, Sink sink) {
  const int choices = request.choices;
  KVASIR_TRY(const RequestId id, scheduler_->submit(std::move(request)));
  if (inbox_->waiting.empty()) inbox_->moved = now_seconds();
  // Events arrive through post(), so none is delivered before this.
  inbox_->waiting.emplace(id, Waiting{std::move(sink), choices});
  return id;
}

void Host::drain(double timeout_s, std::function<void()> on_drained) {
  on_drained_ = std::move(on_drained);
  scheduler_->drain(timeout_s);
}

void Host::show(Inbox& inbox, const std::shared_ptr<const CacheView>& view) {
  std::erase_if(inbox.viewers, [](const auto& viewer) { return viewer.expired(); });
  for (const auto& each : std::vector(inbox.viewers))
    if (const auto viewer = each.lock()) (*viewer)(view);
  inbox.watched = !inbox.viewers.empty();
}

// One view serves all viewers. The engine's thread ends it when nobody is left.
void Host::watch(const std::shared_ptr<OnCacheView>& viewer) {
  inbox_->viewers.push_back(viewer);
  inbox_->watched = true;
  scheduler_->observe([this, inbox = inbox_, post = post_](std::shared_ptr<const CacheView> view) {
    if (quiet_) return;
    if (!inbox->watched) return scheduler_->observe(nullptr);
    post([inbox, view = std::move(view)] { show(*inbox, view); });
  });
}

bool Host::is_alive(double now, double seconds) {
  const int64_t passes = stats().passes;  // the only sign of progress while a long prompt is computed
  if (std::exchange(passes_, passes) != passes) inbox_->moved = now;
  return inbox_->waiting.empty() || now - inbox_->moved < seconds;
}

}  // namespace kvasir::serve
