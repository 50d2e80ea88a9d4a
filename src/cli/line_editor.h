// Lines from a person: edited and recalled on a terminal, read as they are elsewhere.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace kvasir::cli {

class LineEditor {
 public:
  LineEditor();
  ~LineEditor();
  /// Whether somebody types.
  bool interactive() const { return editor_ != nullptr; }
  /// The next line without its end; nothing at the end of the input. The prompt is shown on a terminal only.
  std::optional<std::string> read(const std::string& prompt);

 private:
  struct Editor;
  std::unique_ptr<Editor> editor_;
};

}  // namespace kvasir::cli
