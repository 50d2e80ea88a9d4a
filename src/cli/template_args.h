// The flags of commands that render chat templates: a Jinja file, the date, whether messages may contain control
// tokens.
#pragma once

#include <string>

#include <kvasir/chat.h>

#include "cli/flags.h"

namespace kvasir::cli {

/// --chat-template, --template-date, --hf-special-tokens.
struct TemplateArgs {
  std::string file, date;
  bool hf_special_tokens = false;

  /// `needs`: the flag without which these have no effect; empty: none.
  void add(Flags& flags, const char* needs = "");
  /// Errors: an invalid date.
  Result<ChatOptions> options() const;
};

}  // namespace kvasir::cli
