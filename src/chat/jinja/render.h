// One rendering of a template: the frames of variables, the counters for the limits, and the evaluation of statements
// (statements.cc) and expressions (evaluate.cc).
#pragma once

#include <cstdint>
#include <functional>

#include "chat/jinja/ast.h"
#include "chat/jinja/errors.h"

namespace kvasir::jinja {

/// The variables of a block. A frame lives as long as the rendering, since macros refer to the frame they are made in.
struct Frame : Cell {
  Frame(const Scope* s, Frame* o) : scope(s), outer(o), slots(s->loads.size()) {}
  const Scope* scope;
  Frame* outer;
  std::vector<Value> slots;

  Value& at(Slot slot) {
    Frame* frame = this;
    while (frame->scope->level > slot.level) frame = frame->outer;
    return frame->slots[static_cast<size_t>(slot.index)];
  }
};

class Render {
 public:
  static constexpr size_t kMostSteps = 1'000'000;
  static constexpr size_t kMostOutput = size_t{4} << 20;  ///< characters
  static constexpr int kMostNested = 600;                 ///< depth of nested evaluations
  static constexpr int kMostCalls = 64;                   ///< depth of nested macros and recursive loops

  /// `context`: a dict of the caller's variables. `now`: seconds since the epoch, for strftime_now.
  Render(Heap* heap, Value context, double now) : heap_(heap), context_(context), now_(now) {}

  /// Renders a template. Errors: those of Template::render.
  Result<Text> run(const Block& body, const Scope& scope);
  /// Pairs (first character of the output, line of the template that wrote it).
  const std::vector<std::pair<size_t, int>>& lines() const { return lines_; }

  // ---- used by filters, methods and objects

  Heap& heap() { return *heap_; }
  double now() const { return now_; }
  /// Counts `count` steps. Errors: too many steps, or too many bytes of values.
  Result<void> step(size_t count = 1);
  /// Checks that a text or list of `count` more items may be made. Errors: too many bytes, or too many steps.
  Result<void> room(size_t count, size_t bytes_each = sizeof(char32_t));
  /// As room(), for a text that grows in a loop to `size` characters. `charged`, 0 before the loop, is the part that
  /// has been charged.
  Result<void> grow(size_t size, size_t* charged);
  Result<Value> call(const Value& callee, Arguments arguments);
  Result<Value> call_macro(const Statement& macro, Frame* closure, Arguments arguments);
  /// Runs a recursive loop over other items and returns its text.
  Result<Value> loop_again(const Statement& s, Frame* outer, const Value& iterable, int64_t depth);

  /// Counts one level of a depth during its lifetime.
  class Level {
   public:
    explicit Level(int* depth) : depth_(depth) { ++*depth_; }
    Level(Level&& other) noexcept : depth_(std::exchange(other.depth_, nullptr)) {}
    Level& operator=(Level&&) = delete;
    ~Level() {
      if (depth_ != nullptr) --*depth_;
    }

   private:
    int* depth_;
  };
  Result<Level> enter();

 private:
  enum class Flow { on, leave, again };
  using Out = Text;

  Result<Value> fold(const Expr& expr, Frame* frame);

  // statements.cc
  Result<Flow> run_block(const Block& body, Frame* frame, Out* out);
  Result<Flow> run_statement(const Statement& s, Frame* frame, Out* out);
  Result<Flow> run_if(const Statement& s, Frame* frame, Out* out);
  Result<Flow> run_for(const Statement& s, Frame* frame, Out* out);
  Result<void> run_loop(const Statement& s, Frame* frame, const Value& iterable, int64_t depth, Out* out, Flow* flow);
  Result<Value> filtered(const Statement& s, Frame* frame, const Value& iterable);
  Result<Flow> run_with(const Statement& s, Frame* frame, Out* out);
  Result<Flow> run_captured(const Statement& s, Frame* frame, Out* out);
  Result<void> run_call_block(const Statement& s, Frame* frame, Out* out);
  Result<void> print(const Value& value, Out* out);
  Result<void> print_text(const Value& value, Out* out);
  Result<void> assign(const Expr& target, const Value& value, Frame* frame);
  Result<void> bind_arguments(const Statement& macro, Frame* frame, Arguments arguments);
  Frame* open(const Scope& scope, Frame* outer);
  void load(Frame* frame);
  Value look_up(TextView name);

  // evaluate.cc
  Result<Value> evaluate(const Expr& expr, Frame* frame);
  Result<Value> evaluate_branch(const Expr& expr, Frame* frame);
  Result<std::vector<Value>> evaluate_all(const std::vector<ExprPtr>& exprs, Frame* frame);
  Result<Value> evaluate_dict(const Expr& expr, Frame* frame);
  Result<Value> evaluate_compare(const Expr& expr, Frame* frame);
  Result<Value> evaluate_math(const Expr& expr, Frame* frame);
  Result<Value> evaluate_concat(const Expr& expr, Frame* frame);
  Result<Value> evaluate_item(const Expr& expr, Frame* frame);
  Result<Value> evaluate_call(const Expr& expr, Frame* frame, const Value* caller);
  Result<Value> evaluate_filter(const Expr& expr, Frame* frame, const Value* of);
  Result<Value> evaluate_test(const Expr& expr, Frame* frame);
  Result<Arguments> evaluate_arguments(const CallArguments& arguments, Frame* frame);

  Heap* heap_;
  Value context_;
  double now_;
  bool folds_ = false;
  const Text* whole_ = nullptr;  // the output of run()
  std::vector<std::pair<size_t, int>> lines_;
  size_t steps_ = 0;
  int nested_ = 0;
  int calls_ = 0;
  std::optional<Error> late_error_;
};

/// Whether Jinja folds the expression at compile time: it has no variable, no call and no filter that needs the
/// context.
bool is_constant(const Expr& expr);

}  // namespace kvasir::jinja
