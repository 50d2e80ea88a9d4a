// Reads lines from a person: with editing and history on a terminal, as they are otherwise.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace kvasir::cli {

/// While an object exists, Ctrl-C (SIGINT) is recorded and does not end the program.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  /// Whether Ctrl-C was pressed since the last forget().
  static bool any();
  static void forget();
};

class LineEditor {
 public:
  enum class Event { line, interrupt, end };

  LineEditor();
  ~LineEditor();
  /// Whether stdin and stdout are a terminal.
  bool interactive() const { return editor_ != nullptr; }
  /// Waits for the next line, without its end (\n or \r\n), or for Ctrl-C if an Interrupts object exists; Ctrl-C
  /// discards what was typed. The prompt is shown on a terminal only.
  Event read(const std::string& prompt, std::string* line);
  /// Puts `text` into the next line for editing. Returns false without a terminal, or if `text` has control characters.
  bool offer(const std::string& text);

 private:
  struct Editor;
  Event type(const std::string& prompt, std::string* line);
  Event take(std::string* line);

  std::unique_ptr<Editor> editor_;
  std::string waiting_;  // without a terminal: bytes read that do not make a line yet
};

}  // namespace kvasir::cli
