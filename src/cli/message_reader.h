// Reads one message of a person: a line, or several that belong together. Typing a line is in line_editor.h, handling a
// message in cmd_chat.cc.
#pragma once

#include <string>

#include "cli/line_editor.h"

namespace kvasir::cli {

struct Typed {
  std::string text;       ///< lines with \n between
  bool is_block = false;  ///< given between two lines of """: never a command
};

/// A line that ends with a backslash continues in the next one; a line of three quotes begins a block, another ends it.
/// The end of the input ends both.
class MessageReader {
 public:
  /// Waits as LineEditor::read() does. Ctrl-C discards all lines of the message.
  LineEditor::Event read(Typed* typed);
  bool offer(const std::string& text) { return editor_.offer(text); }

 private:
  LineEditor::Event read_block(Typed* typed);

  LineEditor editor_;
};

}  // namespace kvasir::cli
