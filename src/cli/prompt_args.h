// A prompt on the command line: a text, a file or token ids.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.h"

namespace kvasir::cli {

/// -p, -f, --ids.
struct PromptArgs {
  std::string text, file, ids;
  void add(CLI::App& app);
  /// Errors: none given or an empty text, an unreadable file, an id that the model does not have.
  /// `echo`, where given, becomes the prompt as text, whole characters only.
  Result<std::vector<int>> tokens(const Model& model, std::string* echo = nullptr) const;
};

/// --out: refuses a folder that does not exist before anything is computed.
Result<void> check_output(const std::string& path);

}  // namespace kvasir::cli
