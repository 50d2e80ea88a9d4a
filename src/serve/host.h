// A served model: its engine, its scheduler, and the thread that runs them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <kvasir/scheduler.h>

#include "serve/api/answer.h"
#include "serve/api/prompts.h"

namespace kvasir::serve {

struct HostOptions {
  std::string model;  ///< a name or a path
  ModelOptions open = {};
  EngineOptions engine = {};
  SchedulerOptions scheduler = {};
  std::string chat_format = "auto";  ///< "auto" (the model's template, if it has one), "plain" or "none"
  std::string chat_template = {};    ///< a Jinja file that replaces the model's template
  ChatOptions chat = {};             ///< for rendering the template
};

/// Used on the thread of the sockets, except open(), which any thread may call. `post` runs tasks on that thread and
/// may be called from any thread.
class Host : public RequestQueue {
 public:
  using Post = std::function<void(std::function<void()>)>;
  /// Opens the model, and computes its fingerprint in advance so that the first request need not wait. Errors: those of
  /// Model::open(), Engine::create() and Scheduler::create(); HostOptions::chat_template cannot be used.
  static Result<std::unique_ptr<Host>> open(const HostOptions& options, Post post);
  ~Host() override;

  Result<RequestId> submit(Request request, Sink sink) override;
  void cancel(RequestId id, std::optional<int> choice = {}) override { scheduler_->cancel(id, choice); }
  int ctx() const override { return scheduler_->ctx(); }
  const Model& model() const override { return engine_->model(); }
  const Engine& engine() const { return *engine_; }
  SchedulerStats stats() const { return scheduler_->stats(); }
  const std::string& fingerprint() const { return fingerprint_; }
  const ChatFormat& chat() const { return chat_; }

  /// Refuses new requests. Calls `on_drained` once running requests have ended, or have failed after `timeout_s`.
  void drain(double timeout_s, std::function<void()> on_drained);
  /// Returns false if requests are pending and no pass has ended for `seconds`. `now`: from now_seconds().
  bool is_alive(double now, double seconds);
  /// Calls `viewer` with what the cache holds, now and when it changes, while the pointer lives.
  void watch(const std::shared_ptr<OnCacheView>& viewer);
  /// Ends the thread. Nothing is posted any more, and requests get no further events.
  void close();
  /// Number of requests whose last event has not been delivered.
  size_t under_way() const { return inbox_->waiting.size(); }

 private:
  struct Waiting {
    Sink sink;
    int left = 0;
  };
  /// The state for delivering events, which may arrive after the host is destroyed.
  struct Inbox {
    std::unordered_map<RequestId, Waiting> waiting = {};
    double moved = 0;  ///< time of the last progress, or of the last moment without work
    std::vector<std::weak_ptr<OnCacheView>> viewers = {};
    std::atomic<bool> watched = false;  ///< whether a viewer may be left
  };

  Host() = default;
  void run(const Post& post);
  static void show(Inbox& inbox, const std::shared_ptr<const CacheView>& view);
  static void deliver(Inbox& inbox, std::vector<RequestEvent>& events);

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Scheduler> scheduler_;
  std::string fingerprint_;
  ChatFormat chat_;
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::function<void()> on_drained_;
  Post post_;
  std::atomic<bool> quiet_ = false;
  int64_t passes_ = 0;  // count of passes at the last is_alive()
  std::thread thread_;
};

}  // namespace kvasir::serve
