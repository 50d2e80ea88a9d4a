// A prompt on the command line: a text, a file or token ids.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.h"

namespace kvasir::cli {

/// -p, -f, --ids.
struct PromptArgs {
  std::string text, file;
  std::vector<int> ids;
  void add(Flags& flags);
  /// The text of -p, or of the file of -f. Errors: an unreadable file.
  Result<std::string> content() const;
  /// The token ids of the prompt. `echo`, if given, is set to the prompt as text, in whole characters. Errors: an empty
  /// text, an unreadable file, an id that the model does not have.
  Result<std::vector<int>> tokens(const Model& model, std::string* echo = nullptr) const;
};

}  // namespace kvasir::cli
