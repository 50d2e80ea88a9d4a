// A conversation in a file beside the snapshot of its cache: the messages and their ids. docs/chat.md has the format.
#pragma once

#include <string>
#include <vector>

#include "cli/conversation.h"

namespace kvasir::cli {

struct SavedConversation {
  std::string system;
  std::vector<Turn> turns;
};

/// The path of the conversation that belongs to a snapshot.
std::string conversation_path(const std::string& snapshot);
/// Writes a conversation. Bytes of texts that are not UTF-8 become U+FFFD; the ids are unchanged. Errors: those of the
/// file system.
Result<void> write_conversation(const std::string& path, const SavedConversation& conversation);
/// Reads a conversation. Errors: no such file, not a conversation, an id outside a vocabulary of `vocab` tokens.
Result<SavedConversation> read_conversation(const std::string& path, int vocab);

}  // namespace kvasir::cli
