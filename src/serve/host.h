// A model that is served: its engine, its scheduler, and the thread that runs them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>

#include <kvasir/scheduler.h>

#include "serve/api/answer.h"
#include "serve/api/prompts.h"

namespace kvasir::serve {

struct HostOptions {
  std::string model;  ///< a name or a path
  ModelOptions open = {};
  EngineOptions engine = {};
  SchedulerOptions scheduler = {};
  std::string chat_format = "auto";  ///< auto: the model's template, where it has one; plain; none
  std::string chat_template = {};    ///< a file of Jinja in place of the model's
  ChatOptions chat = {};             ///< of what templates render
};

/// Used by the thread of the sockets, but for its opening. `post` brings tasks there, from any thread.
class Host : public RequestQueue {
 public:
  using Post = std::function<void(std::function<void()>)>;
  /// Reads the model's fingerprint too, which the first request would wait for. Errors: those of Model::open(),
  /// Engine::create() and Scheduler::create(); a file of a chat template that cannot be used.
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

  /// Takes nothing more; `on_drained` when what is under way has ended, or failed after `timeout_s`.
  void drain(double timeout_s, std::function<void()> on_drained);
  /// False where work waits and no pass has ended for `seconds`. `now`: of now_seconds().
  bool is_alive(double now, double seconds);
  /// Ends the thread; nothing more is posted. Requests get no events any more.
  void close();
  /// Requests whose last event has not come.
  size_t under_way() const { return inbox_->waiting.size(); }

 private:
  struct Waiting {
    Sink sink;
    int left = 0;
  };
  /// What the scheduler's events need; they may come after the host is gone.
  struct Inbox {
    std::unordered_map<RequestId, Waiting> waiting = {};
    double moved = 0;  ///< when there was news, or nothing to do
  };

  Host() = default;
  void run(const Post& post);
  static void deliver(Inbox& inbox, std::vector<RequestEvent>& events);

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Scheduler> scheduler_;
  std::string fingerprint_;
  ChatFormat chat_;
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::function<void()> on_drained_;
  std::atomic<bool> quiet_ = false;
  int64_t passes_ = 0;  // that is_alive() saw last
  std::thread thread_;
};

}  // namespace kvasir::serve
