// The handler's side of a turn.
#include "serve/http/exchange.h"

namespace kvasir::serve {
namespace {

class ServedExchange final : public Exchange {
 public:
  ServedExchange(std::shared_ptr<Turn> turn, HttpRequest request)
      : Exchange(std::move(request)), turn_(std::move(turn)) {}
  ~ServedExchange() override {
    if (!turn_->notify || turn_->answer) return;
    turn_->dropped = true;
    turn_->notify();
  }

  void answer(HttpAnswer answer) override { give(std::move(answer), nullptr); }
  void stream(HttpAnswer head, std::function<StreamPart()> next) override { give(std::move(head), std::move(next)); }
  void wake() override {
    if (turn_->notify && turn_->next) turn_->notify();
  }
  void on_gone(std::function<void()> gone) override {
    if (turn_->notify) {
      turn_->on_gone = std::move(gone);
    } else if (turn_->gone) {
      gone();
    }
  }

 private:
  void give(HttpAnswer answer, std::function<StreamPart()> next) {
    if (!turn_->notify || turn_->answer) return;
    turn_->answer = std::move(answer);
    turn_->next = std::move(next);
    turn_->notify();
  }

  std::shared_ptr<Turn> turn_;
};

}  // namespace

void Turn::end(bool client_is_gone) {
  if (!notify) return;
  gone = client_is_gone;
  notify = nullptr;
  // The functions may hold the exchange, which holds this turn. Moving them out breaks the cycle.
  const auto asked = std::exchange(next, nullptr);
  const auto told = std::exchange(on_gone, nullptr);
  if (gone && told) told();
}

std::shared_ptr<Exchange> make_exchange(std::shared_ptr<Turn> turn, HttpRequest request) {
  return std::make_shared<ServedExchange>(std::move(turn), std::move(request));
}

}  // namespace kvasir::serve
