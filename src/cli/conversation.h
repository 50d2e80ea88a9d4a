// A conversation: its turns and their token ids. Rendering is in conversation_format.h, saved files in
// conversation_file.h, reading lines and commands in cmd_chat.cc.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvasir/generate.h>

#include "cli/conversation_format.h"

namespace kvasir::cli {

/// Behaviour at a turn for which the context has no room.
enum class OnFullContext { stop, recompute, slide };

struct ConversationOptions {
  std::string system;
  OnFullContext on_full = OnFullContext::stop;
  GenerateOptions generate;  ///< whole_text and on_full are set here
  int piece = 256;           ///< prompt tokens between two calls of `interrupted`
  std::function<bool()> interrupted = [] { return false; };
};

/// The text of a conversation up to some place, and its ids. If the context was full, the ids of its beginning are
/// missing.
struct Held {
  std::string text;
  std::vector<int> ids;
};

/// A question, its answer, and the conversation up to the end of both.
struct Turn {
  std::string user, answer;
  Held held;
  int tries = 0;  ///< number of earlier answers to this question
};

/// Statistics of an answer.
struct Answer {
  int prompt_tokens = 0, reused = 0, differs = -1;
  int dropped = 0;  ///< tokens at the start of the conversation that were dropped to make room
  double ttft_ms = 0, decode_tok_s = 0;
  bool full = false;  ///< the answer ended because the context is full
  std::string receipt;
};

/// Sums over all answers so far, including replaced ones.
struct ConversationTotals {
  int64_t prompt_tokens = 0, reused = 0;
};

/// Ids of earlier turns are kept: if the text of the prompt begins with the held text of an earlier turn, it begins
/// with that turn's ids, and only the rest is encoded. So nothing held is computed again, and a conversation that was
/// edited, or saved and loaded, continues with the same bits as one that was not. If a template now writes an earlier
/// turn differently, the conversation is encoded again from there.
class Conversation {
 public:
  Conversation(Engine& engine, Session session, ConversationFormat format, ConversationOptions options);

  /// Adds a turn and its answer. On error the conversation is unchanged; this holds for edit() and regenerate() too.
  /// Errors: no room in the context, Ctrl-C before the answer began, a refusal of the template.
  Result<Answer> ask(const std::string& text);
  /// Asks `text` in place of the last turn. Requires: there is one.
  Result<Answer> edit(const std::string& text);
  /// Asks the last turn again, with another seed. Requires: there is one.
  Result<Answer> regenerate();
  /// Removes the last turn. Requires: there is one.
  void undo() { turns_.pop_back(); }
  void set_system(const std::string& text) { o_.system = text; }
  /// Removes all turns.
  void clear();

  /// Writes a snapshot of the cache to `path` and the conversation to a file beside it. Errors: those of both files,
  /// and of computing the last token.
  Result<void> save(const std::string& path);
  /// Replaces the conversation by a saved one; on error it is unchanged. Errors: those of both files; files of
  /// different conversations.
  Result<void> load(const std::string& path);

  /// The whole conversation as text for a reader.
  std::string text() const;
  const std::vector<Turn>& turns() const { return turns_; }
  const ConversationTotals& totals() const { return totals_; }
  const Session& session() const { return session_; }
  bool endless() const { return o_.on_full == OnFullContext::slide; }

 private:
  /// A question, and the number of turns before it.
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
  ConversationFormat format_;
  ConversationOptions o_;
  std::vector<Turn> turns_;
  ConversationTotals totals_;
};

}  // namespace kvasir::cli
