// A talk: what was said, and the token ids that are kept of it. How it is written is talk_format.h's, how it stands in
// a file talk_file.h's; reading lines and what they command is cmd_chat.cc's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvasir/generate.h>

#include "cli/talk_format.h"

namespace kvasir::cli {

/// How a turn is treated for which the context has no room.
enum class OnFullTalk { stop, recompute, slide };

struct TalkOptions {
  std::string system;
  OnFullTalk on_full = OnFullTalk::stop;
  GenerateOptions generate;  ///< whole_text and on_full are set here
  int piece = 256;           ///< prompt tokens between two looks at `interrupted`
  std::function<bool()> interrupted = [] { return false; };
};

/// The text of a talk up to some place, and the ids that stand for it. Where the context was full, those of its
/// beginning are gone.
struct Held {
  std::string text;
  std::vector<int> ids;
};

/// A question, its answer, and what the talk is after both.
struct Turn {
  std::string user, answer;
  Held held;
  int tries = 0;  ///< answers to this question before this one
};

/// An answer, and what it took.
struct Answer {
  int prompt_tokens = 0, reused = 0, differs = -1;
  int dropped = 0;  ///< tokens of the talk that were let go to make room
  double ttft_ms = 0, decode_tok_s = 0;
  bool full = false;  ///< the answer ends where the context does
  std::string receipt;
};

/// What all answers so far took, those that were replaced among them.
struct TalkTotals {
  int64_t prompt_tokens = 0, reused = 0;
};

/// The ids of what was said stay as they are: where the text of a talk begins with the text after an earlier turn, it
/// begins with that turn's ids, and only the rest is encoded. So nothing that is held is computed again, and a talk
/// that was cut back, or saved and loaded, goes on in the bits of one that never was. Where a template writes an
/// earlier turn differently now, the talk is encoded anew from there.
class Talk {
 public:
  Talk(Engine& engine, Session session, TalkFormat format, TalkOptions options);

  /// Each asks, and on error leaves the talk as it was: no room in the context, Ctrl-C before the answer began, what
  /// the template refuses.
  Result<Answer> ask(const std::string& text);
  /// Asks `text` in place of the last turn. Requires: there is one.
  Result<Answer> edit(const std::string& text);
  /// Asks the last turn once more, with another seed. Requires: there is one.
  Result<Answer> regenerate();
  /// Forgets the last turn. Requires: there is one.
  void undo() { turns_.pop_back(); }
  void set_system(const std::string& text) { o_.system = text; }
  /// Forgets all turns.
  void clear();

  /// `path` becomes a snapshot, and a file beside it the talk. Errors: those of both, and of computing the last token.
  Result<void> save(const std::string& path);
  /// Becomes what was saved; on error the talk is as it was. Errors: those of both files; files of different talks.
  Result<void> load(const std::string& path);

  /// All that was said, as a reader should see it.
  std::string text() const;
  const std::vector<Turn>& turns() const { return turns_; }
  const TalkTotals& totals() const { return totals_; }
  const Session& session() const { return session_; }
  bool endless() const { return o_.on_full == OnFullTalk::slide; }

 private:
  /// A question, and how many turns come before it.
  struct Asked {
    std::string text;
    size_t before = 0;
    int tries = 0;
  };

  const Tokenizer& tokenizer() const { return *engine_.model().tokenizer(); }
  Result<Answer> answer(const Asked& asked);
  Result<Held> prompt(const Asked& asked, Answer* answer) const;
  Result<Held> beginning() const;
  Result<Held> held_of(std::string_view text, size_t turns) const;
  Result<void> make_room(std::vector<int>* ids, size_t turn, const Asked& asked, Answer* answer) const;
  GenerateOptions options_for(size_t prompt_tokens, int tries) const;
  Result<void> feed(std::span<const int> ids, bool replaces);
  Result<std::vector<int>> ids_after(const Generation& g) const;

  Engine& engine_;
  Session session_;
  TalkFormat format_;
  TalkOptions o_;
  std::vector<Turn> turns_;
  TalkTotals totals_;
};

}  // namespace kvasir::cli
