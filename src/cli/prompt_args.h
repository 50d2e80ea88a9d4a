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
  /// The text, from the file where one was given. Errors: an unreadable file.
  Result<std::string> content() const;
  /// Errors: an empty text, an unreadable file, an id that the model does not have.
  /// `echo`, where given, becomes the prompt as text, whole characters only.
  Result<std::vector<int>> tokens(const Model& model, std::string* echo = nullptr) const;
};

}  // namespace kvasir::cli
