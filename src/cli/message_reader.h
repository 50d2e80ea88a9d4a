// What a person says at a time: a line, or several that belong together. How a line is typed is line_editor.h's, what
// is made of it cmd_chat.cc's.
#pragma once

#include <string>

#include "cli/line_editor.h"

namespace kvasir::cli {

struct Typed {
  std::string text;       ///< lines with \n between
  bool is_block = false;  ///< given between marks: it is no command, whatever it begins with
};

/// A line that ends with a backslash goes on in the next one; a line of three quotes begins a block, and another ends
/// it. The end of the input ends both.
class MessageReader {
 public:
  /// Waits as LineEditor::read() does. Ctrl-C drops all lines that belong together.
  LineEditor::Event read(Typed* typed);
  bool offer(const std::string& text) { return editor_.offer(text); }

 private:
  LineEditor::Event read_block(Typed* typed);

  LineEditor editor_;
};

}  // namespace kvasir::cli
