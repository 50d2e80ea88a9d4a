// A talk in plain turns, as token ids that are kept. Reading lines and what they command is cmd_chat.cc's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvasir/generate.h>

namespace kvasir::cli {

/// How a turn is treated for which the context has no room.
enum class OnFullTalk { stop, recompute, slide };

struct TalkOptions {
  std::string system, user = "User: ", assistant = "Assistant:";
  OnFullTalk on_full = OnFullTalk::stop;
  GenerateOptions generate;  ///< whole_text and on_full are set here
  int piece = 256;           ///< prompt tokens between two looks at `interrupted`
  std::function<bool()> interrupted = [] { return false; };
};

/// An answer, and what it took.
struct Answer {
  int prompt_tokens = 0, reused = 0, differs = -1;
  int dropped = 0;  ///< tokens of the talk that were let go to make room
  double ttft_ms = 0, decode_tok_s = 0;
  bool full = false;  ///< the answer ends where the context does
};

/// The ids of what was said stay as they are: a turn adds the ids of its text, and an answer those that were generated.
/// So nothing that is held is computed again, and a talk that was saved and loaded goes on in the same bits.
class Talk {
 public:
  Talk(Engine& engine, Session session, TalkOptions options);

  /// Asks `line`. Errors: no room in the context, Ctrl-C before the answer began; then the turn has not been said.
  Result<Answer> ask(const std::string& line);
  /// Errors: those of Session::save and of computing the last token of the talk.
  Result<void> save(const std::string& path);
  /// Becomes what was saved. Errors: those of Session::load.
  Result<void> load(const std::string& path);
  void clear();
  /// All that was said, as a reader should see it.
  std::string text() const;
  const Session& session() const { return session_; }
  bool endless() const { return o_.on_full == OnFullTalk::slide; }

 private:
  const Tokenizer& tokenizer() const { return *engine_.model().tokenizer(); }
  Result<void> begin();
  Result<void> make_room(std::vector<int>* asked, size_t turn, Answer* answer) const;
  GenerateOptions options_for(size_t asked) const;
  Result<void> feed(std::span<const int> ids);
  Result<void> keep(const Generation& g);

  Engine& engine_;
  Session session_;
  TalkOptions o_;
  std::vector<int> ids_;
};

}  // namespace kvasir::cli
