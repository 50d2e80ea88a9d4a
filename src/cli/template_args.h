// The flags of commands that render talks: a file of Jinja, the day, whether messages may hold control tokens.
#pragma once

#include <string>

#include <kvasir/chat.h>

#include "cli/flags.h"

namespace kvasir::cli {

/// --chat-template, --template-date, --hf-special-tokens.
struct TemplateArgs {
  std::string file, date;
  bool hf_special_tokens = false;

  /// `needs`: the flag that they are for, where they are not for the whole command.
  void add(Flags& flags, const char* needs = "");
  /// Errors: a date that is none.
  Result<ChatOptions> options() const;
};

}  // namespace kvasir::cli
