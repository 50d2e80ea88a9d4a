// Lines from a person: edited and recalled on a terminal, read as they are elsewhere.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace kvasir::cli {

/// As long as it lives, Ctrl-C (SIGINT) is counted and does not end the program.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  /// Whether there was one since the last forget().
  static bool any();
  static void forget();
};

class LineEditor {
 public:
  enum class Event { line, interrupt, end };

  LineEditor();
  ~LineEditor();
  /// Whether somebody types.
  bool interactive() const { return editor_ != nullptr; }
  /// Waits for the next line, without its end (\n or \r\n), or for Ctrl-C where an Interrupts lives; then what was
  /// typed is dropped. The prompt is shown on a terminal only.
  Event read(const std::string& prompt, std::string* line);
  /// Puts `text` into the next line, to be edited. False: nobody types, or a line cannot hold it.
  bool offer(const std::string& text);

 private:
  struct Editor;
  Event type(const std::string& prompt, std::string* line);
  Event take(std::string* line);

  std::unique_ptr<Editor> editor_;
  std::string waiting_;  // elsewhere: read and not yet a line
};

}  // namespace kvasir::cli
